//! `swb doctor`: looks for anything that keeps Switchboard from working.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use serde::Serialize;
use swb_bus::BusHandle;
use swb_daemon::{Description, Paths};
use swb_proto::comms::Empty;
use swb_proto::control::{AuditStatus, Status};
use swb_rules::policy::LoadError;

use super::policy::files::RulesHere;
use crate::exit_code;
use crate::failure::Failure;
use crate::io::{BAD, DIM, GOOD, Io, NAME, WARN, layers};

/// Below this a disk is as good as full.
const LOW_DISK_BYTES: u64 = 64 * 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Health {
    Good,
    Warning,
    Bad,
}

#[derive(Debug, Serialize)]
struct Finding {
    what: &'static str,
    health: Health,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_step: Option<String>,
}

impl Finding {
    fn good(what: &'static str, detail: impl Into<String>) -> Self {
        Finding { what, health: Health::Good, detail: detail.into(), next_step: None }
    }
    fn warning(what: &'static str, detail: impl Into<String>, next_step: impl Into<String>) -> Self {
        Finding { what, health: Health::Warning, detail: detail.into(), next_step: Some(next_step.into()) }
    }
    fn bad(what: &'static str, detail: impl Into<String>, next_step: impl Into<String>) -> Self {
        Finding { what, health: Health::Bad, detail: detail.into(), next_step: Some(next_step.into()) }
    }
}

pub(crate) async fn run(set: &[String], io: &Io) -> Result<u8, Failure> {
    let paths = Paths::from_env()?;
    let mut findings = configuration(&paths, set);
    for (what, folder) in [("runtime folder", &paths.runtime), ("state folder", &paths.state)] {
        findings.push(folder_is_private(what, folder));
    }
    if let Err(error) = swb_daemon::redaction::start(&paths.redaction_file()) {
        findings.push(Finding::bad("redaction", error.to_string(), "mend the rule, then `swb restart`"));
    }
    findings.push(disk_has_room(&paths));
    findings.push(socket_path(&paths));
    findings.push(containment(&paths, set).await);
    findings.extend(daemon(&paths, set).await);
    let worst = findings.iter().any(|finding| finding.health == Health::Bad);
    if io.json {
        io.object(&serde_json::json!({ "healthy": !worst, "findings": findings }))?;
    } else {
        for finding in &findings {
            print(finding, io)?;
        }
    }
    Ok(if worst { exit_code::FAILURE } else { exit_code::SUCCESS })
}

fn print(Finding { what, health, detail, next_step }: &Finding, io: &Io) -> Result<(), Failure> {
    let (style, mark) = match health {
        Health::Good => (GOOD, "✓"),
        Health::Warning => (WARN, "!"),
        Health::Bad => (BAD, "✗"),
    };
    io.line(format!("{style}{mark}{style:#} {what:<15} {DIM}{detail}{DIM:#}"))?;
    next_step.as_ref().map_or(Ok(()), |step| io.line(format!("  {NAME}→{NAME:#} {step}")))
}

fn configuration(paths: &Paths, set: &[String]) -> Vec<Finding> {
    let layers =
        match layers(paths, set).and_then(|layers| layers.finish().map(|_| layers).map_err(Into::into)) {
            Ok(layers) => layers,
            Err(failure) => {
                let detail = failure.cause.unwrap_or(failure.message);
                return vec![Finding::bad(
                    "configuration",
                    detail,
                    "mend the value; `swb schema config` describes the file",
                )];
            }
        };
    if layers.warnings().is_empty() {
        let file = paths.config_file();
        let detail = if file.exists() { file.display().to_string() } else { "built-in values".to_owned() };
        return vec![Finding::good("configuration", detail)];
    }
    let warn = |warning: &swb_daemon::config::Warning| {
        Finding::warning("configuration", warning.to_string(), "`swb config` lists the settings there are")
    };
    layers.warnings().iter().map(warn).collect()
}

fn folder_is_private(what: &'static str, folder: &Path) -> Finding {
    let shown = folder.display();
    let metadata = match std::fs::symlink_metadata(folder) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Finding::good(what, format!("{shown} (made at the first start)"));
        }
        Err(error) => {
            return Finding::bad(
                what,
                format!("{shown}: {error}"),
                "make the folders above it accessible, or set SWB_HOME",
            );
        }
    };
    if !metadata.is_dir() || metadata.uid() != rustix::process::geteuid().as_raw() {
        return Finding::bad(
            what,
            format!("{shown} is not a folder of this user"),
            "remove it, or set SWB_HOME to another place",
        );
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        return Finding::warning(
            what,
            format!("{shown} can be entered by others"),
            "the next start closes it; until then: chmod 700",
        );
    }
    Finding::good(what, shown.to_string())
}

fn disk_has_room(paths: &Paths) -> Finding {
    let folder = paths.state.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    match rustix::fs::statvfs(folder) {
        Ok(disk) if disk.f_bavail * disk.f_frsize < LOW_DISK_BYTES => {
            let left = disk.f_bavail * disk.f_frsize / 1024 / 1024;
            Finding::bad(
                "disk",
                format!("{left} MiB left for {}", folder.display()),
                "make room, or set SWB_HOME to another disk",
            )
        }
        Ok(disk) => {
            Finding::good("disk", format!("{} MiB free", disk.f_bavail * disk.f_frsize / 1024 / 1024))
        }
        Err(error) => {
            Finding::warning("disk", format!("{}: {error}", folder.display()), "check the file system")
        }
    }
}

fn record(audit: &AuditStatus) -> Vec<Finding> {
    if let Some(why) = &audit.unavailable {
        let next =
            "make room or mend the disk, then `swb restart`; `swb audit verify` checks what was recorded";
        return vec![Finding::bad("record", why, next)];
    }
    let mut findings =
        vec![Finding::good("record", format!("{} records in {} segments", audit.number, audit.segments))];
    if audit.events_not_recorded > 0 {
        let detail = format!("{} events could not be recorded", audit.events_not_recorded);
        findings.push(Finding::bad("record", detail, "look into the log, then `swb restart`"));
    }
    if let Some(why) = &audit.anchor_failure {
        let detail = format!("its end could not be anchored: {why}");
        findings.push(Finding::warning("record", detail, "mend audit.anchor_command in the configuration"));
    }
    findings
}

fn socket_path(paths: &Paths) -> Finding {
    let socket = paths.control_socket().display().to_string();
    if paths.sockets == paths.runtime {
        return Finding::good("socket path", socket);
    }
    Finding::good("socket path", format!("{socket} (the runtime folder's own path is too long for a socket)"))
}

/// What becomes of what agents have started when they, or their hosts, are killed.
async fn containment(paths: &Paths, set: &[String]) -> Finding {
    let is_off = layers(paths, set)
        .and_then(|layers| Ok(layers.finish()?))
        .is_ok_and(|config| config.runs.containment == "off");
    let cell = match is_off {
        true => Err("runs.containment is off".to_owned()),
        false => swb_host::cell::try_out(&swb_daemon::containment::walls(paths, None)).await,
    };
    match cell {
        Ok(()) => {
            Finding::good("containment", "agents work in cells, and nothing is left of one that is killed")
        }
        Err(why) => Finding::warning(
            "containment",
            format!(
                "{why}; what a killed agent leaves running is found by its mark and ended by the daemon, or by the next one"
            ),
            "let unprivileged users make namespaces, and set runs.containment to auto",
        ),
    }
}

/// The rules that the next daemon would find.
fn rules(set: &[String]) -> Vec<Finding> {
    match RulesHere::try_read(set, None) {
        Ok(Ok(here)) => vec![Finding::good("rules", format!("{} in force", here.own.rules.rules().count()))],
        Ok(Err(problems)) => {
            let bad = |problem: &LoadError| {
                let detail = format!("{problem}; a daemon that starts now permits nothing");
                Finding::bad("rules", detail, "mend the file; `swb policy check` tells more")
            };
            problems.iter().map(bad).collect()
        }
        // The configuration has a finding of its own.
        Err(_) => Vec::new(),
    }
}

async fn daemon(paths: &Paths, set: &[String]) -> Vec<Finding> {
    let socket = paths.control_socket();
    let left_behind = Description::read(&paths.description());
    let handle = match BusHandle::connect(&socket).await {
        Ok(handle) => handle,
        Err(error) => {
            let finding = match (left_behind, socket.exists()) {
                (None, false) => Finding::warning("daemon", "not running", "start it with `swb up`"),
                (Some(Description { pid, .. }), _) => Finding::warning(
                    "daemon",
                    format!("pid {pid} ended without cleaning up"),
                    "`swb up` starts a new one; nothing needs to be removed",
                ),
                (None, true) => Finding::bad(
                    "daemon",
                    Failure::from(error).message,
                    "`swb up` replaces a dead socket; look into the log if it does not",
                ),
            };
            return std::iter::once(finding).chain(rules(set)).collect();
        }
    };
    let status = match handle.call::<Status>(Empty {}).await {
        Ok(status) => status,
        Err(error) => return vec![Finding::bad("daemon", error.to_string(), "`swb restart` starts it anew")],
    };
    let mut findings =
        vec![Finding::good("daemon", format!("pid {}, version {}", status.pid, status.version))];
    if status.version != env!("CARGO_PKG_VERSION") {
        let detail = format!("the daemon is {}, this command {}", status.version, env!("CARGO_PKG_VERSION"));
        findings.push(Finding::warning("version", detail, "`swb restart` starts the daemon of this version"));
    }
    findings.push(match status.watch_pid {
        Some(pid) => Finding::good("watch", format!("pid {pid}")),
        None => Finding::warning("watch", "none: a crash would not be repaired", "`swb restart` brings one"),
    });
    findings.push(match (&status.http, status.http_error) {
        (Some(url), _) => Finding::good("http", url),
        (None, Some(why)) => {
            Finding::bad("http", why, "change the section [http] of the configuration, then `swb restart`")
        }
        (None, None) => Finding::good("http", "off"),
    });
    if let Some(traces) = status.traces {
        findings.push(match traces.failure {
            None => Finding::good("traces", traces.endpoint),
            Some(why) => {
                let detail = format!("{} does not take them: {why}", traces.endpoint);
                let next = "start the collector, or change the section [telemetry], then `swb restart`";
                Finding::warning("traces", detail, next)
            }
        });
    }
    if let Some(policy) = status.policy {
        findings.extend(policy.problems.into_iter().map(|problem| {
            let meanwhile =
                if policy.denies_everything { "nothing is permitted" } else { "the old rules hold" };
            let next = "mend the file; `swb policy check` tells more".to_owned();
            Finding::bad("rules", format!("{problem}; until then {meanwhile}"), next)
        }));
    }
    if let Some(audit) = status.audit {
        findings.extend(record(&audit));
    }
    if status.counters.reservation_failures > 0 {
        findings.push(Finding::bad(
            "sequence",
            "numbers of events could not be kept on disk",
            "make room or repair the disk, then `swb restart`",
        ));
    }
    if status.counters.panics > 0 {
        let detail = format!("{} handlers panicked", status.counters.panics);
        findings.push(Finding::warning(
            "panics",
            detail,
            format!("please report what {} says", paths.log_file().display()),
        ));
    }
    findings
}
