//! Documents made from the code: schemas, manual pages, the page of all commands. Committed, and compared by the tests.

use std::fmt::Write;

use serde_json::Value;
use swb_daemon::Config;
use swb_proto::envelope::{CommandEnvelope, ResponseEnvelope};
use swb_proto::error::ErrorEnvelope;
use swb_proto::{EventEnvelope, openrpc};

use crate::exit_code;

/// The methods of the control socket.
pub fn openrpc() -> String {
    pretty(&serde_json::to_value(openrpc::document()).unwrap_or_default())
}

/// The envelopes of `helios.localbus.v1`.
pub fn envelope_schema() -> String {
    let mut generator = openrpc::generator();
    generator.subschema_for::<CommandEnvelope>();
    generator.subschema_for::<ResponseEnvelope>();
    generator.subschema_for::<EventEnvelope>();
    generator.subschema_for::<ErrorEnvelope>();
    let one_of = ["CommandEnvelope", "ResponseEnvelope", "EventEnvelope"]
        .map(|name| serde_json::json!({ "$ref": format!("#/components/schemas/{name}") }));
    pretty(&serde_json::json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": swb_proto::LOCALBUS_NAMESPACE,
        "oneOf": one_of,
        "components": { "schemas": generator.take_definitions(true) },
    }))
}

/// The HTTP interface.
pub fn openapi() -> String {
    swb_gateway::openapi::text()
}

/// The configuration file.
pub fn config_schema() -> String {
    pretty(&schemars::schema_for!(Config).to_value())
}

/// The same text whatever order the value has, which depends on who else uses the JSON library.
fn pretty(value: &Value) -> String {
    let mut value = value.clone();
    value.sort_all_objects();
    let mut text = serde_json::to_string_pretty(&value).unwrap_or_default();
    text.push('\n');
    text
}

/// The manual pages by file name.
pub fn man_pages() -> std::io::Result<Vec<(String, Vec<u8>)>> {
    let mut root = crate::command();
    root.build();
    let mut pages = Vec::new();
    for (path, command) in commands(&root) {
        let name = path.join("-");
        let mut page = Vec::new();
        clap_mangen::Man::new(command.clone().name(name.clone())).render(&mut page)?;
        pages.push((format!("{name}.1"), page));
    }
    Ok(pages)
}

/// The page `docs/cli.md`.
pub fn cli_markdown() -> String {
    let mut root = crate::command().term_width(100);
    root.build();
    let mut page = String::from(
        "# The commands of `swb`\n\nPrinted from the program; `cargo xtask schema` writes it.\n",
    );
    for (path, command) in commands(&root) {
        let help = command.clone().render_long_help().to_string();
        let _ = write!(page, "\n## {}\n\n```text\n{}\n```\n", path.join(" "), trim_lines(&help));
    }
    page.push_str("\n## Exit codes\n\n| code | meaning |\n|---|---|\n");
    for (code, meaning) in exit_code::TABLE {
        let _ = writeln!(page, "| {code} | {meaning} |");
    }
    page
}

/// Every command with the words that lead to it, the program itself first.
fn commands(root: &clap::Command) -> Vec<(Vec<String>, &clap::Command)> {
    fn below<'a>(
        path: &[String],
        command: &'a clap::Command,
        found: &mut Vec<(Vec<String>, &'a clap::Command)>,
    ) {
        let path = [path, &[command.get_name().to_owned()]].concat();
        found.push((path.clone(), command));
        for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
            below(&path, inner, found);
        }
    }
    let mut found = Vec::new();
    below(&[], root, &mut found);
    found
}

fn trim_lines(text: &str) -> String {
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end().to_owned()
}
