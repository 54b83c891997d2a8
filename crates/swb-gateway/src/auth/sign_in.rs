//! A link that signs a browser in, once.
//!
//! A browser's `EventSource` can send no header, and a cookie of 127.0.0.1 would go to every port of the machine. So a
//! link leads to our own name below `localhost` and sets a cookie for that name alone. The code in the link is kept as a
//! hash in the name of a file; taking the file away is using the link, and the file system lets only one do that.

use std::io;
use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::keyring::{Keyring, KeyringError, Principal};
use super::secret_file;
use crate::failure::Failure;

const LINKS: &str = "links";
const LIFETIME: Duration = Duration::from_secs(600);
/// The name of the cookie.
pub(super) const COOKIE: &str = "swb";

impl Keyring {
    /// Makes a link at which a browser becomes this principal. It works once, within ten minutes.
    ///
    /// # Errors
    /// If it cannot be noted.
    pub fn link(&self, principal: &Principal, port: u16) -> Result<String, KeyringError> {
        let folder = self.folder.join(LINKS);
        let failed = |source| KeyringError { path: folder.clone(), source };
        secret_file::private_folder(&folder).map_err(failed)?;
        let code = secret_file::random::<16>().map_err(failed)?;
        // There must be a token for the cookie to stand for.
        self.token(principal)?;
        secret_file::write_new(&folder.join(file_name(&code)), &principal.name()).map_err(failed)?;
        Ok(format!("http://{}.localhost:{port}/auth/{code}", self.page()))
    }

    /// Uses a link up.
    fn redeem(&self, code: &str) -> Option<Principal> {
        let path = self.folder.join(LINKS).join(file_name(code));
        let age = path.metadata().and_then(|metadata| metadata.modified()).ok()?.elapsed().ok()?;
        let name = secret_file::read(&path).ok()?;
        // Of two that come at once, one removes it.
        std::fs::remove_file(&path).ok()?;
        (age < LIFETIME).then(|| Principal::from_name(&name)).flatten()
    }
}

fn file_name(code: &str) -> String {
    blake3::hash(code.as_bytes()).to_hex().to_string()
}

/// Answers a browser that followed a link.
pub(crate) fn sign_in(keyring: &Keyring, code: &str) -> Response {
    let Some(principal) = keyring.redeem(code) else {
        let text = "This link was used already or is too old. `swb token --link` makes another.\n";
        return (StatusCode::GONE, text).into_response();
    };
    let cookie = keyring.cookie(&principal).map_err(io::Error::other).and_then(|cookie| {
        // No Domain: the cookie belongs to this very name. No Secure: there is no TLS on the way to one's own machine.
        let text = format!("{COOKIE}={cookie}; Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000");
        HeaderValue::from_str(&text).map_err(io::Error::other)
    });
    match cookie {
        Ok(cookie) => {
            let headers = [(header::SET_COOKIE, cookie), (header::LOCATION, HeaderValue::from_static("/"))];
            (StatusCode::SEE_OTHER, headers).into_response()
        }
        Err(error) => Failure::internal("the browser cannot be signed in", &error).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_works_once() {
        let dir = tempfile::tempdir().unwrap();
        let keyring = Keyring::open(dir.path()).unwrap();
        let link = keyring.link(&Principal::User, 1).unwrap();
        let code = link.rsplit('/').next().unwrap();
        assert_eq!(keyring.redeem("0000"), None);
        assert_eq!(keyring.redeem(code), Some(Principal::User));
        assert_eq!(keyring.redeem(code), None);
    }

    #[test]
    fn a_link_grows_old() {
        let dir = tempfile::tempdir().unwrap();
        let keyring = Keyring::open(dir.path()).unwrap();
        let link = keyring.link(&Principal::User, 1).unwrap();
        let code = link.rsplit('/').next().unwrap();
        let file = std::fs::File::open(dir.path().join(LINKS).join(file_name(code))).unwrap();
        file.set_modified(std::time::SystemTime::now() - LIFETIME).unwrap();
        assert_eq!(keyring.redeem(code), None);
    }
}
