//! Where a bus lies under the root. Every door means the same file, whichever layout it is in.

use serde_json::json;

use crate::client::Events;
use crate::house::House;

/// List, post and stream of one bus, by both doors.
fn doors(project: &str, task: Option<&str>) -> [(String, String); 2] {
    let (path, query) = match task {
        Some(task) => (
            format!("/api/projects/{project}/tasks/{task}/messages"),
            format!("?project_id={project}&task_id={task}"),
        ),
        None => (format!("/api/projects/{project}/messages"), format!("?project_id={project}")),
    };
    [
        (path.clone(), format!("{path}/stream")),
        (format!("/api/v1/messages{query}"), format!("/api/v1/messages/stream{query}")),
    ]
}

#[track_caller]
fn every_door_shows(house: &House, project: &str, task: Option<&str>, bodies: &[&str]) {
    let bearer = house.bearer();
    for (list, stream) in doors(project, task) {
        let messages = house.get(&list).json()["messages"].take();
        let listed: Vec<_> =
            messages.as_array().expect("a list").iter().map(|message| &message["body"]).collect();
        assert_eq!(listed, bodies, "{list}");
        let mut events = Events::open(house.address(), &stream, &[("Authorization", &bearer)]);
        assert_eq!(events.bodies(bodies.len()), bodies, "{stream}");
    }
}

#[test]
fn a_project_in_runs_is_listed_posted_to_and_streamed_there() {
    let house = House::new();
    let root = &house.options.root;
    std::fs::create_dir_all(root.join("runs/p")).unwrap();
    house.say("by path");
    let v1 = json!({ "project_id": "p", "body": "by v1" });
    assert_eq!(house.post("/api/v1/messages", &v1).status, 201);
    assert!(root.join("runs/p/PROJECT-MESSAGE-BUS.md").is_file());
    assert!(!root.join("p").exists(), "a second folder of that name would hide the first");
    every_door_shows(&house, "p", None, &["by path", "by v1"]);
    let new_task = house.post("/api/projects/p/tasks/t/messages", &json!({ "body": "of the task" }));
    assert_eq!(new_task.status, 201);
    assert!(root.join("runs/p/t/TASK-MESSAGE-BUS.md").is_file());
    every_door_shows(&house, "p", Some("t"), &["of the task"]);
}

#[test]
fn a_task_is_found_three_folders_deep_and_no_deeper() {
    let house = House::new();
    let root = &house.options.root;
    std::fs::create_dir_all(root.join("teams/p/near")).unwrap();
    std::fs::create_dir_all(root.join("teams/red/p/far")).unwrap();
    for task in ["near", "far"] {
        let path = format!("/api/projects/p/tasks/{task}/messages");
        assert_eq!(house.post(&path, &json!({ "body": task })).status, 201);
        every_door_shows(&house, "p", Some(task), &[task]);
    }
    assert!(root.join("teams/p/near/TASK-MESSAGE-BUS.md").is_file());
    assert!(root.join("p/far/TASK-MESSAGE-BUS.md").is_file());
}

#[test]
fn a_stream_that_waits_for_a_bus_finds_it_in_the_other_layout() {
    let house = House::new();
    let mut events = house.stream("", &[]);
    std::fs::create_dir_all(house.options.root.join("runs/p")).unwrap();
    house.append(["made by somebody else".to_owned()]);
    assert!(house.options.root.join("runs/p/PROJECT-MESSAGE-BUS.md").is_file());
    assert_eq!(events.message().body(), "made by somebody else");
    house.say("posted here");
    assert_eq!(events.message().body(), "posted here");
    every_door_shows(&house, "p", None, &["made by somebody else", "posted here"]);
}

#[test]
fn a_folder_in_the_usual_place_comes_first_from_the_moment_it_is_there() {
    let house = House::new();
    let root = &house.options.root;
    std::fs::create_dir_all(root.join("runs/p")).unwrap();
    house.say("in runs");
    std::fs::create_dir(root.join("p")).unwrap();
    house.say("in its usual place");
    every_door_shows(&house, "p", None, &["in its usual place"]);
    std::fs::remove_dir_all(root.join("p")).unwrap();
    house.say("in runs again");
    every_door_shows(&house, "p", None, &["in runs", "in runs again"]);
}
