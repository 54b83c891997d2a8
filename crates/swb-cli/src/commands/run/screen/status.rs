//! One line of what is going on, and one of how it went.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anstyle::{AnsiColor, Style};
use serde_json::Value;
use swb_proto::agent::TurnUsage;

use super::super::view::Outcome;
use crate::io::{BAD, DIM, GOOD, WARN};
use crate::plain;
use crate::terminal::line::Line;

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const TURNING: Style = AnsiColor::Cyan.on_default();
/// What a token is roughly, until the model tells.
const BYTES_PER_TOKEN: usize = 4;

/// What is known so far.
#[derive(Debug)]
pub(super) struct Status {
    begun: Instant,
    pub(super) model: String,
    /// What is said while the turn is being aborted.
    pub(super) aborting: Option<&'static str>,
    /// What the agent does besides answering.
    pub(super) doing: Option<&'static str>,
    bytes: usize,
    usage: Option<TurnUsage>,
}

impl Status {
    pub(super) fn new(now: Instant) -> Self {
        Status { begun: now, model: String::new(), aborting: None, doing: None, bytes: 0, usage: None }
    }

    pub(super) fn said(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    pub(super) fn used(&mut self, usage: &TurnUsage) {
        self.usage = Some(usage.clone());
    }

    pub(super) fn line(&self, now: Instant) -> Line {
        let since = now.duration_since(self.begun);
        let mut line = Line::of(spinner(since), TURNING);
        let tokens = self.bytes / BYTES_PER_TOKEN;
        let doing = match (self.model.is_empty(), self.aborting) {
            (_, Some(words)) => format!(" {words}"),
            (true, _) => " starting".to_owned(),
            _ if self.doing.is_some() => format!(" {}", self.doing.unwrap_or_default()),
            (false, _) if tokens == 0 => format!(" {} · Ctrl-C aborts", self.model),
            (false, _) => format!(" {} · ~{} tokens · Ctrl-C aborts", self.model, grouped(tokens as u64)),
        };
        line.push(format!(" {}", elapsed(since)), DIM);
        line.push(format!(" ·{doing}"), DIM);
        line
    }

    pub(super) fn summary(
        &self,
        outcome: &Outcome,
        stats: Option<&BTreeMap<String, Value>>,
        now: Instant,
    ) -> Line {
        let (sign, style) = match outcome {
            Outcome::Done => ("✓ done", GOOD),
            Outcome::Aborted => ("■ aborted", WARN),
            Outcome::Failed(_) => ("✗ failed", BAD),
        };
        let mut parts = vec![elapsed(now.duration_since(self.begun))];
        if let Some(usage) = &self.usage {
            let given =
                usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens;
            let about = if usage.estimated { "~" } else { "" };
            parts.push(format!("{about}{} tokens in", grouped(given)));
            parts.push(format!("{about}{} out", grouped(usage.output_tokens)));
        }
        let figure = |key: &str| stats.and_then(|stats| stats.get(key));
        // Nothing is known of a price that is not there.
        if let Some(cost) = figure("cost").and_then(Value::as_f64).filter(|cost| *cost > 0.0) {
            parts.push(format!("${cost:.4} so far"));
        }
        if let (Some(used), Some(window)) = (
            figure("context_tokens").and_then(Value::as_u64),
            figure("context_window").and_then(Value::as_u64),
        ) && let Some(percent @ 1..) = (used * 100).checked_div(window)
        {
            parts.push(format!("context {percent} %"));
        }
        if !self.model.is_empty() {
            parts.push(self.model.clone());
        }
        if let Some(id) = figure("session_id").and_then(Value::as_str) {
            parts.push(plain::line(id, 80));
        }
        let mut line = Line::of(sign, style);
        line.push(format!(" · {}", parts.join(" · ")), DIM);
        line
    }
}

/// The sign of this moment.
pub(super) fn spinner(since: Duration) -> &'static str {
    let at = since.as_millis() / 80 % SPINNER.len() as u128;
    SPINNER[usize::try_from(at).unwrap_or(0)]
}

/// A duration in short.
pub(super) fn elapsed(since: Duration) -> String {
    match since.as_secs() {
        0..10 => format!("{:.1} s", since.as_secs_f64()),
        seconds @ 10..60 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// A number with its thousands apart.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text(line: &Line) -> String {
        line.spans.iter().map(|span| span.text.as_str()).collect()
    }

    #[test]
    fn figures_read_well() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        let shown = [300, 12_000, 125_000].map(|ms| elapsed(Duration::from_millis(ms)));
        assert_eq!(shown, ["0.3 s", "12 s", "2 min 5 s"]);
    }

    #[test]
    fn a_price_is_shown_only_if_there_is_one() {
        let now = Instant::now();
        let status = Status::new(now);
        let summary = |stats: Value| {
            let stats: BTreeMap<String, Value> = serde_json::from_value(stats).unwrap();
            text(&status.summary(&Outcome::Done, Some(&stats), now))
        };
        assert!(summary(json!({ "cost": 0.25 })).contains("$0.2500"));
        for none in [json!({}), json!({ "cost": null }), json!({ "cost": 0.0 })] {
            assert!(!summary(none).contains('$'));
        }
        assert!(summary(json!({ "context_tokens": 50, "context_window": 200 })).contains("context 25 %"));
    }

    #[test]
    fn tokens_are_guessed_until_they_are_known() {
        let now = Instant::now();
        let mut status = Status::new(now);
        assert!(text(&status.line(now)).contains("starting"));
        status.model = "demo".to_owned();
        status.said(4000);
        assert!(text(&status.line(now)).contains("~1,000 tokens"));
        status.used(&TurnUsage { input_tokens: 5, output_tokens: 7, ..TurnUsage::default() });
        assert!(text(&status.summary(&Outcome::Aborted, None, now)).contains("5 tokens in · 7 out"));
    }
}
