//! The measured weaknesses of the incumbent, by name: here are those that belong to no other file.
//!
//! | weakness | test |
//! |---|---|
//! | a turn that fails too fast leaves it busy for ever | `turns::a_thousand_fast_failing_prompts_leave_it_idle_and_answering` |
//! | invalid UTF-8 kills it unsaved | `framing::invalid_utf8_is_an_error_and_the_child_lives` |
//! | an oversize line is held whole | `framing::a_huge_line_is_dropped_while_it_streams_and_costs_one_error` |
//! | a closed stdout leaves a mute process | `ending::a_parent_that_closes_stdout_ends_the_child_and_its_tools`, `ending::an_idle_child_notices_…` |
//! | tools outlive an abort and a shutdown | `aborting::an_abort_ends_a_tool_with_everything_in_its_group`, `ending::what_a_finished_command_left_…`, `guarding` |
//! | SIGTERM loses state and leaves children | `ending::a_signal_saves_ends_every_tool_and_exits_with_0` |
//! | no session until the first turn ends | `sessions::a_session_in_which_nothing_was_said_can_be_continued`, `sessions::a_child_killed_in_its_first_turn_can_be_continued` |
//! | `compact` blocks the reader, cannot be aborted, is lost in a turn, runs on nothing, ignores the provider | `compaction`, `providers::context` |
//! | no real cost, no context, no cache totals | `providers::figures`, `commands::answers_hold_what_the_contract_promises` |
//! | `usage.model` misleads | here |
//! | `follow_up` is none and answers as `prompt`; no steering | `turns::a_follow_up_waits_its_turn_…`, `turns::steering_…` |
//! | `set_model` takes anything; models that cannot be used are listed | `commands::set_model_takes_only_models_that_can_be_used`, `providers::listing` |
//! | a truncated answer is a success | `providers::failures::an_answer_that_is_cut_off_is_a_failure_and_what_was_said_stays` |
//! | no sight of retries and silence | `providers::failures::what_passes_is_tried_again_in_sight_of_the_parent`, `providers::patience` |
//! | a second more on every shutdown | here |
//! | interim responses end a parent's request early | here, `answering::each_id_is_answered_once_whatever_is_going_on` |
//! | errors of parsing carry no id | `framing::what_is_no_command_is_an_error_with_the_id_that_can_be_read` |

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::child::{Child, world};

#[test]
fn an_idle_child_ends_without_waiting_for_anything() {
    let world = world();
    // The quickest of some: the machine may be busy.
    let took = (0..5).map(|_| {
        let mut child = Child::start(&world, &[]);
        child.turn("p", "!say a");
        let begun = Instant::now();
        child.send(json!({ "type": "shutdown" }));
        assert_eq!(child.exit_code(), Some(0));
        begun.elapsed()
    });
    let took = took.min().unwrap();
    assert!(took < Duration::from_millis(500), "{took:?}");
}

#[test]
fn the_usage_of_a_turn_names_no_model_of_a_subagent() {
    let world = world();
    let mut child = Child::start(&world, &["--model", "demo"]);
    let task = json!({ "task": "!say hi\n!usage 5 1", "model": "demo/demo" });
    let frames = child.turn("p", &format!("!tool subagent {task}\n!usage 10 1\n!then\n!usage 20 1\n!say ok"));
    let end = frames.iter().find(|frame| frame["type"] == "agent_end").unwrap();
    assert_eq!((&end["usage"]["input_tokens"], end["usage"].get("model")), (&json!(35), None), "{end}");
}

#[test]
fn files_and_summaries_are_told_of_without_interim_responses() {
    let world = world();
    let note = world.folder().join("note.txt");
    std::fs::write(&note, "a note").unwrap();
    let mut child = Child::start(&world, &[]);
    child
        .send(json!({ "type": "prompt", "id": "p", "message": "!say a", "attachments": [{ "path": note }] }));
    child.send(json!({ "type": "follow_up", "id": "f", "message": "!say b" }));
    let mut frames = child.until_response("f");
    child.send(json!({ "type": "compact", "id": "c" }));
    frames.extend(child.until_response("c"));
    child.send(json!({ "type": "shutdown" }));
    assert_eq!(child.exit_code(), Some(0));
    frames.extend(child.rest());
    let answered: Vec<&Value> =
        frames.iter().filter(|frame| frame["type"] == "response").map(|frame| &frame["id"]).collect();
    assert_eq!(answered, ["p", "f", "c"]);
    assert_eq!(frames.iter().filter(|frame| frame.get("id").is_some()).count(), 3, "{frames:#?}");
}

#[test]
fn events_of_subagents_have_numbers_from_1_and_short_previews() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    let long = "wörd ".repeat(60);
    let frames = child.turn("p", &format!("!subagent !say {long}\n!then\n!subagent !fail {long}"));
    let of_type = |kind: &str| frames.iter().filter(|frame| frame["type"] == kind).collect::<Vec<_>>();
    let (starts, ends) = (of_type("subagent_start"), of_type("subagent_done"));
    let length = |value: &Value| value.as_str().unwrap().chars().count();
    for (at, (start, end)) in starts.iter().zip(&ends).enumerate() {
        assert_eq!((&start["subagent_id"], &end["subagent_id"]), (&json!(at + 1), &json!(at + 1)));
        assert_eq!(length(&start["task_preview"]), 80, "{start}");
        assert!(end["duration_secs"].is_f64(), "{end}");
    }
    assert_eq!((starts.len(), ends.len()), (2, 2));
    assert_eq!(length(&ends[0]["result_preview"]), 120);
    assert!(ends[1]["result_preview"].as_str().unwrap().starts_with("ERROR: "), "{}", ends[1]);
}
