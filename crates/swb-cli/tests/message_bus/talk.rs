//! Conversations: `swb bus wait`, `thread`, `ack`, named readers.

use crate::{post, read, root, world};

#[test]
fn wait_returns_the_message_or_gives_up() {
    let world = world();
    let first = post(&world, &["--project", "p", "--type", "GO", "--body", "1"]);
    post(&world, &["--project", "p", "--type", "GO", "--body", "2"]);
    let root = root(&world);
    let place = ["--root", root.as_str(), "--project", "p", "--json"];
    let found =
        world.swb([&["bus", "wait", "--type", "GO", "--since", &first], &place[..]].concat()).ok().json();
    assert_eq!(found["body"], "2");
    let in_vain = world.swb([&["bus", "wait", "--type", "NEVER", "--timeout", "0.05"], &place[..]].concat());
    assert_eq!(in_vain.code, Some(1), "{in_vain:?}");
    let waiting = world.spawn(
        [&["bus", "wait", "--type", "SOON", "--timeout", "30", "--since", &first], &place[..]].concat(),
    );
    post(&world, &["--project", "p", "--type", "SOON", "--body", "3"]);
    let output = waiting.wait_with_output().unwrap();
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("\"3\""));
}

#[test]
fn a_thread_is_a_tree_whichever_message_is_named() {
    let world = world();
    let question = post(&world, &["--project", "p", "--type", "QUESTION", "--body", "q"]);
    let answer =
        post(&world, &["--project", "p", "--type", "ANSWER", "--body", "a", "--reply-to", &question]);
    post(&world, &["--project", "p", "--body", "unrelated"]);
    let follow_up =
        post(&world, &["--project", "p", "--body", "f", "--parent", &format!("{answer}:depends_on")]);
    let root = root(&world);
    for id in [&question, &follow_up] {
        let lines =
            world.swb(["bus", "thread", id, "--root", &root, "--project", "p", "--json"]).ok().json_lines();
        let tree: Vec<_> = lines.iter().map(|line| (line["depth"].as_u64(), line["body"].as_str())).collect();
        assert_eq!(tree, [(Some(0), Some("q")), (Some(1), Some("a")), (Some(2), Some("f"))]);
    }
    assert_eq!(world.swb(["bus", "thread", "MSG-none", "--root", &root, "--project", "p"]).code, Some(1));
}

#[test]
fn a_named_reader_sees_each_message_once_and_repeating_a_post_is_safe() {
    let world = world();
    let first = post(&world, &["--project", "p", "--body", "1", "--key", "k1"]);
    assert_eq!(post(&world, &["--project", "p", "--body", "1", "--key", "k1"]), first);
    let reader = ["--project", "p", "--reader", "ada"];
    assert_eq!(read(&world, &reader).len(), 1);
    assert_eq!(read(&world, &reader).len(), 0);
    let second = post(&world, &["--project", "p", "--body", "2", "--sync"]);
    assert_eq!(read(&world, &reader)[0]["msg_id"], second);
    let root = root(&world);
    let acked = world
        .swb(["bus", "ack", &second, "--reader", "ada", "--root", &root, "--project", "p", "--json"])
        .ok()
        .json();
    assert_eq!(acked["acked"], second);
}
