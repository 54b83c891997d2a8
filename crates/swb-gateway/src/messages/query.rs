//! A query string, read leniently: the last value of a key counts, blank ones do not.

use std::collections::HashMap;
use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

#[derive(Debug)]
pub(crate) struct Query(HashMap<String, String>);

impl Query {
    /// A value that says something.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(|value| value.trim()).filter(|value| !value.is_empty())
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let pairs = form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes());
        Ok(Query(pairs.into_owned().collect()))
    }
}
