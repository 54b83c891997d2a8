//! `swb config`: every setting, its value and its origin.

use swb_daemon::Paths;
use swb_daemon::config::{Origin, Setting};

use crate::args::ConfigArgs;
use crate::exit_code;
use crate::failure::Failure;
use crate::io::{DIM, Io, NAME, WARN, layers, project_file};

pub(crate) fn run(args: &ConfigArgs, set: &[String], io: &Io) -> Result<u8, Failure> {
    let paths = Paths::from_env()?;
    let layers = layers(&paths, set)?;
    layers.finish()?;
    let settings = layers.settings();
    if let Some(key) = &args.key {
        let Some(setting) = settings.iter().find(|setting| setting.key == *key) else {
            let failure = Failure::new(format!("there is no setting {key}")).code(exit_code::USAGE);
            return Err(failure.hint("`swb config` lists them"));
        };
        return one(setting, io);
    }
    for warning in layers.warnings() {
        io.note(format!("{WARN}warning:{WARN:#} {warning}"));
    }
    if io.json {
        io.object(&serde_json::json!({
            "file": paths.config_file(), "project_file": project_file(),
            "settings": settings, "warnings": layers.warnings(),
        }))?;
        return Ok(exit_code::SUCCESS);
    }
    let width = settings.iter().map(|setting| setting.key.len()).max().unwrap_or(0);
    for Setting { key, value, origin } in &settings {
        let value = value.to_string();
        let origin =
            if *origin == Origin::Default { String::new() } else { format!("  {DIM}from {origin}{DIM:#}") };
        io.line(format!("{NAME}{key:<width$}{NAME:#}  {value}{origin}"))?;
    }
    io.line(format!(
        "\n{DIM}Set them in {} or {}, with SWB_<KEY>, or with --set KEY=VALUE.{DIM:#}",
        paths.config_file().display(),
        ".switchboard/config.toml"
    ))?;
    Ok(exit_code::SUCCESS)
}

fn one(setting: &Setting, io: &Io) -> Result<u8, Failure> {
    if io.json {
        io.object(setting)?;
    } else {
        // A bare value, so that a script can use it as it is.
        io.line(setting.value.as_str().map_or_else(|| setting.value.to_string(), str::to_owned))?;
    }
    Ok(exit_code::SUCCESS)
}
