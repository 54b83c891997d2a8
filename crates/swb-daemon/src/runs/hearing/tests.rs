use super::*;
use serde_json::json;
use swb_proto::agent::AssistantEvent;

fn hear(ear: &mut Ear, frames: &[Value]) -> Vec<Heard> {
    let mut out = Vec::new();
    for frame in frames {
        ear.hear(frame.to_string().as_bytes(), |bytes| bytes.len().to_string(), &mut out);
    }
    out
}

fn update(event: Value) -> Value {
    json!({ "type": "message_update", "event": event })
}

fn text(delta: &str) -> Value {
    update(json!({ "type": "text_delta", "delta": delta }))
}

fn texts(heard: &[Heard]) -> String {
    let text = |heard: &Heard| match heard {
        Heard::Progress(Progress::Text { delta }) => Some(delta.clone()),
        _ => None,
    };
    heard.iter().filter_map(text).collect()
}

#[test]
fn the_short_way_and_the_long_way_understand_the_same() {
    for delta in ["plain", "a \"quoted\" \\ word", "é ü \u{1f600} \u{2028}", "{\"}}", ""] {
        let mut short = Vec::new();
        swb_proto::agent::encode(
            &Event::MessageUpdate { event: AssistantEvent::TextDelta { delta: delta.to_owned() } },
            &mut short,
        )
        .unwrap();
        short.pop();
        assert_eq!(plain_text(&short).as_deref(), Some(delta));
        let long = text(delta).to_string().replace("{\"type\"", "{ \"type\"");
        let (mut a, mut b) = (Ear::default(), Ear::default());
        let (mut from_a, mut from_b) = (Vec::new(), Vec::new());
        a.hear(&short, |_| String::new(), &mut from_a);
        b.hear(long.as_bytes(), |_| String::new(), &mut from_b);
        a.fall_silent(&mut from_a);
        b.fall_silent(&mut from_b);
        assert_eq!((&from_a, texts(&from_a).as_str()), (&from_b, delta));
    }
}

#[test]
fn a_secret_in_two_pieces_does_not_come_through() {
    let key = format!("ghp_{}", "a1B2".repeat(9));
    for cut in 0..key.len() {
        let mut ear = Ear::default();
        let frames = [
            text("key: "),
            text(&key[..cut]),
            text(&key[cut..]),
            text(" end."),
            json!({"type":"agent_end","usage":{"input_tokens":1,"output_tokens":1}}),
        ];
        let said = texts(&hear(&mut ear, &frames));
        assert!(said.starts_with("key: [REDACTED") && said.ends_with(" end."), "cut at {cut}: {said}");
    }
}

#[test]
fn a_call_is_told_from_its_first_word_to_its_result_and_then_nothing_is_open() {
    let mut ear = Ear::default();
    let heard = hear(
        &mut ear,
        &[
            text("let me look"),
            update(json!({"type":"toolcall_start","tool_id":"c","tool_name":"bash"})),
            update(json!({"type":"toolcall_input_delta","tool_id":"c","delta":"{\"command\":"})),
            update(
                json!({"type":"toolcall_input","tool_id":"c","input":{"command":"ls","password":"hunter2"}}),
            ),
            json!({"type":"tool_output","tool_id":"c","delta":"a\n"}),
            update(json!({"type":"toolcall_result","tool_id":"c","result":"a\n"})),
        ],
    );
    let statuses: Vec<ToolStatus> = heard
        .iter()
        .filter_map(|heard| match heard {
            Heard::Progress(Progress::Tool { tool }) => {
                assert_eq!((tool.name.as_str(), tool.call_id.as_str()), ("bash", "c"));
                assert!(!format!("{tool:?}").contains("hunter2"));
                Some(tool.status)
            }
            _ => None,
        })
        .collect();
    let mut told = statuses;
    told.dedup();
    assert_eq!(
        told,
        [
            ToolStatus::Started,
            ToolStatus::Arguments,
            ToolStatus::Called,
            ToolStatus::Output,
            ToolStatus::Done
        ]
    );
    assert!(ear.is_at_rest());
    assert_eq!(texts(&heard), "let me look");
}

#[test]
fn reading_again_from_a_place_at_rest_gives_the_same_words() {
    let frames: Vec<Value> = (0..40)
        .flat_map(|n| {
            [
                text(&format!("word {n} ")),
                update(json!({"type":"toolcall_start","tool_id":format!("c{n}"),"tool_name":"ls"})),
                update(json!({"type":"toolcall_input","tool_id":format!("c{n}"),"input":{}})),
                update(json!({"type":"toolcall_result","tool_id":format!("c{n}"),"result":"x"})),
            ]
        })
        .collect();
    let mut ear = Ear::default();
    let (mut whole, mut rest) = (Vec::new(), Vec::new());
    for (at, frame) in frames.iter().enumerate() {
        whole.extend(hear(&mut ear, std::slice::from_ref(frame)));
        if ear.is_at_rest() {
            rest.push((at + 1, whole.len()));
        }
    }
    assert_eq!(rest.len(), 40);
    for (frame, told) in rest {
        let again = hear(&mut Ear::default(), &frames[frame..]);
        assert_eq!(again, whole[told..]);
    }
}

#[test]
fn answers_and_failures_are_told_apart() {
    let mut ear = Ear::default();
    let heard = hear(
        &mut ear,
        &[
            json!({"type":"ready","session_id":"s","model":"demo","protocol_version":1}),
            json!({"type":"response","id":"a","command":"prompt","ok":true}),
            json!({"type":"response","id":"b","command":"prompt","ok":true,"cancelled":true}),
            json!({"type":"response","id":"c","command":"prompt","ok":false,"error":"no /home/ada/x.key"}),
            json!({"type":"error","id":"d","message":"busy"}),
            json!({"type":"response","id":"e","command":"get_session_stats","input_tokens":7,"cost":0.5}),
            json!({"type":"novelty"}),
        ],
    );
    let answered = |id: &str, body: Answer| Heard::Answered { id: id.to_owned(), body };
    let used = TurnUsage { input_tokens: 7, ..TurnUsage::default() };
    assert_eq!(
        heard,
        [
            Heard::Ready { model: "demo".to_owned() },
            answered("a", Answer::default()),
            answered("b", Answer { cancelled: true, ..Answer::default() }),
            answered("c", Answer { error: Some("no …/x.key".to_owned()), ..Answer::default() }),
            Heard::Refused { id: Some("d".to_owned()), message: "busy".to_owned() },
            answered("e", Answer { totals: Some((used, Some(0.5))), ..Answer::default() }),
        ]
    );
}

#[test]
fn a_plan_is_what_our_agents_say_of_it_and_no_call_of_that_name() {
    let key = format!("ghp_{}", "a1B2".repeat(9));
    let steps = json!([{ "text": "look", "status": "completed" }, { "text": format!("use {key}"), "status": "pending" }]);
    let call = [
        update(json!({"type":"toolcall_start","tool_id":"c","tool_name":"plan"})),
        update(json!({"type":"toolcall_input","tool_id":"c","input":{ "steps": steps }})),
    ];
    let result = update(json!({"type":"toolcall_result","tool_id":"c","result":"1 of 2 steps are done."}));
    let plans = |heard: &[Heard]| -> Vec<swb_proto::run::PlanProgress> {
        let plan = |heard: &Heard| match heard {
            Heard::Progress(Progress::Plan(plan)) => Some(plan.clone()),
            _ => None,
        };
        heard.iter().filter_map(plan).collect()
    };
    let mut ear = Ear::default();
    assert!(
        plans(&hear(&mut ear, &[call[0].clone(), call[1].clone(), result.clone()])).is_empty(),
        "a call, and nothing else"
    );

    let told = json!({ "type": "plan", "tool_id": "c", "steps": steps, "note": key });
    let heard = hear(&mut ear, &[text("I have "), call[0].clone(), call[1].clone(), told, result]);
    let [plan] = &plans(&heard)[..] else { panic!("{heard:?}") };
    assert_eq!((plan.call_id.as_str(), plan.percent, plan.path.len()), ("c", Some(50), 0));
    let said = serde_json::to_string(plan).unwrap();
    assert!(said.contains("look") && said.contains("[REDACTED") && !said.contains("ghp_"), "{said}");
    assert!(ear.is_at_rest(), "what follows does not depend on it");

    let below =
        json!({ "type": "plan", "tool_id": "t", "path": [1, 2], "agents": ["scout", "reader"], "steps": [] });
    let plan = &plans(&hear(&mut ear, &[below]))[0];
    assert_eq!((plan.name.as_deref(), &plan.path[..], plan.percent), (Some("reader"), &[1, 2][..], None));

    let step = json!({ "text": "x", "status": "in_progress" });
    for steps in [vec![step; 2], vec![json!({ "text": "x" }); 51], vec![json!({ "text": "x".repeat(301) })]] {
        let wrong = json!({ "type": "plan", "tool_id": "c", "steps": steps });
        assert!(hear(&mut ear, &[wrong]).is_empty(), "programs that are not ours may say what they like");
    }
}
