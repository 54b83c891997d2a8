//! The transcript in the README is run as it stands there. `…` stands for what differs from run to run.

use std::path::Path;

use testkit::World;

/// A command of the transcript and what it prints.
struct Step {
    command: String,
    expected: Vec<String>,
}

/// The blocks that begin with this.
fn transcript(fence: &str) -> Vec<Step> {
    let readme = include_str!("../../../README.md");
    let blocks = readme.split(fence).skip(1).filter_map(|rest| rest.split("```").next());
    let mut steps: Vec<Step> = Vec::new();
    for line in blocks.flat_map(str::lines) {
        match line.strip_prefix("$ ") {
            Some(command) => steps.push(Step { command: command.to_owned(), expected: Vec::new() }),
            None => steps.last_mut().expect("output follows a command").expected.push(line.to_owned()),
        }
    }
    steps
}

/// Whether `line` is `pattern` with something in the place of each `…`.
fn matches(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.split('…');
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let parts: Vec<&str> = parts.collect();
    for (at, part) in parts.iter().enumerate() {
        let last = at + 1 == parts.len();
        let found = if last && part.is_empty() {
            return true;
        } else if last {
            rest.rfind(part)
        } else {
            rest.find(part)
        };
        let Some(found) = found else { return false };
        rest = &rest[found + part.len()..];
    }
    rest.is_empty()
}

#[test]
fn the_transcript_of_the_readme_really_runs() {
    let steps = transcript("```console\n");
    assert!(steps.len() >= 9, "the transcript is there");
    run(steps);
}

/// On a machine of its own, because it is what a newcomer does first.
#[test]
fn the_tour_of_the_readme_really_runs() {
    let steps = transcript("```console tour\n");
    assert!(steps.len() >= 3 && steps[0].command.contains("show me around"), "the tour is there");
    run(steps);
}

fn run(steps: Vec<Step>) {
    let binary = env!("CARGO_BIN_EXE_swb");
    let world = World::new().with_binary(binary);
    std::fs::write(world.folder().join("README.md"), "A project to look at.\n").expect("a file");
    let folder = Path::new(binary).parent().expect("the binary lies in a folder").display();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
    for Step { command, expected } in steps {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &command]).env_clear().env("SWB_HOME", world.home()).env("PATH", &path);
        shell.current_dir(world.folder());
        let output = shell.output().expect("a shell");
        let printed = String::from_utf8_lossy(&output.stdout);
        let printed: Vec<&str> = printed.lines().collect();
        let same = printed.len() == expected.len()
            && expected.iter().zip(&printed).all(|(pattern, line)| matches(pattern, line));
        assert!(
            same,
            "$ {command}\nthe README says:\n{expected:#?}\nit prints:\n{printed:#?}\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn a_pattern_matches_only_what_it_says() {
    assert!(matches("a … c", "a b c") && matches("x…", "xyz") && matches("exact", "exact"));
    assert!(!matches("a … c", "a b d") && !matches("exact", "exactly") && !matches("x…y", "x"));
}
