//! From the call of an agent's tool to the question that rules are asked.
//!
//! What a command line or a path really is can only be seen by looking: links are followed here, and what speaks against
//! the place they lead to is added to what speaks against the line as it is written.

use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;
use swb_rules::policy::{Actor, Input, Resource, ShellFacts};
use swb_rules::shell::{Command, Mode, Nature, Place, Risk, Scope, Touch, findings_of_path, parse};

/// A workspace and the folder it is.
#[derive(Debug, Clone, Copy)]
pub struct Workspace<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its folder, absolute and real.
    pub root: &'a Path,
}

/// A call of a tool.
#[derive(Debug, Clone, Copy)]
pub struct ToolCall<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// Its arguments.
    pub arguments: &'a Value,
    /// The folder it works in.
    pub folder: &'a Path,
    /// The workspace of whoever calls it.
    pub workspace: Option<Workspace<'a>>,
    /// The home folder of the user.
    pub home: Option<&'a str>,
}

/// A question, and in words what speaks against what is asked.
#[derive(Debug)]
pub struct Asked {
    /// The question.
    pub input: Input,
    /// What was found, the worst first.
    pub findings: Vec<String>,
}

/// Why there is no question: what is asked cannot be told.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongCall {
    /// An argument is missing or of the wrong type.
    #[error("the tool `{tool}` needs the argument `{argument}`, a text")]
    Argument {
        /// The tool.
        tool: String,
        /// The argument.
        argument: &'static str,
    },
    /// A path that is not text cannot be compared with what rules say.
    #[error("the path is not UTF-8")]
    NotText,
    /// The folder of the call is not absolute.
    #[error("the folder of the call must be an absolute path")]
    Folder,
}

impl ToolCall<'_> {
    /// The question whether the actor may do it.
    pub fn ask(&self, actor: Actor) -> Result<Asked, WrongCall> {
        if !self.folder.is_absolute() {
            return Err(WrongCall::Folder);
        }
        let tool = self.tool.strip_prefix("tool.").unwrap_or(self.tool);
        match tool {
            "bash" => self.line(actor),
            // A file that comes with a prompt is read, too.
            "read" | "attachment" => self.path(actor, "read", Touch::Read, self.text("path")?),
            "write" | "edit" => self.path(actor, tool, Touch::Write, self.text("path")?),
            "ls" | "find" | "grep" => {
                let path = self.arguments.get("path").and_then(Value::as_str).unwrap_or(".");
                self.path(actor, tool, Touch::Read, path)
            }
            // Another agent, whose own calls are judged when it makes them.
            "subagent" | "subagent_start" | "subagent_steer" => Ok(self.plain(actor, "agent.run", None)),
            "subagent_cancel" => Ok(self.plain(actor, "agent.cancel", None)),
            "subagent_status" | "subagent_collect" => Ok(self.plain(actor, "agent.list", None)),
            "bus_post" | "bus_read" | "ask_user" | "task_update" | "plan" => {
                Ok(self.plain(actor, &format!("tool.{tool}"), None))
            }
            other => Ok(self.plain(actor, "tool.call", Some(other.to_owned()))),
        }
    }

    fn text(&self, argument: &'static str) -> Result<&str, WrongCall> {
        let text = self.arguments.get(argument).and_then(Value::as_str);
        text.ok_or_else(|| WrongCall::Argument { tool: self.tool.to_owned(), argument })
    }

    fn plain(&self, actor: Actor, action: &str, tool: Option<String>) -> Asked {
        let resource = match self.workspace {
            Some(workspace) => Resource::Workspace { id: workspace.id.to_owned() },
            None => Resource::House,
        };
        Asked { input: Input { tool, ..Input::new(actor, action, resource) }, findings: Vec::new() }
    }

    fn path(&self, actor: Actor, tool: &str, touch: Touch, path: &str) -> Result<Asked, WrongCall> {
        let scope = self.scope()?;
        let real = real_path(&self.folder.join(self.expanded(path).as_ref()));
        let text = real.to_str().ok_or(WrongCall::NotText)?;
        let mut findings = findings_of_path(text, touch, &scope);
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.risk));
        let resource = Resource::path(text, self.workspace_of(&real), touch, &scope);
        let input = Input {
            risk: findings.first().map_or(Risk::Low, |finding| finding.risk),
            ..Input::new(actor, format!("tool.{tool}"), resource)
        };
        Ok(Asked { input, findings: findings.into_iter().map(|finding| finding.text).collect() })
    }

    /// A `~` means what it means in a shell; the tools take it so, too.
    fn expanded<'p>(&self, path: &'p str) -> Cow<'p, str> {
        let rest = path.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
        match (rest, self.home.filter(|home| !home.is_empty())) {
            (Some(rest), Some(home)) => Cow::Owned(format!("{home}{rest}")),
            _ => Cow::Borrowed(path),
        }
    }

    fn line(&self, actor: Actor) -> Result<Asked, WrongCall> {
        let scope = self.scope()?;
        let command = parse(self.text("command")?);
        let (mut shell, mut risk, mut findings) = ShellFacts::of(&command, &scope);
        for (real, touch) in behind_links(&command, &scope) {
            let text = real.to_str().ok_or(WrongCall::NotText)?;
            for finding in findings_of_path(text, touch, &scope) {
                shell.concerns.insert(finding.concern);
                risk = risk.max(finding.risk);
                let told = format!("a link leads to {text}: {}", finding.text);
                if !findings.contains(&told) {
                    findings.push(told);
                }
            }
        }
        let folder = real_path(self.folder);
        let resource =
            Resource::folder(folder.to_str().ok_or(WrongCall::NotText)?, self.workspace_of(&folder));
        let input = Input { risk, shell: Some(shell), ..Input::new(actor, "tool.bash", resource) };
        Ok(Asked { input, findings })
    }

    fn scope(&self) -> Result<Scope, WrongCall> {
        let text = |path: &Path| path.to_str().map(str::to_owned).ok_or(WrongCall::NotText);
        Ok(Scope {
            mode: Mode::Workspace,
            directory: text(&real_path(self.folder))?,
            home: self.home.map(str::to_owned),
            writable: match self.workspace {
                Some(workspace) => vec![text(workspace.root)?],
                None => Vec::new(),
            },
        })
    }

    fn workspace_of(&self, path: &Path) -> Option<String> {
        self.workspace.filter(|workspace| path.starts_with(workspace.root)).map(|it| it.id.to_owned())
    }
}

/// Where the places of a command line really are, if that is elsewhere than written.
fn behind_links(command: &Command, scope: &Scope) -> Vec<(PathBuf, Touch)> {
    let path = |place: &Place| place.path(&scope.directory, scope.home.as_deref());
    let mut real = Vec::new();
    for invocation in &command.invocations {
        let reads = invocation.reads.iter().chain(&invocation.file).map(|place| (place, Touch::Read));
        // What changes or runs something does so where it stands.
        let acts = matches!(invocation.nature, Nature::Runs | Nature::Writes);
        let there = invocation.places.iter().filter(|_| acts);
        let writes = invocation.writes.iter().chain(there).map(|place| (place, Touch::Write));
        for (place, touch) in reads.chain(writes) {
            let Some(written) = path(place).filter(|path| !path.starts_with("/dev/")) else { continue };
            let found = real_path(Path::new(&written));
            if found != Path::new(&written) {
                real.push((found, touch));
            }
        }
    }
    real
}

/// So many links are followed; more are a circle.
const MAX_LINKS: u32 = 40;

/// Where a path leads: absolute, without `..`, every link followed. What does not exist yet is taken by its name, and a
/// link that leads nowhere by where it would lead once that is written.
#[must_use]
pub fn real_path(path: &Path) -> PathBuf {
    followed(path, MAX_LINKS)
}

fn followed(path: &Path, links: u32) -> PathBuf {
    let mut real = PathBuf::from("/");
    let mut parts = path.components();
    while let Some(part) = parts.next() {
        match part {
            Component::ParentDir => {
                real.pop();
            }
            Component::Normal(name) => {
                real.push(name);
                if links > 0
                    && let Ok(target) = real.read_link()
                {
                    real.pop();
                    return followed(&real.join(target).join(parts.as_path()), links - 1);
                }
            }
            _ => {}
        }
    }
    real
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use std::os::unix::fs::symlink;
    use swb_rules::shell::Concern;

    use super::*;

    struct Folder {
        _dir: tempfile::TempDir,
        root: PathBuf,
    }

    fn folder() -> Folder {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("project");
        std::fs::create_dir(&root).unwrap();
        Folder { _dir: dir, root }
    }

    fn ask(root: &Path, tool: &str, arguments: &Value) -> Result<Asked, WrongCall> {
        let workspace = Some(Workspace { id: "ws_1", root });
        let actor = Actor::Agent { id: "a".into(), workspace: "ws_1".into(), ancestry: Vec::new() };
        ToolCall { tool, arguments, folder: root, workspace, home: Some("/home/ann") }.ask(actor)
    }

    #[test]
    fn a_path_is_judged_by_where_it_leads() {
        let Folder { root, .. } = &folder();
        symlink("/home/ann/.ssh", root.join("keys")).unwrap();
        symlink("keys", root.join("more")).unwrap();
        let asked = ask(root, "read", &json!({ "path": "more/../.ssh/id_rsa" })).unwrap();
        let Resource::Path { path, workspace, concerns, .. } = asked.input.resource else { panic!() };
        assert_eq!((path.as_str(), workspace), ("/home/ann/.ssh/id_rsa", None));
        assert!(concerns.contains(&Concern::Secrets), "{concerns:?}");
        let asked = ask(root, "tool.write", &json!({ "path": "src/new.rs" })).unwrap();
        let Resource::Path { workspace, concerns, .. } = asked.input.resource else { panic!() };
        assert_eq!((workspace.as_deref(), concerns.len()), (Some("ws_1"), 0));
        assert_eq!(asked.input.action, "tool.write");
    }

    #[test]
    fn a_tilde_is_the_home_of_the_user_and_no_folder_of_the_workspace() {
        let Folder { root, .. } = &folder();
        let place = |path: &str| match ask(root, "read", &json!({ "path": path })).unwrap().input.resource {
            Resource::Path { path, workspace, .. } => (path, workspace),
            other => panic!("{other:?}"),
        };
        assert_eq!(place("~/notes"), ("/home/ann/notes".to_owned(), None));
        assert_eq!(place("~"), ("/home/ann".to_owned(), None));
        assert_eq!(place("~bob/notes").1.as_deref(), Some("ws_1"));
    }

    #[test]
    fn a_line_is_judged_by_where_its_links_lead() {
        let Folder { root, .. } = &folder();
        symlink("/home/ann/.aws/credentials", root.join("notes.txt")).unwrap();
        symlink("/home/ann/elsewhere", root.join("out")).unwrap();
        let concerns = |line: &str| {
            let asked = ask(root, "bash", &json!({ "command": line })).unwrap();
            asked.input.shell.unwrap().concerns
        };
        assert!(concerns("cat notes.txt").contains(&Concern::Secrets));
        assert!(concerns("echo x > out/a").contains(&Concern::Leaves));
        assert!(concerns("cd out && make").contains(&Concern::Leaves));
        assert!(concerns("cat src/lib.rs").is_empty(), "{:?}", concerns("cat src/lib.rs"));
    }

    #[test]
    fn links_in_a_circle_come_to_an_end() {
        let Folder { root, .. } = &folder();
        symlink("b", root.join("a")).unwrap();
        symlink("a", root.join("b")).unwrap();
        assert!(real_path(&root.join("a/x")).starts_with(root));
        symlink("loop", root.join("loop")).unwrap();
        assert!(ask(root, "read", &json!({ "path": "loop" })).is_ok());
    }

    #[test]
    fn what_cannot_be_told_is_refused() {
        let Folder { root, .. } = &folder();
        for (tool, arguments) in [("bash", json!({})), ("read", json!({ "path": 3 })), ("edit", json!(null))]
        {
            assert!(matches!(ask(root, tool, &arguments), Err(WrongCall::Argument { .. })), "{tool}");
        }
        let asked = ask(root, "mcp_search", &json!({})).unwrap();
        assert_eq!(
            (asked.input.action.as_str(), asked.input.tool.as_deref()),
            ("tool.call", Some("mcp_search"))
        );
        assert_eq!(ask(Path::new("x"), "ls", &json!({})).unwrap_err(), WrongCall::Folder);
    }
}
