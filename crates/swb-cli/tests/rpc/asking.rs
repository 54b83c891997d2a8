//! Questions to the user: `ask_user`, and the frames `ask`, `answer` and `ask_closed`.

use serde_json::{Value, json};

use crate::child::{Child, results, world};

#[track_caller]
fn asked(child: &mut Child) -> Value {
    child.until("the ask", |frame| frame["type"] == "ask").pop().unwrap()
}

fn answer(ask: &Value, option: Option<&str>, text: Option<&str>) -> Value {
    let mut answer = json!({ "type": "answer", "id": "w", "ask_id": ask["ask_id"] });
    option.into_iter().for_each(|option| answer["option"] = json!(option));
    text.into_iter().for_each(|text| answer["text"] = json!(text));
    answer
}

#[test]
fn the_user_is_asked_and_the_model_gets_the_answer() {
    let world = world();
    let mut child = Child::start(&world, &["--asks"]);
    child.prompt("p", "!ask_user Which colour? | red | blue");
    let ask = asked(&mut child);
    assert_eq!(ask["reason"], "Which colour?");
    assert_eq!((&ask["options"], &ask["free_text"]), (&json!(["red", "blue"]), &json!(true)));
    assert_eq!((&ask["risk"], &ask["subject"]["tool"]), (&json!("low"), &json!("ask_user")));
    assert_eq!(ask["subject"]["session_id"], child.session_id);
    assert_eq!(child.ask(answer(&ask, Some("green"), None))["type"], "error");
    assert_eq!(child.ask(answer(&ask, None, None))["type"], "error");
    child.send(answer(&ask, Some("blue"), Some("a dark one")));
    let frames = child.until_response("p");
    assert_eq!(results(&frames), ["blue\na dark one"]);
    assert!(!frames.iter().any(|frame| frame["type"] == "ask_closed"), "an answered ask needs no closing");
}

#[test]
fn a_question_without_options_is_answered_in_words() {
    let world = world();
    let mut child = Child::start(&world, &["--asks"]);
    child.prompt("p", "!ask_user What is it called?");
    let ask = asked(&mut child);
    child.send(answer(&ask, None, Some("Ann\u{e9}")));
    assert_eq!(results(&child.until_response("p")), ["Ann\u{e9}"]);
}

#[test]
fn without_a_parent_that_answers_the_model_is_told_so() {
    let world = world();
    let mut child = Child::start(&world, &[]);
    let frames = child.turn("p", "!ask_user Which? | a | b");
    assert!(results(&frames)[0].contains("nobody can be asked"), "{frames:?}");
    assert_eq!(frames.last().unwrap()["ok"], true, "the turn goes on");
}

#[test]
fn a_question_nobody_answers_in_time_is_closed() {
    let world = world();
    let mut child = Child::start(&world, &["--asks"]);
    child.prompt("p", "!tool ask_user {\"question\":\"Now?\",\"timeout\":1}");
    let ask = asked(&mut child);
    let frames = child.until_response("p");
    let closed = frames.iter().find(|frame| frame["type"] == "ask_closed").expect("it is closed");
    assert_eq!((&closed["ask_id"], &closed["outcome"]), (&ask["ask_id"], &json!("expired")));
    assert!(results(&frames)[0].contains("in time"), "{frames:?}");
    assert_eq!(child.ask(answer(&ask, None, Some("late")))["type"], "error");
}

#[test]
fn an_abort_closes_the_question_and_its_answer_is_not_taken_later() {
    let world = world();
    let mut child = Child::start(&world, &["--asks"]);
    child.prompt("p", "!ask_user Which?");
    let first = asked(&mut child);
    child.send(json!({ "type": "abort", "id": "a" }));
    let frames = child.until_response("a");
    let closed = frames.iter().find(|frame| frame["type"] == "ask_closed").expect("it is closed");
    assert_eq!(closed["outcome"], "cancelled");
    // Neither by the next question of this process …
    child.prompt("q", "!ask_user Which now?");
    let second = asked(&mut child);
    assert_eq!(child.ask(answer(&first, None, Some("late")))["type"], "error");
    child.close_stdin();
    assert_eq!(child.exit_code(), Some(0));
    // … nor by one of the next process of this session.
    let mut again = Child::start(&world, &["--asks", "--continue", &child.session_id]);
    again.prompt("r", "!ask_user And now?");
    let third = asked(&mut again);
    for old in [&first, &second] {
        assert_eq!(again.ask(answer(old, None, Some("late")))["type"], "error");
    }
    again.send(answer(&third, None, Some("this")));
    assert_eq!(results(&again.until_response("r")), ["this"]);
}
