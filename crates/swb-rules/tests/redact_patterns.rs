//! Every pattern, and ordinary text that has none.

mod redact_samples;

use std::path::Path;

use redact_samples::{noise, pem, samples};
use swb_rules::redact::{RedactedStream, redact};

#[test]
fn every_kind_of_secret_is_replaced_by_its_category() {
    for sample in samples() {
        let text = sample.around.replacen("{}", &sample.secret, 1);
        let wanted = sample.around.replacen("{}", &format!("[REDACTED:{}]", sample.category), 1);
        assert_eq!(redact(&text).text, wanted, "{text}");
    }
}

#[test]
fn a_match_says_where_and_never_what() {
    for sample in samples() {
        let text = sample.around.replacen("{}", &sample.secret, 1);
        let matches = redact(&text).matches;
        assert_eq!(matches.len(), 1, "{text}");
        let found = &matches[0];
        assert_eq!(&text[found.position..found.position + found.length], sample.secret);
        assert!(!format!("{found:?}").contains(&sample.secret));
    }
}

#[test]
fn overlapping_secrets_become_one() {
    let key = format!("ghp_{}", "a1B2".repeat(9));
    let text = format!("Authorization: Bearer {key}{key}");
    let redacted = redact(&text);
    assert_eq!(redacted.text, "Authorization: Bearer [REDACTED:AUTHORIZATION]");
    assert_eq!(redacted.matches.len(), 1);
    let block = pem("PRIVATE KEY", "", "\n");
    assert_eq!(redact(&format!("password={block}")).text, "password=[REDACTED:PASSWORD]");
}

#[test]
fn secrets_behind_escapes_and_colours_are_found() {
    let key = format!("sk-ant-api03-{}", "a1B2_".repeat(18));
    for before in [
        "\x1b[31m",
        "\x1b[1;32m",
        "line\\n",
        "x\\t",
        "token%3D",
        "\\u003d",
        "\\u001b[0m",
        "'",
        "\"",
        "/",
        "=",
    ] {
        let redacted = redact(&format!("{before}{key} end")).text;
        assert!(!redacted.contains("sk-ant"), "{redacted}");
    }
}

#[test]
fn a_secret_wrapped_by_a_terminal_is_found_wherever_the_break_is() {
    let key = format!("github_pat_{}", noise("aB3dE5gH7jK9", 82));
    for columns in [40, 57, 80] {
        for indent in 0..columns {
            let line = format!("{}{key}", "x ".repeat(indent / 2) + &" ".repeat(indent % 2));
            let wrapped = wrap(&line, columns) + "\nnext line";
            for stream in [RedactedStream::new(), RedactedStream::with_columns(columns)] {
                let redacted = through(stream, &wrapped);
                assert_eq!(
                    redacted.trim_start_matches(['x', ' ', '\n']),
                    "[REDACTED:FORGE_TOKEN]\nnext line",
                    "{wrapped}"
                );
            }
        }
    }
}

#[test]
fn every_secret_wrapped_at_a_known_width_is_hidden() {
    for sample in samples().iter().filter(|sample| !sample.secret.contains(['\n', ' '])) {
        for columns in 20..50 {
            let text = sample.around.replacen("{}", &sample.secret, 1);
            let wrapped = wrap(text.lines().next().unwrap_or_default(), columns);
            let redacted = through(RedactedStream::with_columns(columns), &wrapped);
            assert!(redacted.contains("[REDACTED:"), "{wrapped:?} at {columns}: {redacted:?}");
            for piece in wrap(&sample.secret, 8).lines().filter(|piece| piece.len() == 8) {
                assert!(
                    !redacted.replace('\n', "").contains(piece),
                    "{wrapped:?} at {columns}: {redacted:?}"
                );
            }
        }
    }
}

#[test]
fn the_line_behind_a_secret_stays() {
    let key = format!("sk-proj-{}", noise("aB3dE5gH7jK9", 120));
    for next in [
        "2024-05-01 12:00:00 INFO started",
        "NODE_ENV=production",
        "Done in 3 s.",
        "HTTP/1.1 200 OK",
        "  indented",
    ] {
        let text = format!("export OPENAI_API_KEY={key}\n{next}\n");
        assert_eq!(redact(&text).text, format!("export OPENAI_API_KEY=[REDACTED:API_KEY]\n{next}\n"));
    }
}

#[test]
fn ordinary_text_stays_as_it_is() {
    let image = format!(
        "data:image/png;base64,iVBORw0KGgo{}==",
        noise("aB3/dE5+gH7jK9mN1pQ2rS4tU6vW8xYzAIKeyJ", 4000)
    );
    let wrapped_image = wrap(&image, 76);
    let ordinary = include_str!("redact_samples/ordinary.txt");
    let mut count = 0;
    for text in ordinary.lines().chain([image.as_str(), wrapped_image.as_str()]) {
        let redacted = redact(text);
        assert_eq!(redacted.text, text);
        assert_eq!(redacted.matches, []);
        count += 1;
    }
    assert_eq!(redact(ordinary).text, ordinary, "as one text too");
    assert!(count >= 100, "{count} samples");
}

/// What git, a package manager, a test runner, `ls` and `pip` have really printed, and what is generated and committed here.
#[test]
fn output_of_real_programs_stays_as_it_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut texts = vec![
        include_str!("redact_samples/output.txt").to_owned(),
        std::fs::read_to_string(root.join("Cargo.lock")).unwrap(),
    ];
    for folder in ["schema", "docs/man"] {
        for file in std::fs::read_dir(root.join(folder)).unwrap() {
            texts.push(std::fs::read_to_string(file.unwrap().path()).unwrap());
        }
    }
    let mut bytes = 0;
    for text in &texts {
        for (found, line) in text.lines().map(|line| (redact(line).matches, line)) {
            assert_eq!(found, [], "{line}");
        }
        assert_eq!(redact(text).matches, [], "as one text too");
        bytes += text.len();
    }
    assert!(bytes > 250_000, "{bytes} bytes");
}

fn wrap(line: &str, columns: usize) -> String {
    let characters: Vec<char> = line.chars().collect();
    characters.chunks(columns).map(|row| row.iter().collect::<String>()).collect::<Vec<_>>().join("\n")
}

fn through(mut stream: RedactedStream, text: &str) -> String {
    let mut redacted = stream.push(text);
    redacted.push_str(&stream.finish().0);
    redacted
}
