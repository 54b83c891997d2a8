//! The judge on text that nobody would write: nothing panics, nothing is overlooked, bombs stay small.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use swb_rules::shell::{Command, Mode, Scope, Unclear, Verdict, judge, parse};

fn scope(mode: Mode) -> Scope {
    Scope {
        mode,
        directory: "/home/ann/project".into(),
        home: Some("/home/ann".into()),
        writable: Vec::new(),
    }
}

fn programs(command: &Command) -> BTreeSet<String> {
    command.invocations.iter().map(|invocation| invocation.program.clone()).collect()
}

/// Scripts of which it is known what they would run: `p0`, `p1` and so on in any place that runs something.
fn scripts() -> impl Strategy<Value = String> {
    let leaf = (0..10_usize, "[a-z]{1,4}").prop_map(|(program, argument)| format!("p{program} {argument}"));
    leaf.prop_recursive(5, 40, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            two.clone().prop_map(|(a, b)| format!("{a} && {b}")),
            two.clone().prop_map(|(a, b)| format!("{a} || {b}")),
            two.clone().prop_map(|(a, b)| format!("{a}; {b}")),
            two.clone().prop_map(|(a, b)| format!("{a}\n{b}")),
            two.clone().prop_map(|(a, b)| format!("{a} &\n{b}")),
            two.clone().prop_map(|(a, b)| format!("{{ {a}; }} | ( {b} )")),
            two.clone().prop_map(|(a, b)| format!("if {a}; then {b}; fi")),
            two.clone().prop_map(|(a, b)| format!("while {a}; do {b}; done")),
            two.clone().prop_map(|(a, b)| format!("case x in (a) {a};; b|c) {b};; esac")),
            two.prop_map(|(a, b)| format!("f() {{ {a}; }}; {b}")),
            inner.clone().prop_map(|a| format!("echo \"x $({a}) y\"")),
            inner.clone().prop_map(|a| format!("echo $({a})")),
            inner.clone().prop_map(|a| format!("cat <({a})")),
            inner.clone().prop_map(|a| format!("x=$({a}) true")),
            inner.clone().prop_map(|a| format!("for i in $({a}); do true; done")),
            inner.clone().prop_map(|a| format!("echo ${{x:-$({a})}}")),
            inner.clone().prop_map(|a| format!("echo $(( $({a}) + 1 ))")),
            inner.clone().prop_map(|a| format!("[[ -n $({a}) ]]")),
            inner.clone().prop_map(|a| format!("cat <<EOF\n$({a})\nEOF\n")),
            inner.clone().prop_map(|a| format!("( {a} ) > /dev/null 2>&1")),
            inner.clone().prop_map(|a| format!("! {{ {a}; }}")),
            inner.clone().prop_map(|a| format!("bash -c {}", quoted(&a))),
            inner.clone().prop_map(|a| format!("eval {}", quoted(&a))),
            inner.clone().prop_map(|a| format!(
                "echo `{}`",
                a.replace('\\', "\\\\").replace('`', "\\`").replace('$', "\\$")
            )),
            inner.prop_map(|a| format!("sudo -u bob env A=1 sh -c {}", quoted(&a))),
        ]
    })
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The programs that stand in a generated script.
fn planted(script: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in script.match_indices('p') {
        let name = &script[at..script.len().min(at + 2)];
        if name.len() == 2 && name.as_bytes()[1].is_ascii_digit() {
            found.insert(name.to_owned());
        }
    }
    found
}

/// Pieces of shell in no order.
fn soup() -> impl Strategy<Value = String> {
    let pieces = [
        "ls",
        "rm -rf /",
        " ",
        " ",
        ";",
        "&&",
        "||",
        "|",
        "&",
        "\n",
        "(",
        ")",
        "{",
        "}",
        "$(",
        "`",
        "\"",
        "'",
        "\\",
        "$",
        "${",
        "$((",
        "))",
        "((",
        "<(",
        ">",
        "<",
        "<<",
        "<<-E",
        "E",
        "<<<",
        "2>&1",
        "if",
        "then",
        "fi",
        "for",
        "in",
        "do",
        "done",
        "case",
        "esac",
        ";;",
        "while",
        "function f",
        "f()",
        "[[",
        "]]",
        "!",
        "time",
        "#",
        "=",
        "a=",
        "a=(",
        "$'",
        "\\x",
        "~",
        "*",
        "{a,b}",
        "{1..9}",
        "..",
        "/",
        "sudo",
        "env",
        "xargs",
        "find . -exec",
        "bash -c",
        "eval",
        "ssh h",
        "cd",
        "é",
        "-",
        "--",
        "{}",
        "+",
        "timeout 5",
        "sed 's/",
        "git",
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, ..ProptestConfig::default() })]

    #[test]
    fn any_text_gets_a_verdict(text in any::<String>()) {
        for mode in [Mode::ReadOnly, Mode::Workspace, Mode::Full] {
            let _ = judge(&parse(&text), &scope(mode));
        }
    }

    #[test]
    fn any_pieces_of_shell_get_a_verdict(text in soup()) {
        let command = parse(&text);
        let verdicts = [Mode::ReadOnly, Mode::Workspace].map(|mode| judge(&command, &scope(mode)));
        if command.flags.unclear {
            prop_assert!(!verdicts.contains(&Verdict::Allow), "{text:?}");
        }
        if verdicts[0] == Verdict::Allow {
            prop_assert_eq!(&verdicts[1], &Verdict::Allow, "a reader may no more than a worker: {:?}", text);
        }
    }

    #[test]
    fn every_planted_program_is_found(script in scripts()) {
        let command = parse(&script);
        if command.unclear.is_empty() {
            let found = programs(&command);
            let missing: Vec<_> = planted(&script).into_iter().filter(|name| !found.contains(name)).collect();
            prop_assert!(missing.is_empty(), "{missing:?} in {script:?}");
        }
    }
}

#[test]
fn generated_scripts_are_mostly_understood() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let understood = (0..200)
        .filter(|_| {
            let script = scripts().new_tree(&mut runner).expect("a script").current();
            parse(&script).unclear.is_empty()
        })
        .count();
    assert!(understood > 150, "{understood} of 200");
}

#[test]
fn bombs_are_unclear_and_cheap() {
    let deep = |open: &str, close: &str| format!("{}ls{}", open.repeat(5_000), close.repeat(5_000));
    let mut bombs = vec![
        deep("$(", ")"),
        deep("( ", ")"),
        deep("{ ", "; }"),
        deep("\"$(", ")\""),
        deep("${x:-", "}"),
        deep("$((", "))"),
        deep("<(", ")"),
        deep("if ", "; then :; fi"),
        deep("a=(", ")"),
        "a;".repeat(20_000),
        "a|".repeat(20_000) + "a",
        "$(".repeat(20_000),
        "`".repeat(20_001),
        "{a,b}".repeat(5_000),
        "((".repeat(20_000),
        "sed '".to_owned() + &"{".repeat(40_000) + "'",
        "x".repeat(100_000),
        "sudo ".repeat(10_000) + "ls",
    ];
    let mut nested = "ls".to_owned();
    for _ in 0..40 {
        nested = format!("bash -c {}", quoted(&nested));
        if nested.len() > 60_000 {
            break;
        }
    }
    bombs.push(nested);
    for bomb in bombs {
        let started = Instant::now();
        let command = parse(&bomb);
        let verdict = judge(&command, &scope(Mode::Workspace));
        // Milliseconds on an idle machine; what is looked for here is a quadratic, which would take minutes.
        assert!(started.elapsed() < Duration::from_secs(30), "{bomb:.60}");
        assert!(matches!(verdict, Verdict::Ask { .. }), "{bomb:.60} {verdict:?}");
    }
}

#[test]
fn limits_are_named() {
    assert_eq!(parse(&"x".repeat(100_000)).unclear, [Unclear::TooLong]);
    assert_eq!(parse(&"(".repeat(1_000)).unclear, [Unclear::TooDeep]);
    assert_eq!(parse(&"a;".repeat(5_000)).unclear, [Unclear::TooMany]);
    assert_eq!(parse("ls \u{200b}").unclear, [Unclear::Invisible]);
}
