//! `swb policy explain`: what the rules say to a call, which of them said so, and what would change the answer.

use std::io::Read;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use serde_json::{Value, json};
use swb_daemon::policy::Asked;
use swb_rules::policy::{Answer, Approved, Explanation, Input};

use super::files::{HereArgs, RulesHere};
use super::question::{Circumstances, Who, real};
use super::rules;
use crate::exit_code;
use crate::failure::Failure;
use crate::io::{BAD, BOLD, DIM, GOOD, Io, NAME, WARN};
use crate::plain;

/// Most bytes of parameters.
const MAX_PARAMS: u64 = 4 * 1024 * 1024;

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// A method of the socket, or `tool.` and the name of an agent's tool.
    #[arg(value_name = "METHOD")]
    method: String,
    /// Its parameters as a JSON object; `-` reads them from standard input.
    #[arg(value_name = "JSON|-", default_value = "{}")]
    params: String,
    /// Who would do it: `user`, `agent:ID` or `service:ID`.
    #[arg(long, value_name = "KIND:ID")]
    actor: Option<Who>,
    /// The workspace in which it would be done, which is the agent's own too.
    #[arg(long, value_name = "ID")]
    workspace: Option<String>,
    /// The folder in which a tool would work; this one unless said otherwise.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    cwd: Option<PathBuf>,
    /// As if somebody had agreed.
    #[arg(long)]
    approved: bool,
    /// As if containment did not hold.
    #[arg(long)]
    uncontained: bool,
    #[command(flatten)]
    here: HereArgs,
}

pub(crate) fn run(args: &ExplainArgs, set: &[String], io: &Io) -> Result<u8, Failure> {
    let params = params(&args.params)?;
    let folder = match &args.cwd {
        Some(folder) => real(folder),
        None => real(&std::env::current_dir()?),
    };
    let project_root = args.here.project_root();
    let circumstances = Circumstances {
        who: args.actor.clone(),
        workspace: args.workspace.clone(),
        root: project_root.as_deref().filter(|root| folder.starts_with(root)).map_or(folder.clone(), real),
        folder,
        contained: !args.uncontained,
    };
    let Asked { input, findings } = circumstances.ask(&args.method, &params)?;
    let here = RulesHere::read(set, project_root.as_deref())?;
    let approved = if args.approved { Approved::Yes } else { Approved::No };
    let explanation = here.own.rules.explain(&input, &here.restrictions(), approved);
    if io.json {
        io.object(&as_json(&input, &findings, &explanation))?;
    } else {
        print(&input, &findings, &explanation, io)?;
    }
    Ok(exit_code::SUCCESS)
}

fn params(text: &str) -> Result<Value, Failure> {
    let mut read = String::new();
    let text = if text == "-" {
        std::io::stdin().lock().take(MAX_PARAMS).read_to_string(&mut read)?;
        &read
    } else {
        text
    };
    let wrong = |failure: Failure| failure.code(exit_code::USAGE).hint("a JSON object is expected: '{}'");
    let value: Value = serde_json::from_str(text)
        .map_err(|error| wrong(Failure::new("the parameters are not JSON").because(error)))?;
    if !value.is_object() {
        return Err(wrong(Failure::new("the parameters are not an object")));
    }
    Ok(value)
}

fn as_json(input: &Input, findings: &[String], Explanation { decision, remedies }: &Explanation) -> Value {
    let remedies: Vec<Value> = remedies
        .iter()
        .map(|remedy| json!({ "change": remedy.change, "answer": remedy.answer, "text": remedy.change.to_string() }))
        .collect();
    let rules: Vec<_> = decision.rules.iter().map(|rule| &**rule).collect();
    json!({
        "answer": decision.answer, "why": decision.why, "reason": decision.reason(), "rules": rules,
        "remedies": remedies, "findings": findings, "input": input,
    })
}

fn print(
    input: &Input,
    findings: &[String],
    Explanation { decision, remedies }: &Explanation,
    io: &Io,
) -> Result<(), Failure> {
    let row = |name: &str, text: String| io.line(format!("  {DIM}{name:<8}{DIM:#} {text}"));
    let style = style(decision.answer);
    let who = format!("{} {}", input.actor.kind().name().to_lowercase(), input.actor.id());
    io.line(format!(
        "{style}{}{style:#}  {BOLD}{}{BOLD:#} by {}",
        decision.answer,
        plain::line(&input.action, 80),
        plain::line(&who, 80)
    ))?;
    row("about", plain::line(input.resource.id(), 300))?;
    row("why", plain::line(&decision.reason(), 400))?;
    for rule in &decision.rules {
        let (style, effect) = rules::shown(rule.effect);
        let place = format!("{} {}:{}", rules::layer(rule.layer), rule.file, rule.line);
        let (name, place) = (plain::line(&rule.name, 120), plain::line(&place, 200));
        row("rule", format!("{style}{effect}{style:#} {NAME}{name}{NAME:#} {DIM}{place}{DIM:#}"))?;
    }
    for finding in findings {
        row("found", plain::line(finding, 300))?;
    }
    for remedy in remedies {
        let style = self::style(remedy.answer);
        row(
            "changes",
            format!("{style}{}{style:#} {}", remedy.answer, plain::line(&remedy.change.to_string(), 300)),
        )?;
    }
    Ok(())
}

pub(super) fn style(answer: Answer) -> anstyle::Style {
    match answer {
        Answer::Allow => GOOD,
        Answer::NeedsApproval => WARN,
        Answer::Deny => BAD,
    }
}
