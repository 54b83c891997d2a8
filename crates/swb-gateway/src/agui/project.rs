//! Which project a new conversation is about.

use axum::http::HeaderMap;
use swb_proto::project::Project;

use super::input::RunAgentInput;
use crate::failure::{ErrorCode, Failure};
use crate::messages::Query;

pub(super) const HEADER: &str = "x-switchboard-project";

/// What the client names: in the query, in a header or among what the front end passes on.
pub(super) fn named(query: &Query, headers: &HeaderMap, input: &RunAgentInput) -> Option<String> {
    let header = headers.get(HEADER).and_then(|value| value.to_str().ok()).map(str::trim);
    query
        .get("project")
        .or(header.filter(|name| !name.is_empty()))
        .or_else(|| input.prop("project_id"))
        .or_else(|| input.prop("project"))
        .map(str::to_owned)
}

/// The project of that id, name or folder; without one the only project there is.
pub(super) fn choose(projects: Vec<Project>, named: Option<&str>) -> Result<Project, Failure> {
    let known = projects.iter().map(|project| project.slug.as_str()).collect::<Vec<_>>().join(", ");
    let Some(name) = named else {
        let mut projects = projects.into_iter();
        return match (projects.next(), projects.next()) {
            (Some(only), None) => Ok(only),
            (None, _) => Err(Failure::bad_request(
                "there is no project to work in yet; `swb projects init DIR` takes a folder in",
            )),
            _ => Err(Failure::bad_request(format!(
                "say which project: ?project=, the header {HEADER} or forwardedProps.project_id; there are {known}"
            ))),
        };
    };
    let is_it = |project: &Project| {
        project.project_id.as_str() == name
            || project.slug == name
            || project.root_path == name.trim_end_matches('/')
    };
    let found = projects.into_iter().find(is_it);
    found.ok_or_else(|| {
        let known =
            if known.is_empty() { "there is none yet".to_owned() } else { format!("there are {known}") };
        Failure::new(ErrorCode::NotFound, format!("there is no project {name}; {known}"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn project(id: &str) -> Project {
        serde_json::from_value(json!({
            "project_id": format!("proj_{id}"), "workspace_id": "ws_1", "slug": id, "root_path": format!("/home/{id}"),
            "status": "active", "created_at": "2026-02-26T00:00:00.000Z",
        }))
        .unwrap()
    }

    #[test]
    fn the_only_one_need_not_be_named() {
        assert_eq!(choose(vec![project("a")], None).unwrap().slug, "a");
        assert!(choose(vec![], None).unwrap_err().message().contains("swb projects init"));
        assert!(
            choose(vec![project("a"), project("b")], None).unwrap_err().message().ends_with("there are a, b")
        );
    }

    #[test]
    fn it_is_named_by_its_id_its_name_or_its_folder() {
        let projects = || vec![project("a"), project("b")];
        for name in ["proj_b", "b", "/home/b", "/home/b/"] {
            assert_eq!(choose(projects(), Some(name)).unwrap().slug, "b", "{name}");
        }
        assert!(choose(projects(), Some("c")).unwrap_err().message().contains("no project c"));
    }
}
