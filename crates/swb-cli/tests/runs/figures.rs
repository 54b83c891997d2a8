//! `/metrics` of a daemon in which agents work, read as strictly as the text form is written down.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::json;
use testkit::{PATIENCE, wait, wait_for};

use crate::house::House;

/// The page: every number by its name and labels, in order.
#[derive(Debug)]
struct Page(BTreeMap<String, f64>);

impl Page {
    fn of(house: &House) -> Self {
        let url = house.world.status("http").as_str().expect("the daemon serves HTTP").to_owned();
        let address = url.strip_prefix("http://").unwrap();
        let token = house.world.swb(["token"]).ok().stdout.trim().to_owned();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let request = format!(
            "GET /metrics HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        Page(parse(body))
    }

    #[track_caller]
    fn is(&self, sample: &str, value: f64) {
        assert_eq!(self.0.get(sample), Some(&value), "{sample} in {:#?}", self.0);
    }
}

/// The page in the text form 0.0.4; the test ends where it is not.
fn parse(page: &str) -> BTreeMap<String, f64> {
    let (mut samples, mut family, mut seen) = (BTreeMap::new(), None::<(String, String)>, Vec::new());
    assert!(page.ends_with('\n'));
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, _) = help.split_once(' ').expect("a meaning");
            let kind = lines.next().and_then(|line| line.strip_prefix("# TYPE ")).expect("a kind");
            let (of, kind) = kind.split_once(' ').unwrap();
            assert_eq!(of, name);
            assert!(matches!(kind, "counter" | "gauge"), "{kind}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
            assert!(!seen.contains(&name.to_owned()), "{name} comes twice");
            seen.push(name.to_owned());
            family = Some((name.to_owned(), kind.to_owned()));
            continue;
        }
        let (name, _) = family.as_ref().expect("a family before its numbers");
        let rest = line.strip_prefix(name.as_str()).unwrap_or_else(|| panic!("{line} is not of {name}"));
        let (labels, value) = match rest.strip_prefix('{') {
            Some(labelled) => labels(labelled),
            None => (Vec::new(), rest),
        };
        let value: f64 = value.strip_prefix(' ').and_then(|value| value.parse().ok()).expect("a number");
        assert!(value.is_finite() && value >= 0.0, "{line}");
        let labels: Vec<String> = labels.iter().map(|(label, text)| format!("{label}={text}")).collect();
        let sample = format!("{name} {}", labels.join(" ")).trim_end().to_owned();
        assert!(samples.insert(sample, value).is_none(), "{line} comes twice");
    }
    samples
}

/// Labels after the brace, and what follows them.
fn labels(mut rest: &str) -> (Vec<(String, String)>, &str) {
    let mut labels = Vec::new();
    loop {
        let (label, text) = rest.split_once("=\"").expect("a label");
        assert!(label.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{label}");
        let (mut value, mut letters) = (String::new(), text.char_indices());
        let end = loop {
            match letters.next().expect("a closing quote") {
                (at, '"') => break at,
                (_, '\\') => match letters.next().unwrap().1 {
                    'n' => value.push('\n'),
                    letter @ ('\\' | '"') => value.push(letter),
                    other => panic!("\\{other} is no escape"),
                },
                (_, letter) => value.push(letter),
            }
        };
        labels.push((label.to_owned(), value));
        rest = &text[end + 1..];
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None => return (labels, rest.strip_prefix('}').expect("a closing brace")),
        }
    }
}

#[test]
fn runs_tokens_tools_and_decisions_are_counted() {
    let house = House::with_settings("[runs]\nslots = 3\n");
    let before = Page::of(&house);
    before.is("swb_runs_running", 0.0);
    before.is("swb_run_slots", 3.0);
    before.is("swb_run_slots_free", 3.0);
    let story = house.story(
        "!tool read {\"path\":\"notes.txt\"}\n!then\n!tool read {\"path\":\"nowhere.txt\"}\n!then\n!say Done.",
    );
    let usage = story.end()["payload"]["usage"].clone();
    house.story("!fail oops");
    let (run, _, after) = house.run("!say working\n!pause 60000");
    wait("it works", || {
        house.call("agent.get", &json!({ "run_id": run }))["run"]["state"].as_str() == Some("running")
    });
    let during = Page::of(&house);
    during.is("swb_runs_running", 1.0);
    during.is("swb_run_slots_free", 2.0);
    house.call("agent.cancel", &json!({ "run_id": run }));
    house.follow(&run, after);
    let page = wait_for("the slot is given back", || {
        let page = Page::of(&house);
        (page.0["swb_run_slots_free"] == 3.0).then_some(page)
    });
    page.is("swb_runs_running", 0.0);
    page.is("swb_runs_started_total agent=builtin", 3.0);
    for outcome in ["completed", "failed", "cancelled"] {
        page.is(&format!("swb_runs_ended_total agent=builtin outcome={outcome}"), 1.0);
    }
    page.is("swb_tool_calls_total tool=read outcome=ok", 1.0);
    page.is("swb_tool_calls_total tool=read outcome=failed", 1.0);
    let tokens = |key: &str| usage[key].as_f64().unwrap();
    assert!(page.0["swb_model_input_tokens_total model=demo"] >= tokens("input_tokens"));
    assert!(page.0["swb_model_output_tokens_total model=demo"] >= tokens("output_tokens"));
    assert!(page.0["swb_run_duration_seconds_total agent=builtin"] > 0.0);
    // The commands of this test, and the two decisions about tools.
    assert!(page.0["swb_gate_decisions_total effect=allow"] >= 8.0);
    assert!(page.0["swb_commands_total status=ok"] >= 8.0);
    house.ask("agent.get", &json!({ "run_id": "run_none" }));
    assert_eq!(
        Page::of(&house).0["swb_commands_total status=error"],
        page.0["swb_commands_total status=error"] + 1.0
    );
}

#[test]
fn what_waits_is_still_counted_by_the_next_daemon() {
    let house = House::with_settings("[runs]\nslots = 1\n");
    let (first, _, after) = house.run("!ask rm -f notes.txt");
    let (second, ..) = house.run("!say later");
    let asked = wait_for("the question", || {
        house.call("approval.list", &json!({ "status": "pending" }))["approvals"].as_array()?.first().cloned()
    });
    let stands = |page: &Page| {
        page.is("swb_approvals_pending", 1.0);
        page.is("swb_runs_running", 1.0);
        page.is("swb_runs_queued", 1.0);
        page.is("swb_run_slots_free", 0.0);
    };
    let page = Page::of(&house);
    page.is("swb_approvals_requested_total", 1.0);
    stands(&page);
    house.kill_daemon();
    let page = Page::of(&house);
    page.is("swb_approvals_requested_total", 0.0);
    stands(&page);
    let answer = json!({ "approval_id": asked["approval_id"], "decision": "deny", "reason": "no" });
    house.call("approval.request.resolve", &answer);
    house.follow(&first, after);
    house.follow(&second, after);
    let page = Page::of(&house);
    page.is("swb_approvals_resolved_total outcome=denied", 1.0);
    page.is("swb_approvals_pending", 0.0);
    page.is("swb_runs_queued", 0.0);
    page.is("swb_tool_calls_total tool=bash outcome=denied", 1.0);
    page.is("swb_gate_decisions_total effect=deny", 1.0);
    // The one that outlived its daemon is counted where it ended.
    page.is("swb_runs_started_total agent=builtin", 1.0);
    page.is("swb_runs_ended_total agent=builtin outcome=completed", 2.0);
}
