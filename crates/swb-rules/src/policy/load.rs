//! Rule files become rules, or a list of everything that is wrong with them.
//!
//! Checked here: the text parses; the words are those of the schema, with their types (strictly, so that a rule does not
//! fail later when it is asked); no two rules of a layer have one name; a project or a session does not permit; no
//! templates; no characters that make a rule look like another one. A rule with `@ask` is a `forbid` that stands back
//! when somebody has agreed: the clause `unless { context.approved }` is added for it.

use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

use cedar_policy::ffi::DetailedError;
use cedar_policy::{Effect as CedarEffect, Policy, PolicySet};
use serde_json::{Value, json};
use thiserror::Error;

use super::measure::measure;
use super::rule::{Effect, Layer, Rule, RuleInfo};
use super::text::position;
use super::vocabulary::Vocabulary;

/// Largest rule file.
pub const MAX_FILE_BYTES: usize = 256 * 1024;
/// Most rules of one layer.
pub const MAX_RULES: usize = 2_000;
/// Most rules of a project or a session: whoever wrote them is not the user.
const MAX_FOREIGN_RULES: usize = 200;

/// Most errors that are told at once.
const MAX_ERRORS: usize = 50;

/// A rule file: its name as it is to be shown, and its text.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The name.
    pub file: &'a str,
    /// The text.
    pub text: &'a str,
}

/// What is wrong with a rule file, and where.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct LoadError {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
    /// What is wrong.
    pub reason: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.reason)?;
        self.help.as_ref().map_or(Ok(()), |help| write!(f, " ({help})"))
    }
}

/// What was loaded, and what looks wrong although it is not.
#[derive(Debug)]
pub struct Loaded<T> {
    /// The rules.
    pub rules: T,
    /// Rules that can never apply, and the like.
    pub warnings: Vec<LoadError>,
}

/// Reads the rules of one layer.
pub(super) fn read(layer: Layer, sources: &[Source<'_>]) -> Result<Loaded<Vec<Rule>>, Vec<LoadError>> {
    let mut reading = Reading { layer, rules: Vec::new(), errors: Vec::new(), warnings: Vec::new() };
    for source in sources {
        reading.file(source);
    }
    reading.refuse_doubles();
    let most = if matches!(layer, Layer::Default | Layer::User) { MAX_RULES } else { MAX_FOREIGN_RULES };
    if let Some(rule) = reading.rules.get(most) {
        let (file, line) = (rule.info.file.clone(), rule.info.line);
        let reason = format!("more than {most} rules");
        reading.errors.push(LoadError { file, line, column: 1, reason, help: None });
    }
    reading.errors.truncate(MAX_ERRORS);
    if reading.errors.is_empty() {
        Ok(Loaded { rules: reading.rules, warnings: reading.warnings })
    } else {
        Err(reading.errors)
    }
}

struct Reading {
    layer: Layer,
    rules: Vec<Rule>,
    errors: Vec<LoadError>,
    warnings: Vec<LoadError>,
}

impl Reading {
    fn file(&mut self, source: &Source<'_>) {
        if source.text.len() > MAX_FILE_BYTES {
            let reason = format!("larger than {MAX_FILE_BYTES} bytes");
            return self.errors.push(error(source, 0, reason, None));
        }
        if let Some((at, character)) =
            source.text.char_indices().find(|(_, c)| crate::shell::is_invisible(*c) && *c != '\r')
        {
            let reason = format!("the character U+{:04X} cannot be seen", u32::from(character));
            return self.errors.push(error(source, at, reason, Some("remove it".to_owned())));
        }
        // Before anything that recurses sees it.
        if let Err((at, reason)) = measure(source.text) {
            let help = "write several simpler rules".to_owned();
            return self.errors.push(error(source, at, reason.to_owned(), Some(help)));
        }
        let policies: PolicySet = match source.text.parse() {
            Ok(policies) => policies,
            Err(errors) => return self.parse_errors(source, &DetailedError::from(&errors)),
        };
        for template in policies.templates() {
            let at = start_of(source.text, &template.to_cedar(), 0);
            let reason = "a rule with slots (`?principal`) is not a rule yet".to_owned();
            self.errors.push(error(source, at, reason, Some("name the one it is about".to_owned())));
        }
        self.validate(source, &policies);
        let mut ordered: Vec<&Policy> = policies.policies().collect();
        ordered.sort_by_key(|policy| {
            let id: &str = policy.id().as_ref();
            id.trim_start_matches("policy").parse::<usize>().unwrap_or(usize::MAX)
        });
        let mut from = 0;
        for policy in ordered {
            let text = policy.to_cedar().unwrap_or_default();
            let at = start_of(source.text, &text, from);
            from = at + text.len();
            self.rule(source, policy, at);
        }
    }

    fn parse_errors(&mut self, source: &Source<'_>, detail: &DetailedError) {
        self.errors.push(of_detail(source, detail, 0));
        for related in &detail.related {
            self.errors.push(of_detail(source, related, 0));
        }
    }

    fn validate(&mut self, source: &Source<'_>, policies: &PolicySet) {
        let words = Vocabulary::get();
        let result = words.validator.validate(policies, Vocabulary::MODE);
        let start = |id: &cedar_policy::PolicyId| {
            let text = policies.policy(id).and_then(Policy::to_cedar).unwrap_or_default();
            start_of(source.text, &text, 0)
        };
        for found in result.validation_errors() {
            let error = of_detail(source, &DetailedError::from(found), start(found.policy_id()));
            add_once(&mut self.errors, error);
        }
        for found in result.validation_warnings() {
            let warning = of_detail(source, &DetailedError::from(found), start(found.policy_id()));
            add_once(&mut self.warnings, warning);
        }
    }

    fn rule(&mut self, source: &Source<'_>, policy: &Policy, at: usize) {
        let (line, _) = position(source.text, at);
        let mut refuse = |reason: &str, help: &str| {
            self.errors.push(error(source, at, reason.to_owned(), Some(help.to_owned())));
        };
        let permits = policy.effect() == CedarEffect::Permit;
        let ask = policy.annotation("ask");
        if permits && matches!(self.layer, Layer::Project | Layer::Session) {
            let whose = if self.layer == Layer::Project { "a project" } else { "a session" };
            return refuse(
                &format!("a rule of {whose} may only forbid or ask, never permit"),
                "what is permitted is decided in the user's own policy folder",
            );
        }
        if permits && ask.is_some() {
            return refuse(
                "`@ask` belongs to a `forbid`",
                "a `permit` asks with `when { context.approved }`",
            );
        }
        let Ok(json) = policy.to_json() else {
            return refuse("the rule cannot be read back", "write it more simply");
        };
        let looks_at_approved = ask.is_some() || looks_at_approved(&json);
        let waits_for_approval = waits_for_approval(&json);
        let policy = match ask {
            None => policy.clone(),
            Some(_) => match Policy::from_json(None, with_unless_approved(json)) {
                Ok(policy) => policy,
                Err(_) => return refuse("`@ask` cannot be added to this rule", "write it more simply"),
            },
        };
        let text = |annotation: &str| {
            policy.annotation(annotation).filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let info = RuleInfo {
            name: text("id").unwrap_or_else(|| self.name_of_unnamed(source, at)),
            layer: self.layer,
            file: source.file.to_owned(),
            line,
            effect: match (permits, ask) {
                (true, _) => Effect::Permit,
                (false, Some(_)) => Effect::Ask,
                (false, None) => Effect::Forbid,
            },
            reason: text("reason").or_else(|| text("ask")),
        };
        let (info, bare) = (info.into(), OnceLock::new());
        self.rules.push(Rule { info, policy, looks_at_approved, waits_for_approval, bare });
    }

    /// File and line, with the column where several rules stand on one line.
    fn name_of_unnamed(&self, source: &Source<'_>, at: usize) -> String {
        let (line, column) = position(source.text, at);
        let name = format!("{}:{line}", source.file);
        let is_taken = self.rules.last().is_some_and(|rule| {
            rule.info.name == name
                || rule.info.name.strip_prefix(&name).is_some_and(|rest| rest.starts_with(':'))
        });
        if is_taken { format!("{name}:{column}") } else { name }
    }

    fn refuse_doubles(&mut self) {
        let mut seen: HashMap<&str, &RuleInfo> = HashMap::new();
        for rule in &self.rules {
            let RuleInfo { name, file, line, .. } = &*rule.info;
            if let Some(first) = seen.insert(name, &rule.info) {
                let reason = format!("a rule is already called `{name}`: {}:{}", first.file, first.line);
                let (file, line) = (file.clone(), *line);
                let help = Some("give it another @id".to_owned());
                self.errors.push(LoadError { file, line, column: 1, reason, help });
            }
        }
    }
}

fn start_of(text: &str, part: &str, from: usize) -> usize {
    text.get(from..).and_then(|rest| rest.find(part)).map_or(from, |at| from + at)
}

fn error(source: &Source<'_>, at: usize, reason: String, help: Option<String>) -> LoadError {
    let (line, column) = position(source.text, at);
    LoadError { file: source.file.to_owned(), line, column, reason, help }
}

fn of_detail(source: &Source<'_>, detail: &DetailedError, otherwise: usize) -> LoadError {
    let at = detail.source_locations.first().map_or(otherwise, |label| label.loc.start);
    let hint = detail.source_locations.first().and_then(|label| label.label.clone());
    error(source, at, detail.message.clone(), detail.help.clone().or(hint))
}

/// A rule is checked for every action it may be about, so one mistake is found many times.
fn add_once(list: &mut Vec<LoadError>, mut found: LoadError) {
    found.reason = plain(&found.reason);
    let same = |known: &LoadError| {
        (&known.file, known.line, known.column) == (&found.file, found.line, found.column)
    };
    if !list.iter().any(same) {
        list.push(found);
    }
}

/// Without the internal number of the rule (file and line say where) and without the action it was found with.
fn plain(message: &str) -> String {
    let message = match message.strip_prefix("for policy `").and_then(|rest| rest.split_once("`, ")) {
        Some((_, rest)) => rest,
        None => message,
    };
    match message.split_once(" in context for Action::\"") {
        Some((before, rest)) => {
            format!("{before} in context{}", rest.split_once('"').map_or("", |(_, rest)| rest))
        }
        None => message.to_owned(),
    }
}

/// Whether a rule's answer may change with `context.approved`: it names it, or uses `context` as a whole.
fn looks_at_approved(json: &Value) -> bool {
    match json {
        Value::Object(object) => object.iter().any(|(operator, operand)| {
            if matches!(operator.as_str(), "." | "has") && is_context(&operand["left"]) {
                return operand["attr"].as_str().is_none_or(|attr| attr == "approved");
            }
            is_context(&json!({ operator: operand })) || looks_at_approved(operand)
        }),
        Value::Array(items) => items.iter().any(looks_at_approved),
        _ => false,
    }
}

/// Whether a rule says nothing at all unless `context.approved`: that is the first thing it looks at.
fn waits_for_approval(json: &Value) -> bool {
    let first = &json["conditions"][0];
    let mut body = &first["body"];
    while let Some(both) = body.get("&&") {
        body = &both["left"];
    }
    let approved = &body["."];
    first["kind"] == "when" && is_context(&approved["left"]) && approved["attr"] == "approved"
}

fn is_context(json: &Value) -> bool {
    json["Var"] == "context"
}

fn with_unless_approved(mut json: Value) -> Value {
    let clause = json!({
        "kind": "unless",
        "body": { ".": { "left": { "Var": "context" }, "attr": "approved" } },
    });
    match json.get_mut("conditions").and_then(Value::as_array_mut) {
        Some(conditions) => conditions.push(clause),
        None => json["conditions"] = json!([clause]),
    }
    json
}

#[cfg(test)]
mod tests;
