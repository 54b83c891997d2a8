//! Which MCP servers an agent gets: those of the configuration, then those of an `mcp.json` of the user's.
//!
//! Of two servers with one name the one that was named first counts. What a project names (in its configuration or in an
//! `mcp.json` of its own) is started only if the user has trusted the file as it is; else the agent says so, and what
//! would help.

use std::path::{Path, PathBuf};
use std::time::Duration;

use swb_agent::mcp::json_file::Named;
use swb_agent::mcp::{JsonFileError, McpOptions, Reach, ServerSpec, parse_json_file, read_json_file};
use swb_daemon::Paths;
use swb_daemon::config::{Layers, McpServerConfig, Origin};
use swb_daemon::trust::Trust;
use swb_proto::agent::{McpServer, McpState};

use crate::failure::Failure;
use crate::incumbent;
use crate::project_trust::{self, ProjectTrust};

/// The servers for an agent of this profile.
pub(crate) fn options(paths: &Paths, layers: &Layers, profile: Option<&str>) -> Result<McpOptions, Failure> {
    let config = layers.finish()?;
    let mut servers: Vec<_> = config
        .mcp
        .into_iter()
        .filter(|(_, server)| server.enabled)
        .map(|(name, server)| spec(&name, server))
        .collect();
    let trust = ProjectTrust::read(paths);
    let mut notices: Vec<_> =
        layers.inert_servers().iter().map(|(name, origin)| inert(paths, &trust, name, origin)).collect();
    for file in json_files(paths, profile, |name| std::env::var_os(name).map(PathBuf::from)) {
        take(&mut servers, &mut notices, read_json_file(&file));
    }
    for (path, file) in PROJECT_FILES.iter().filter_map(|name| project_trust::nearest(name)) {
        let found = parse_json_file(&path, &file.bytes);
        if trust.of_file(&path, &file.bytes) == Trust::Trusted {
            take(&mut servers, &mut notices, found);
        } else {
            let origin = Origin::File { path };
            let names = found.into_iter().flatten().map(|(name, _)| name);
            notices.extend(names.map(|name| inert(paths, &trust, &name, &origin)));
        }
    }
    Ok(McpOptions { servers, notices, key_file: paths.argument_key() })
}

/// The `mcp.json` that a project may have.
const PROJECT_FILES: [&str; 2] = [".switchboard/mcp.json", ".mcp.json"];

/// Takes what a file names, and remembers what is wrong with it.
fn take(
    servers: &mut Vec<ServerSpec>,
    notices: &mut Vec<McpServer>,
    found: Result<Vec<Named>, JsonFileError>,
) {
    match found {
        Ok(found) => {
            for (name, server) in found {
                match server {
                    Ok(server) => servers.push(server),
                    Err(error) => notices.push(notice(&name, McpState::Failed, error.to_string())),
                }
            }
        }
        Err(error) => notices.push(notice("mcp.json", McpState::Failed, error.to_string())),
    }
}

/// Why a server of a project is not there.
fn inert(paths: &Paths, trust: &ProjectTrust, name: &str, origin: &Origin) -> McpServer {
    let why = match origin {
        Origin::File { path } => trust.why_not(path),
        _ => String::new(),
    };
    let message = format!(
        "it is named in {origin}, which is part of a project, and was not started: {why}; or name it in {}",
        paths.config_file().display()
    );
    notice(name, McpState::Inert, message)
}

fn notice(server: &str, state: McpState, message: String) -> McpServer {
    McpServer { server: server.to_owned(), state, tools: None, message: Some(message) }
}

/// Where an `mcp.json` may lie, ours first. Of a profile's and the common one only the profile's is read.
fn json_files(
    paths: &Paths,
    profile: Option<&str>,
    variable: impl Fn(&str) -> Option<PathBuf>,
) -> Vec<PathBuf> {
    let of_profile = profile.map(|profile| paths.profile(profile).join("mcp.json"));
    let ours = of_profile.filter(|file| file.is_file()).unwrap_or_else(|| paths.config.join("mcp.json"));
    let base = incumbent::base(|name| variable(name).map(PathBuf::into_os_string));
    let theirs = base.map(|base| incumbent::file(&base, profile, "mcp.json"));
    [Some(ours), theirs].into_iter().flatten().collect()
}

fn spec(name: &str, config: McpServerConfig) -> ServerSpec {
    let McpServerConfig { command, args, env, cwd, url, headers, allow, hide, .. } = config;
    let reach = if url.is_empty() {
        let folder = Some(cwd).filter(|cwd| !cwd.is_empty()).map(|cwd| Path::new(&cwd).to_owned());
        Reach::Program { command, args, env, folder }
    } else {
        Reach::Address { url, headers }
    };
    ServerSpec {
        allow,
        hide,
        start_timeout: Duration::from_secs(config.start_timeout_s),
        call_timeout: Duration::from_secs(config.call_timeout_s),
        ..ServerSpec::new(name, reach)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_homes_are_looked_into_and_a_profile_has_its_own_file() {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::under(&dir.path().join("home"));
        let base = dir.path().join("base");
        std::fs::create_dir_all(base.join("work")).unwrap();
        std::fs::write(base.join("work/mcp.json"), "{}").unwrap();
        let ours = paths.config.join("mcp.json");
        let files = |profile, name: &str, value: &Path| {
            json_files(&paths, profile, |asked| (asked == name).then(|| value.to_owned()))
        };
        assert_eq!(files(None, "SYNAPS_BASE_DIR", &base), [ours.clone(), base.join("mcp.json")]);
        assert_eq!(files(Some("work"), "SYNAPS_BASE_DIR", &base), [ours.clone(), base.join("work/mcp.json")]);
        assert_eq!(files(Some("play"), "SYNAPS_BASE_DIR", &base)[1], base.join("mcp.json"));
        assert_eq!(files(None, "HOME", Path::new("/h"))[1], Path::new("/h/.synaps-cli/mcp.json"));
        assert_eq!(files(None, "SYNAPS_BASE_DIR", Path::new("")), [ours]);
    }
}
