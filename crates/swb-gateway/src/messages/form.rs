//! The schema of what a poster may send. [`super::draft`] reads it by hand, because keys match whatever their case and
//! parents and links come in two spellings; here stands the one spelling that the document shows.

#![expect(dead_code, reason = "only the schemas of these types are used")]

use std::collections::BTreeMap;

use schemars::JsonSchema;

/// A message, and where to post it.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct PostV1Message {
    /// The project to post to; made if there is none.
    #[schemars(regex(pattern = r"^[A-Za-z0-9_-]{1,200}$"))]
    project_id: String,
    /// A task of it.
    #[schemars(regex(pattern = r"^[A-Za-z0-9_-]{0,200}$"))]
    task_id: Option<String>,
    /// The run that posts.
    run_id: Option<String>,
    #[schemars(flatten)]
    message: PostProjectMessage,
}

/// A message for the bus that the path names.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct PostProjectMessage {
    /// `USER` if absent or blank.
    r#type: Option<String>,
    /// What to say; must not be blank.
    #[schemars(regex(pattern = r"[A-Za-z0-9]"))]
    body: String,
    /// The issue it is about.
    issue_id: Option<String>,
    /// Messages it refers to: ids, or objects.
    parents: Option<Vec<ParentForm>>,
    /// References to things outside the bus.
    links: Option<Vec<LinkForm>>,
    /// Free words; names that begin with `swb_` are reserved.
    meta: Option<BTreeMap<String, String>>,
}

/// A message that another one refers to.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum ParentForm {
    /// The id alone.
    Id(String),
    /// With the kind of the relation.
    Typed(TypedParentForm),
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct TypedParentForm {
    /// Its id.
    msg_id: String,
    /// How they are related, `reply_to` for instance.
    kind: Option<String>,
    /// Free words about the relation.
    meta: Option<BTreeMap<String, String>>,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct LinkForm {
    /// Where it is.
    url: String,
    /// What to call it.
    label: Option<String>,
    /// What it is.
    kind: Option<String>,
}
