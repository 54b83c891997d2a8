//! The parser beside a real bash: every program that bash tries to start must have been listed, or the line unclear.
//!
//! Bash runs the line with an empty search path, so nothing starts; its handler for unknown commands writes the names
//! down. Without a bash there is nothing to compare with and the tests pass.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use swb_rules::shell::parse;

/// Names are written down by the handler; functions may not call themselves for ever.
const PRELUDE: &str = "FUNCNEST=3; command_not_found_handle() { printf '%s\\n' \"$1\" >&9; return 1; }; exec 9>&2 2>/dev/null >/dev/null </dev/null\n";

/// What bash tries to run.
fn tried_by_bash(line: &str) -> Option<BTreeSet<String>> {
    let output = Command::new("/usr/bin/timeout")
        .args(["3", "/bin/bash", "--norc", "--noprofile", "-c", &format!("{PRELUDE}{line}")])
        .env_clear()
        .env("PATH", "/nonexistent")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .ok()?;
    Some(String::from_utf8_lossy(&output.stderr).lines().map(str::to_owned).collect())
}

#[test]
fn the_comparison_sees_what_bash_tries() {
    if let Some(tried) = tried_by_bash("pa x | pb; 'p'c") {
        assert_eq!(tried, ["pa", "pb", "pc"].map(str::to_owned).into());
    }
}

fn overlooked(line: &str) -> Vec<String> {
    let command = parse(line);
    if !command.unclear.is_empty() {
        return Vec::new();
    }
    let listed: BTreeSet<&str> =
        command.invocations.iter().map(|invocation| invocation.program.as_str()).collect();
    let tried = tried_by_bash(line).unwrap_or_default();
    tried.into_iter().filter(|name| !listed.contains(name.as_str())).collect()
}

/// Pieces of which no combination can touch a file: the programs do not exist and redirections go nowhere.
fn soup() -> impl Strategy<Value = String> {
    let pieces = [
        "pa",
        "pb",
        "pc",
        "'pd'",
        "\"pe\"",
        "p\\f",
        " ",
        " ",
        " ",
        ";",
        "; ",
        "&&",
        "||",
        "|",
        "|&",
        "\n",
        "\n",
        "(",
        ")",
        "{ ",
        "; }",
        "$(",
        ")",
        "`",
        "\"",
        "'",
        "\\",
        "$",
        "${",
        "}",
        "$((",
        "))",
        "((",
        "<(",
        "</dev/null ",
        ">/dev/null ",
        "2>&1 ",
        "&>/dev/null ",
        "<<E\n",
        "<<'E'\n",
        "<<-E\n",
        "\nE\n",
        "<<<",
        "if ",
        "; then ",
        "; else ",
        "; fi",
        "for x in ",
        "; do ",
        "; done",
        "case ",
        " in ",
        " esac",
        ";;",
        ";&",
        "a) ",
        "f() ",
        "function g ",
        "f",
        "[[ ",
        " ]]",
        "! ",
        "time ",
        "#",
        "=",
        "a=",
        "a=(",
        "$'",
        "\\x70",
        "{pa,pb}",
        "$a",
        "${a:-",
        "${#a}",
        "eval ",
        "command ",
        "exec ",
        "builtin ",
        "\\\n",
        "\t",
        "true ",
        "+",
        "1",
        "-c ",
        "$'\\x70\\x61' ",
        "trap ",
        " EXIT",
        "<<\"E\"\n",
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 1..14).prop_map(|pieces| pieces.concat())
}

/// Lines that are shell but for a piece or two: more of them get past the parser.
fn damaged() -> impl Strategy<Value = String> {
    let lines = [
        "pa x | pb",
        "if pa; then pb; else pc; fi",
        "echo \"$(pa \"$(pb)\")\"",
        "echo `pa \\`pb\\``",
        "cat <<E\n$(pa)\nE\npb",
        "case x in x) pa;; *) pb;; esac",
        "for x in $(pa) {pb,pc}; do $x; pd; done",
        "f() { pa \"$1\"; }; f x",
        "[[ a == $(pa) ]] && pb",
        "echo $((1 + $(pa))) ${x:-$(pb)}",
        "(pa; pb) | { pc; pd; }",
        "eval 'pa; pb' \"pc\"",
        "a=$(pa) b=(x $(pb)) pc",
        "pa <(pb) >/dev/null 2>&1 & pc",
        "cat <<'E' | pa\n$(pb)\nE\n",
        "trap 'pa' EXIT; pb",
        "command -p pa; exec pb",
        "function g { pa; }\ng || pb # pc",
        "! pa && time -p pb || pc",
        "pa \\\n&& pb",
        "$'p\\x61' \\pb",
        "echo \"a\\\"$(pa)b\" 'c' $\"d $(pb)\"",
    ];
    (
        prop::sample::select(lines.to_vec()),
        prop::sample::select(lines.to_vec()),
        prop::collection::vec((any::<prop::sample::Index>(), soup()), 0..2),
    )
        .prop_map(|(one, other, damage)| {
            let mut line = format!("{one}\n{other}");
            for (place, piece) in damage {
                let at = line.floor_char_boundary(place.index(line.len() + 1));
                let piece: String = piece.chars().take(4).collect();
                line.insert_str(at, &piece);
            }
            line
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_bash_would_start_is_overlooked(line in soup()) {
        prop_assert_eq!(overlooked(&line), Vec::<String>::new(), "{}", line);
    }

    #[test]
    fn nothing_is_overlooked_in_damaged_lines(line in damaged()) {
        prop_assert_eq!(overlooked(&line), Vec::<String>::new(), "{}", line);
    }
}

#[test]
fn tricky_lines_are_read_as_bash_reads_them() {
    for line in [
        "pa\\\nb",
        "'p'a\"b\" x",
        "echo \"$(pa \"$(pb)\")\"",
        "echo `pa \\`pb\\``",
        "echo \"`pa \"x\"`\"",
        "echo $((1+$(pa)))",
        "echo $( (pa); (pb) )",
        "echo $((pa); (pb))",
        "((pa; pb))",
        "case pa in pa) pb;; esac",
        "echo $(case x in x) pa;; esac)",
        "cat <<E; pa\n$(pb)\nE\npc",
        "cat <<'E'\n$(pb)\nE\npc",
        "cat <<-E\n\t$(pb)\n\tE\npc",
        "pa <<E | pb <<F\n$(pc)\nE\n$(pd)\nF\n",
        "f() { pa; }; f",
        "function f { pa; }\nf",
        "f() if pa; then pb; fi; f",
        "time -p pa",
        "! ! pa",
        "{ pa; } | { pb; }",
        "pa# x",
        "pa #x; pb",
        "$'\\x70\\141' x",
        "{pa,x}",
        "a=1 b=2 pa",
        "a=(1 $(pa)); pb",
        "[[ x == $(pa) ]] || pb",
        "for ((i=0;i<1;i++)); do pa; done",
        "for x in 1 2\ndo pa; done",
        "select x in a; do pa; done",
        "eval 'pa; pb'",
        "eval pa\\;pb",
        "trap 'pa' EXIT",
        "exec pa",
        "command pa",
        "if pa; then pb; elif pc; then pd; else pe; fi",
        "pa 2>&1 >/dev/null | pb",
        "pa &>/dev/null & pb",
        "echo ${x:-$(pa)} ${x:=`pb`}",
        "coproc pa",
        "=\\\n\\\n\\",
        "$\\\neval pa",
        "echo $\\\n(pa)",
        "echo \"$\\\n(pa)\"",
        "i\\\nf pa; then pb; fi",
        "pa &\\\n& pb",
        "x='$(pa)'; echo ${x@\\\nP}",
        "pa 2\\\n>/dev/null",
        "1&>/dev/null",
        "1>/dev/null pa",
        "a[;pa ]=1; pb",
        "a[<<E ]=1\npa\nE",
        "declare a[<<E ]=1\npa\nE",
        "pa;;",
        "(pa)(pb)",
        "pa ) pb",
        "if pa; then; pb; fi",
    ] {
        assert_eq!(overlooked(line), Vec::<String>::new(), "{line}");
    }
}
