//! Which bus a request means. Names come from outside and become folder names, so they are judged here, and the journal
//! judges them again while it walks.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;

use super::query::Query;
use crate::failure::Failure;

/// The longest name a file system takes.
const LONGEST: usize = 255;

/// A project, or a task of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Scope {
    project: String,
    task: Option<String>,
}

impl Scope {
    /// Blank tasks mean none.
    pub(crate) fn new(project: &str, task: Option<&str>) -> Result<Self, Failure> {
        let project = identifier("project_id", project)?;
        let task = task
            .filter(|task| !task.trim().is_empty())
            .map(|task| identifier("task_id", task))
            .transpose()?;
        Ok(Scope { project, task })
    }

    /// From `project_id` and `task_id` of a query.
    pub(crate) fn from_query(query: &Query) -> Result<Self, Failure> {
        Self::new(query.get("project_id").unwrap_or_default(), query.get("task_id"))
    }

    pub(crate) fn project(&self) -> &str {
        &self.project
    }

    pub(crate) fn task(&self) -> Option<&str> {
        self.task.as_deref()
    }
}

/// A scope given in the path: `{project}` and perhaps `{task}`.
#[derive(Debug)]
pub(crate) struct ProjectPath(pub(crate) Scope);

impl<S: Send + Sync> FromRequestParts<S> for ProjectPath {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let names = RawPathParams::from_request_parts(parts, state)
            .await
            .map_err(|_| Failure::bad_request("the path is not valid UTF-8"))?;
        // An encoded slash would have been two segments: no route has that shape.
        if names.iter().any(|(_, name)| name.contains('/')) {
            return Err(Failure::not_found());
        }
        let named = |which| names.iter().find_map(|(name, value)| (name == which).then_some(value));
        let task = named("task").map(|task| identifier("task_id", task)).transpose()?;
        let project = identifier("project_id", named("project").unwrap_or_default())?;
        Ok(ProjectPath(Scope { project, task }))
    }
}

/// A name that can be the name of a folder and of nothing else. It is also judged as it would read after one more
/// decoding, because some intermediary may have encoded it twice.
fn identifier(which: &str, name: &str) -> Result<String, Failure> {
    let name = name.trim();
    let refuse = |why: &str| Err(Failure::bad_request(format!("{which} {why}")));
    if name.is_empty() {
        return refuse("is required");
    }
    let decoded = percent_encoding::percent_decode_str(name).decode_utf8_lossy();
    for name in [name, &decoded] {
        if name.contains(['/', '\\']) {
            return refuse("must not contain path separators");
        }
        if name.contains("..") || name == "." {
            return refuse("must not contain ..");
        }
        if name.chars().any(char::is_control) {
            return refuse("must not contain control characters");
        }
    }
    if name.len() > LONGEST {
        return refuse("must not be longer than 255 bytes");
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_lead_elsewhere_are_refused() {
        for name in [
            "",
            " ",
            "..",
            ".",
            "a/b",
            "a\\b",
            "%2e%2e",
            "a%2fb",
            "a%5Cb",
            "x..y",
            "a\0b",
            "a%00b",
            "a\nb",
            &"x".repeat(256),
        ] {
            assert!(Scope::new(name, None).is_err(), "{name:?}");
            assert!(name.trim().is_empty() || Scope::new("p", Some(name)).is_err(), "{name:?}");
        }
        let scope = Scope::new("  my project ", Some(" ")).unwrap();
        assert_eq!(
            (scope.project(), scope.task()),
            ("my project", None),
            "blanks around a name are not part of it"
        );
        assert!(Scope::new("100%", Some("task-1")).is_ok());
    }
}
