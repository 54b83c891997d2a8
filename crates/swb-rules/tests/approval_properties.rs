//! Whatever happens at the desk, in whatever order and with whatever clock.

use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::json;
use swb_rules::approval::{
    ApprovalEvent, ApprovalRequest, Binding, Choice, Desk, Patience, Resolve, ResolveError, Status,
};
use swb_rules::policy::{Actor, Ancestor, Input, Resource};
use swb_rules::shell::Risk;

#[derive(Debug, Clone)]
enum Act {
    Request { number: u8, agent: u8, patience: Patience, share: bool },
    Resolve { number: u8, choice: Choice, by_agent: bool },
    Expire,
    Restart,
    EndAgent(u8),
    Revoke(u8),
    Issue(u8),
    Spend(u8),
}

fn act() -> impl Strategy<Value = Act> {
    let patience = prop::sample::select(vec![Patience::Interactive, Patience::Detached, Patience::Nobody]);
    let choice = prop::sample::select(vec![Choice::Allow, Choice::AllowForSession, Choice::Deny]);
    prop_oneof![
        4 => (0..12_u8, 0..3_u8, patience, any::<bool>())
            .prop_map(|(number, agent, patience, share)| Act::Request { number, agent, patience, share }),
        4 => (0..12_u8, choice, prop::bool::weighted(0.1))
            .prop_map(|(number, choice, by_agent)| Act::Resolve { number, choice, by_agent }),
        2 => Just(Act::Expire),
        1 => Just(Act::Restart),
        1 => (0..3_u8).prop_map(Act::EndAgent),
        1 => (0..12_u8).prop_map(Act::Revoke),
        1 => (0..12_u8).prop_map(Act::Issue),
        1 => (0..12_u8).prop_map(Act::Spend),
    ]
}

fn agent(number: u8) -> Actor {
    let ancestry =
        (0..number).map(|n| Ancestor { id: format!("sess_{n}"), workspace: "ws_1".into() }).collect();
    Actor::Agent { id: format!("sess_{number}"), workspace: "ws_1".into(), ancestry }
}

fn binding() -> Binding {
    Binding {
        method: "share.upterm.start".into(),
        terminal_id: "term_1".into(),
        actor: "user:ann".into(),
        workspace_id: "ws_1".into(),
    }
}

fn question(number: u8, of: u8, share: bool) -> ApprovalRequest {
    let resource =
        Resource::Terminal { id: "term_1".into(), session: "sess_0".into(), workspace: "ws_1".into() };
    let action = if share { "share.upterm.start" } else { "terminal.input" };
    ApprovalRequest {
        id: format!("apr_{number}"),
        input: Input::new(agent(of), action, resource),
        subject: json!({}),
        reason: "asked".into(),
        risk: Risk::Medium,
        rules: vec![],
        contained: true,
        session_id: None,
        correlation_id: None,
        call_id: None,
        token_for: share.then(binding),
    }
}

/// Does one thing; gives what is to be kept.
fn perform(desk: &mut Desk, now: u64, act: &Act, tokens: &mut HashMap<u8, String>) -> Vec<ApprovalEvent> {
    let ann = Actor::User { id: "ann".into() };
    match act {
        Act::Request { number, agent, patience, share } => {
            desk.request(now, question(*number, *agent, *share), *patience).map_or(vec![], |r| r.events)
        }
        Act::Resolve { number, choice, by_agent } => {
            let by = if *by_agent { agent(0) } else { ann };
            let (id, grant_id) = (format!("apr_{number}"), format!("grant_{number}"));
            let before = desk.get(&id).cloned();
            match desk.resolve(
                now,
                Resolve { id: &id, choice: *choice, by: &by, reason: None, grant_id: &grant_id },
            ) {
                Ok(resolution) => {
                    assert!(!by_agent, "an agent has answered");
                    let before = before.expect("it was known");
                    assert!(before.is_pending() && now < before.deadline, "answered in time");
                    resolution.events
                }
                Err(ResolveError::AlreadyResolved { events, .. }) => events,
                Err(_) => vec![],
            }
        }
        Act::Expire => desk.expire(now),
        Act::Restart => desk.restart(now),
        Act::EndAgent(number) => desk.end_agent(now, &format!("sess_{number}")),
        Act::Revoke(number) => desk.revoke(now, &format!("grant_{number}"), &ann).unwrap_or_default(),
        Act::Issue(number) => match desk.issue_token(now, &format!("apr_{number}"), &[*number; 32]) {
            Ok((token, events)) => {
                assert!(tokens.insert(*number, token).is_none(), "two tokens of one approval");
                events
            }
            Err(_) => vec![],
        },
        Act::Spend(number) => match tokens.get(number) {
            Some(token) => desk.spend_token(now, token, &binding()).unwrap_or_default(),
            None => vec![],
        },
    }
}

proptest! {
    #[test]
    fn exactly_one_outcome_no_reopening_and_the_same_after_replay(
        // Mostly forwards, sometimes far, sometimes back.
        acts in prop::collection::vec((act(), prop_oneof![8 => 0..120_000_i64, 1 => -600_000..0_i64, 1 => 0..100_000_000_i64]), 1..80),
        cut in any::<prop::sample::Index>(),
    ) {
        let (mut desk, mut now, mut kept, mut tokens) = (Desk::default(), 1_700_000_000_000_u64, vec![], HashMap::new());
        let mut outcomes = HashMap::new();
        let mut latest = now;
        for (act, step) in &acts {
            now = now.saturating_add_signed(*step);
            latest = latest.max(now);
            kept.extend(perform(&mut desk, now, act, &mut tokens));
            for approval in desk.pending() {
                prop_assert!(approval.requested_at <= latest);
            }
            for event in &kept {
                if let ApprovalEvent::Resolved { id, outcome } = event {
                    let first = outcomes.entry(id.clone()).or_insert_with(|| outcome.clone());
                    prop_assert_eq!(&*first, outcome, "a second outcome");
                }
            }
            for (id, outcome) in &outcomes {
                prop_assert_eq!(desk.get(id).and_then(|approval| approval.outcome.as_ref()), Some(outcome));
            }
        }
        // Spent tokens appear once.
        let mut spent: Vec<_> = kept.iter().filter_map(|event| match event {
            ApprovalEvent::TokenSpent { hash, .. } => Some(hash.clone()),
            _ => None,
        }).collect();
        let count = spent.len();
        spent.sort();
        spent.dedup();
        prop_assert_eq!(spent.len(), count);

        // What is kept makes the same desk, also from a snapshot in the middle, through its text.
        let text: Vec<String> = kept.iter().map(|event| serde_json::to_string(event).unwrap()).collect();
        let read = |line: &String| serde_json::from_str::<ApprovalEvent>(line).unwrap();
        prop_assert_eq!(&Desk::replay(text.iter().map(read)), &desk);
        let at = cut.index(text.len() + 1);
        let snapshot = serde_json::to_string(&Desk::replay(text[..at].iter().map(read))).unwrap();
        let mut from_snapshot: Desk = serde_json::from_str(&snapshot).unwrap();
        text[at..].iter().map(read).for_each(|event| from_snapshot.apply(event));
        prop_assert_eq!(&from_snapshot, &desk);
        // Nothing in the record can be applied a second time to some effect on outcomes.
        let mut twice = desk.clone();
        text.iter().map(read).for_each(|event| {
            if matches!(event, ApprovalEvent::Resolved { .. } | ApprovalEvent::Requested { .. }) {
                twice.apply(event);
            }
        });
        prop_assert_eq!(&twice, &desk);

        // In the end nobody waits for ever.
        desk.expire(u64::MAX);
        prop_assert_eq!(desk.pending().count(), 0);
        prop_assert!(desk.next_deadline().is_none());
    }

    #[test]
    fn a_crash_after_any_record_leaves_a_desk_that_goes_on(
        acts in prop::collection::vec((act(), 0..60_000_u64), 1..40),
        cut in any::<prop::sample::Index>(),
    ) {
        let (mut desk, mut now, mut kept, mut tokens) = (Desk::default(), 1_700_000_000_000_u64, vec![], HashMap::new());
        for (act, step) in &acts {
            now += step;
            kept.extend(perform(&mut desk, now, act, &mut tokens));
        }
        kept.truncate(cut.index(kept.len() + 1));
        let mut desk = Desk::replay(kept);
        let restarted = now + 3_600_000;
        desk.restart(restarted);
        for approval in desk.pending() {
            prop_assert!(approval.deadline >= restarted + 30_000, "no time to answer");
        }
        let waiting: Vec<String> = desk.pending().map(|approval| approval.request.id.clone()).collect();
        let ann = Actor::User { id: "ann".into() };
        for id in waiting {
            let answer = Resolve { id: &id, choice: Choice::Allow, by: &ann, reason: None, grant_id: "grant_x" };
            prop_assert_eq!(desk.resolve(restarted + 1, answer).unwrap().outcome.status, Status::Approved);
        }
        prop_assert_eq!(desk.pending().count(), 0);
    }
}
