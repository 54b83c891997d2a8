//! The message bus as REST: list and post, by query or by path.
//!
//! `scope` says which bus is meant and refuses names that could lead elsewhere, `draft` is what a poster may send, read
//! strictly (`form` is its schema), `list` and `post` are the handlers. A message on the wire is `swb_proto::message`.

mod draft;
mod form;
mod list;
mod post;
mod query;
mod scope;

pub(crate) use draft::read_body;
pub(crate) use form::{PostProjectMessage, PostV1Message};
pub(crate) use list::{list_path, list_v1};
pub(crate) use post::{Posted, post_path, post_v1};
pub(crate) use query::Query;
pub(crate) use scope::{ProjectPath, Scope};
