//! On a terminal: Markdown, tools, questions, interruptions, and a terminal that is left as it was.

use crate::terminal::Terminal;
use crate::{bash, sessions, wait_for_agents_to_end, world};

#[test]
fn the_answer_is_rendered_with_tools_and_figures() {
    let world = world();
    let script = format!("!think let me see\n{}\n!say # Title\\n\\nIt is **bold**.", bash("echo out"));
    let mut terminal = Terminal::start(&world, &["--mode", "full", &script]);
    assert_eq!(terminal.exit_code(), Some(0));
    terminal.until("sess_");
    let text = terminal.text();
    for shown in [
        "let me see",
        "● bash  $ echo out",
        "  out",
        "Title",
        "It is bold.",
        "✓ done",
        " tokens in · ",
        "demo",
    ] {
        assert!(text.contains(shown), "{shown:?} in {text}");
    }
    assert!(!text.contains("**"), "{text}");
    assert!(terminal.echoes(), "the terminal is left as it was");
    assert!(terminal.raw().trim_end().ends_with("\u{1b}[?25h"), "the cursor is back");
}

#[test]
fn a_permission_is_given_or_refused_with_one_key() {
    let world = world();
    for (key, made) in [("n", false), ("y", true)] {
        let mut terminal = Terminal::start(&world, &["!ask rm -f x && touch made"]);
        terminal.until("May bash do this?");
        assert!(terminal.text().contains("rm -f x && touch made"));
        terminal.press(key);
        assert_eq!(terminal.exit_code(), Some(0));
        assert_eq!(world.folder().join("made").exists(), made, "{key}");
    }
}

#[test]
fn an_answer_may_stand_for_the_rest_of_the_run() {
    let world = world();
    let script = "!ask rm -f a; touch one\n!then\n!ask rm -f b; touch two";
    let mut terminal = Terminal::start(&world, &[script]);
    terminal.until("May bash do this?");
    terminal.press("a");
    assert_eq!(terminal.exit_code(), Some(0));
    assert!(world.folder().join("one").exists() && world.folder().join("two").exists());
    let mut terminal = Terminal::start(&world, &["!ask rm one\n!then\n!ask rm two"]);
    terminal.until("May bash do this?");
    terminal.press("d");
    assert_eq!(terminal.exit_code(), Some(0));
    assert!(world.folder().join("one").exists() && world.folder().join("two").exists());
}

#[test]
fn what_was_typed_before_the_question_is_no_answer_to_it() {
    let world = world();
    let mut terminal = Terminal::start(&world, &["!say wait\n!until go\n!ask rm -f x; touch made"]);
    terminal.until("wait");
    terminal.press("yyyyaaaa");
    std::fs::write(world.folder().join("go"), "").unwrap();
    terminal.until("May bash do this?");
    terminal.press("n");
    assert_eq!(terminal.exit_code(), Some(0));
    assert!(!world.folder().join("made").exists());
}

#[test]
fn a_question_takes_words_or_the_number_of_an_option() {
    let world = world();
    for (typed, answer) in [("grün\r", "grün"), ("2\r", "blue"), ("rubbish\u{15}RED\r", "red")] {
        let mut terminal = Terminal::start(&world, &["!ask_user Which colour? | red | blue"]);
        terminal.until("2. blue");
        terminal.press(typed);
        assert_eq!(terminal.exit_code(), Some(0));
        terminal.until(&format!("ask_user → {answer}"));
    }
}

#[test]
fn ctrl_c_aborts_the_turn_and_twice_leaves() {
    let world = world();
    let mut terminal = Terminal::start(&world, &["!say begun\n!stall"]);
    terminal.until("begun");
    assert!(!terminal.echoes());
    terminal.press("\u{3}");
    assert_eq!(terminal.exit_code(), Some(130));
    terminal.until("■ aborted");
    assert!(terminal.echoes());
    assert_eq!(sessions(&world)[0]["last_turn"], "cancelled");

    let mut terminal = Terminal::start(&world, &["!ask rm x"]);
    terminal.until("May bash do this?");
    terminal.press("\u{3}\u{3}");
    assert_eq!(terminal.exit_code(), Some(130));
    assert!(terminal.echoes());
    wait_for_agents_to_end(&world);
}

#[test]
fn a_failed_turn_is_told_once() {
    let world = world();
    let mut terminal = Terminal::start(&world, &["!say half\n!fail no luck"]);
    assert_eq!(terminal.exit_code(), Some(7));
    terminal.until("✗ failed");
    assert_eq!(terminal.text().matches("no luck").count(), 1, "{}", terminal.text());
}

#[test]
fn nothing_that_a_model_or_a_tool_says_commands_the_terminal() {
    let world = world();
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{1b}[?1049h\u{9b}31m\u{1b}]52;c;aGk=\u{7}";
    std::fs::write(world.folder().join("evil"), evil).unwrap();
    let script = format!("!think {evil}\n{}\n!say say{evil} *this*", bash("cat evil; sleep 0.2"));
    let mut terminal = Terminal::start(&world, &["--mode", "full", &script]);
    assert_eq!(terminal.exit_code(), Some(0));
    terminal.until("✓ done");
    let raw = terminal.raw();
    for sequence in ["\u{1b}]", "[2J", "1049h", "\u{9b}", "owned", "\u{7}"] {
        assert!(!raw.contains(sequence), "{sequence:?} in {raw:?}");
    }
}

#[test]
fn a_window_of_another_size_is_drawn_anew() {
    let world = world();
    let words = "word ".repeat(60);
    let mut terminal = Terminal::start(&world, &[&format!("!say {words}\n!until go\n!say and then the end")]);
    terminal.until("word word");
    terminal.resize(30, 10);
    std::fs::write(world.folder().join("go"), "").unwrap();
    assert_eq!(terminal.exit_code(), Some(0));
    terminal.until("the end");
}

#[test]
fn an_answer_longer_than_the_screen_is_whole() {
    let world = world();
    let items: Vec<String> = (0..200).map(|at| format!("- item number {at}")).collect();
    let mut terminal = Terminal::start(&world, &[&format!("!say {}\\n\\nThe end.", items.join("\\n"))]);
    assert_eq!(terminal.exit_code(), Some(0));
    terminal.until("✓ done");
    let text = terminal.text();
    for at in 0..200 {
        assert!(text.contains(&format!("• item number {at}\r")), "{at} in {text}");
    }
}

#[test]
fn a_window_that_is_closed_leaves_no_agent_behind() {
    let world = world();
    let mut terminal = Terminal::start(&world, &["!say begun\n!stall"]);
    terminal.until("begun");
    terminal.hang_up();
    assert_eq!(terminal.exit_code(), Some(129));
    wait_for_agents_to_end(&world);
}

#[test]
fn without_a_terminal_that_can_be_drawn_on_the_words_are_enough() {
    let world = world();
    let mut command = world.command(["run", "--no-daemon", "!say **plain**"]);
    let output = command.env("TERM", "dumb").output().unwrap();
    assert_eq!(output.stdout, b"**plain**\n");
}
