//! Without a terminal: the answer on standard output and nothing else, or every frame of the protocol.

use serde_json::json;

use crate::{bash, run, run_with_input, sessions, world};

#[test]
fn the_answer_and_nothing_else_is_printed() {
    let world = world();
    let ran = run(&world, &["!think hm\n!tool ls {}\n!say **Two** words"]).ok();
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("**Two** words\n", ""));
}

#[test]
fn what_is_said_before_and_after_a_tool_are_two_paragraphs() {
    let world = world();
    assert_eq!(run(&world, &["!say one\n!tool ls {}\n!say two"]).ok().stdout, "one\n\ntwo\n");
    assert_eq!(run(&world, &["!say one\\n\n!tool ls {}\n!say two\\n"]).ok().stdout, "one\n\ntwo\n");
}

#[test]
fn the_prompt_may_come_from_standard_input() {
    let world = world();
    assert_eq!(run_with_input(&world, &["-"], b"!say from stdin\n").ok().stdout, "from stdin\n");
    assert_eq!(run_with_input(&world, &[], b"!say without a dash\n").ok().stdout, "without a dash\n");
    assert_eq!(run_with_input(&world, &["!say given"], b"!say not this").ok().stdout, "given\n");
}

#[test]
fn a_prompt_that_is_none_is_a_usage_error_and_begins_no_session() {
    let world = world();
    for (arguments, input) in [
        (vec![], &b""[..]),
        (vec!["-"], b" \n"),
        (vec![""], b""),
        (vec!["-"], b"\xff\xfe"),
        (vec!["a", "b"], b""),
    ] {
        let ran = run_with_input(&world, &arguments, input);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{arguments:?} {input:?}");
        assert!(!ran.stderr.is_empty());
    }
    let long = vec![b'x'; 2 * 1024 * 1024];
    let ran = run_with_input(&world, &["-"], &long);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("1 MiB"), "{}", ran.stderr);
    assert!(sessions(&world).is_empty());
}

#[test]
fn a_turn_that_fails_says_why_and_has_a_code_of_its_own() {
    let world = world();
    let ran = run(&world, &["!say half\n!fail no luck"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(7), "half\n"));
    assert!(ran.stderr.contains("the turn failed") && ran.stderr.contains("no luck"), "{}", ran.stderr);
    let ran = run(&world, &["--model", "nobody/nothing", "hello"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(7), ""));
}

#[test]
fn an_agent_that_does_not_start_is_told_in_its_own_words() {
    let world = world();
    let ran = run(&world, &["--continue", "sess_nobody", "hello"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("there is no session `sess_nobody`"), "{}", ran.stderr);
}

#[test]
fn it_goes_on_with_the_latest_session_of_the_folder_or_one_by_its_id() {
    let world = world();
    let none = run(&world, &["--continue", "hello"]);
    assert_eq!(none.code, Some(1));
    assert!(none.stderr.contains("no session of this folder"), "{}", none.stderr);
    run(&world, &["!say one"]).ok();
    run(&world, &["--continue", "!say two"]).ok();
    run(&world, &["!say three", "-c"]).ok();
    let listed = sessions(&world);
    assert_eq!((listed.len(), &listed[0]["turns"]), (1, &json!(3)));
    let id = listed[0]["id"].as_str().unwrap();
    run(&world, &["a session of its own"]).ok();
    run(&world, &["--continue", id, "!say four"]).ok();
    run(&world, &[&format!("--continue={}", &id[5..]), "!say five"]).ok();
    let listed = sessions(&world);
    assert_eq!((listed[0]["id"].as_str(), &listed[0]["turns"]), (Some(id), &json!(5)));
}

#[test]
fn every_frame_is_printed_as_it_came() {
    let world = world();
    let ran = run(&world, &["--json", "!say hi\n!usage 3 4"]).ok();
    let frames = ran.json_lines();
    let kinds: Vec<_> = frames.iter().map(|frame| frame["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["ready", "message_update", "agent_end", "response"]);
    assert_eq!(frames[1]["event"]["delta"], "hi");
    assert_eq!(frames[3]["ok"], true);
    let failed = run(&world, &["--json", "!fail no"]);
    assert_eq!(failed.code, Some(7));
    assert_eq!(failed.json_lines().last().unwrap()["error"], "no");
}

#[test]
fn what_needs_approval_is_denied_because_nobody_can_be_asked() {
    let world = world();
    let ran = run(&world, &["!ask rm -rf ./x\n!tool ls {}"]).ok();
    assert!(ran.stdout.contains("Denied"), "{}", ran.stdout);
    let script = bash("touch made");
    run(&world, &["--mode", "full", &script]).ok();
    assert!(world.folder().join("made").exists());
    run(&world, &["--mode", "read-only", &bash("touch more")]).ok();
    assert!(!world.folder().join("more").exists());
}

#[test]
fn escape_sequences_of_a_model_are_not_passed_on() {
    let world = world();
    let ran = run(&world, &["!say a\u{1b}]0;title\u{7}b\u{1b}[2Jc\u{9b}31m\u{202e}d"]).ok();
    assert_eq!(ran.stdout, "abc\u{fffd}d\n");
}

#[test]
fn files_go_along_with_the_prompt() {
    let world = world();
    std::fs::create_dir(world.folder().join("sub")).unwrap();
    std::fs::write(world.folder().join("notes.txt"), "some notes").unwrap();
    run(&world, &["--attach", "sub/../notes.txt", "!say seen"]).ok();
    let id = sessions(&world)[0]["id"].as_str().unwrap().to_owned();
    let history = std::fs::read_to_string(world.paths().sessions(None).join(format!("{id}.jsonl"))).unwrap();
    assert!(history.contains("notes.txt"), "{history}");
    let refused = run(&world, &["--attach", "nowhere.txt", "!say seen"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(7), ""));
    assert!(refused.stderr.contains("nowhere.txt"), "{}", refused.stderr);
}

#[test]
fn settings_and_the_system_prompt_reach_the_agent() {
    let world = world();
    run(&world, &["--system", "--be brief", "--model", "demo/demo", "--profile", "work", "!say hi"]).ok();
    let listed = world.swb(["sessions", "--json", "--profile", "work"]).ok().json_lines();
    assert_eq!(listed[0]["model"], "demo/demo");
    let file =
        world.paths().sessions(Some("work")).join(format!("{}.jsonl", listed[0]["id"].as_str().unwrap()));
    assert!(std::fs::read_to_string(file).unwrap().contains("\"system\":\"--be brief\""));
    assert_eq!(run(&world, &["--set", "log.level=loud", "hi"]).code, Some(6));
}
