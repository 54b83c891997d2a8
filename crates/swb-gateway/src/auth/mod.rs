//! Who a request comes from: one secret per principal, in files that only this user can read.
//!
//! `keyring` holds the tokens, `sign_in` turns one into a browser's cookie through a link that works once, `credentials`
//! finds the secret in a request. The files are the truth: a token made by the command line counts at once, a file removed
//! is a token revoked.

mod credentials;
mod keyring;
mod secret_file;
mod sign_in;

pub(crate) use credentials::{in_headers, split_prefix};
pub use keyring::{Keyring, KeyringError, Principal, PrincipalError};
pub(crate) use sign_in::sign_in;
