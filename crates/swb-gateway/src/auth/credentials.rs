//! Where a request may carry its secret: two headers, the path, and on our own name a cookie.

use axum::http::{HeaderMap, Uri, header};

use super::keyring::{Keyring, Principal};
use super::sign_in::COOKIE;
use crate::host::Addressed;

/// Whose secret stands in the headers.
pub(crate) fn in_headers(keyring: &Keyring, headers: &HeaderMap, addressed: Addressed) -> Option<Principal> {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("Bearer").then(|| token.trim())
    });
    let api_key = headers.get("x-api-key").and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(principal) =
        [bearer, api_key].into_iter().flatten().find_map(|token| keyring.owner_of_token(token))
    {
        return Some(principal);
    }
    // A cookie sent to any other name of this machine was not set by us.
    (addressed == Addressed::Page)
        .then(|| cookies(headers).find_map(|cookie| keyring.owner_of_cookie(cookie)))?
}

fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter_map(|(name, value)| (name == COOKIE).then_some(value))
}

/// The token in `/t/<token>/…` and the rest of the path; `None` for any other path.
pub(crate) fn split_prefix(uri: &Uri) -> Option<(&str, Option<Uri>)> {
    let (token, rest) = uri.path().strip_prefix("/t/")?.split_once('/')?;
    let path_and_query = match uri.query() {
        Some(query) => format!("/{rest}?{query}"),
        None => format!("/{rest}"),
    };
    Some((token, Uri::try_from(path_and_query).ok()))
}
