//! Planted secrets do not survive, and chunks do not matter.

mod redact_samples;

use proptest::prelude::*;
use redact_samples::samples;
use swb_rules::redact::{Match, RedactedStream, is_plain_json, redact, redact_json};

/// The stream's result for a text that is cut at `cuts`.
fn in_chunks(mut stream: RedactedStream, text: &str, cuts: &[usize]) -> (String, Vec<Match>) {
    let mut places: Vec<usize> =
        cuts.iter().map(|cut| text.floor_char_boundary(cut % (text.len() + 1))).collect();
    places.extend([0, text.len()]);
    places.sort_unstable();
    let (mut redacted, mut matches) = (String::new(), Vec::new());
    for pair in places.windows(2) {
        redacted.push_str(&stream.push(&text[pair[0]..pair[1]]));
        matches.append(&mut stream.take_matches());
    }
    let (rest, last) = stream.finish();
    redacted.push_str(&rest);
    matches.extend(last);
    (redacted, matches)
}

/// Text that is full of beginnings and ends of secrets.
fn soup() -> impl Strategy<Value = String> {
    let mut pieces: Vec<String> = [
        "sk-",
        "sk-proj-",
        "ghp_",
        "AKIA",
        "AIza",
        "eyJ",
        ".",
        "-----BEGIN ",
        "PRIVATE KEY",
        "-----",
        "-----END ",
        "\n",
        "\r\n",
        "\r",
        " ",
        "\t",
        "password",
        "api_key",
        "token",
        "=",
        ":",
        "://",
        "@",
        "\"",
        "'",
        "\\",
        "\\n",
        "Bearer ",
        "Authorization",
        "é",
        "☃",
        "abc",
        "A1",
        "0123456789abcdef",
        "QWERTYUIOPASDFGH",
        "Proc-Type:",
        "\x1b[31m",
        "--",
        "a:b",
        "/",
        "xoxb-",
        "secret_key",
        "x ",
    ]
    .map(str::to_owned)
    .to_vec();
    pieces.push("aB3dE5gH7jK9".repeat(4));
    pieces.push("aB3dE5gH7jK9".repeat(12));
    pieces.extend(samples().into_iter().map(|sample| sample.secret));
    prop::collection::vec(prop::sample::select(pieces), 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn any_chunks_give_the_result_of_the_whole(text in soup(), cuts in prop::collection::vec(any::<usize>(), 0..60)) {
        let whole = redact(&text);
        let (redacted, matches) = in_chunks(RedactedStream::new(), &text, &cuts);
        prop_assert_eq!(&redacted, &whole.text);
        prop_assert_eq!(&matches, &whole.matches);
    }

    #[test]
    fn any_chunks_give_the_same_at_a_known_width(text in soup(), cuts in prop::collection::vec(any::<usize>(), 0..60), columns in 1_usize..100) {
        let whole = in_chunks(RedactedStream::with_columns(columns), &text, &[]);
        prop_assert_eq!(in_chunks(RedactedStream::with_columns(columns), &text, &cuts), whole);
    }

    #[test]
    fn one_character_at_a_time_gives_the_result_of_the_whole(text in soup()) {
        let cuts: Vec<usize> = (0..text.len()).collect();
        prop_assert_eq!(in_chunks(RedactedStream::new(), &text, &cuts).0, redact(&text).text);
    }

    #[test]
    fn matches_cover_exactly_what_was_replaced(text in soup()) {
        let redacted = redact(&text);
        let (mut rebuilt, mut at) = (String::new(), 0);
        for found in &redacted.matches {
            prop_assert!(found.position >= at && found.length > 0);
            rebuilt.push_str(&text[at..found.position]);
            rebuilt.push_str(found.category.placeholder());
            at = found.position + found.length;
        }
        rebuilt.push_str(&text[at..]);
        prop_assert_eq!(rebuilt, redacted.text);
    }

    #[test]
    fn a_planted_secret_does_not_survive(
        which in 0..samples().len(),
        before in "([a-z ]{0,60}\n){0,3}[a-z ]{0,50}[ \n]",
        after in "[ \n][a-z ]{0,60}(\n[a-z ]{0,60}){0,3}",
        cuts in prop::collection::vec(any::<usize>(), 0..40),
    ) {
        let sample = &samples()[which];
        let text = format!("{before}{}{after}", sample.around.replacen("{}", &sample.secret, 1));
        let (redacted, matches) = in_chunks(RedactedStream::new(), &text, &cuts);
        let start = text.find(&sample.secret).unwrap();
        let hidden = |at: usize| matches.iter().any(|found| (found.position..found.position + found.length).contains(&at));
        prop_assert!((start..start + sample.secret.len()).all(hidden), "{text:?} → {redacted:?}");
    }

    #[test]
    fn arbitrary_text_is_survived(text in any::<String>()) {
        let whole = redact(&text);
        if whole.matches.is_empty() {
            prop_assert_eq!(&whole.text, &text);
        }
    }
}

#[test]
fn a_stream_holds_no_more_than_a_bounded_piece_of_a_secret_without_end() {
    let mut stream = RedactedStream::new();
    stream.push("sk-proj-a1");
    let mut out = 0;
    for _ in 0..2_000 {
        out += stream.push(&"b2C3".repeat(256)).len();
        assert!(stream.held() < 32 * 1024, "{}", stream.held());
    }
    assert!(out < 100);
    let mut stream = RedactedStream::new();
    for _ in 0..2_000 {
        stream.push("password password: eyJabcdefghijk eyJ-----BEGIN RSA ");
        assert!(stream.held() < 32 * 1024, "{}", stream.held());
    }
}

/// JSON with names and texts that are full of beginnings of secrets.
fn soup_of_json() -> impl Strategy<Value = serde_json::Value> {
    let name = "(Acc|set|tok|bear|Sign|sec)[-_ ]?(ess|Cookie|en|er|ing|ret)[-_ ]?([Kk]ey)?";
    let text = prop_oneof![1 => soup(), 2 => "[a-zA-Z_ -]{0,12}", 3 => name];
    let leaf = prop_oneof![text.clone().prop_map(serde_json::Value::from), any::<u32>().prop_map(Into::into)];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
            prop::collection::vec((text.clone(), inner), 0..4)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn in_what_looks_plain_nothing_is_found(mut value in soup_of_json()) {
        if is_plain_json(&value.to_string()) {
            prop_assert_eq!(redact_json(&mut value), Vec::<&str>::new());
        }
    }
}
