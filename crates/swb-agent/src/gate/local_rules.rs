//! Rules of the user's own, and those of the project, where no daemon judges.
//!
//! The mode stands for the rules everyone starts with; what the user has written in `policy/*.cedar` speaks before it, and
//! what the project has written can only forbid or ask:
//!
//! | a rule | then |
//! |---|---|
//! | forbids | denied |
//! | asks (`@ask`) | asked, whatever the mode allows |
//! | permits | allowed, whatever the mode says |
//! | permits when approved | asked, unless the mode allows it anyway |
//! | none speaks | the mode decides |
//!
//! The mode that changes nothing still changes nothing. Files are looked at before each call, so a change counts at once; a
//! broken one keeps the rules that held, and if there never were any that could be used, every call is denied and the
//! denial names the file. Without any file there is nothing to ask, and the mode alone decides.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use swb_policy::{Asked, RuleFile, RuleFolder, ToolCall, Workspace, sources};
use swb_rules::policy::{
    Actor, Ancestor, Answer, Approved, Input, LoadError, Restrictions, Rules, Source, Why,
};

use super::Decision;

/// Stands for the mode where the question is only what takes away.
const THE_MODE: Source<'_> =
    Source { file: "the mode", text: "@id(\"the-mode\") permit (principal, action, resource);" };
/// The one workspace there is.
const WORKSPACE: &str = "workspace";

/// Where rules lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulePlaces {
    /// The folder that holds the user's `policy/`.
    pub config: PathBuf,
    /// The root of the project, if it is one.
    pub project: Option<PathBuf>,
}

/// The rules that hold here.
#[derive(Debug)]
pub(crate) struct LocalRules {
    own: RuleFolder,
    project: Option<RuleFolder>,
    home: Option<String>,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// What the files said when they were last looked at.
    seen: Option<Files>,
    /// What holds; none before there was anything that could be used.
    rules: Option<Arc<InForce>>,
    /// What is wrong with the files.
    trouble: Option<String>,
}

type Files = Result<[Vec<RuleFile>; 2], Vec<LoadError>>;

#[derive(Debug, Default)]
struct InForce {
    /// The user's alone.
    own: Rules,
    /// The user's beside one that permits everything.
    beside_mode: Rules,
    project: Restrictions,
    none: bool,
}

/// A call, as far as rules can speak of it.
#[derive(Debug, Clone)]
pub(super) struct LocalCall {
    pub(super) tool: String,
    pub(super) arguments: Value,
    pub(super) folder: PathBuf,
    pub(super) workspace: PathBuf,
    pub(super) session_id: String,
    pub(super) agents: Vec<String>,
}

impl LocalRules {
    pub(crate) fn new(places: RulePlaces) -> Self {
        LocalRules {
            own: RuleFolder::of_user(&places.config),
            project: places.project.as_deref().map(RuleFolder::of_project),
            home: std::env::var("HOME").ok().filter(|home| !home.is_empty()),
            kept: Mutex::default(),
        }
    }

    /// What comes out where the mode says this. Looks at the disk.
    pub(super) fn decide(&self, call: &LocalCall, mode: Decision) -> Decision {
        let rules = match self.in_force() {
            Ok(rules) if rules.none => return mode,
            Ok(rules) => rules,
            Err(trouble) => return Decision::Deny { reason: format!("the rules cannot be used: {trouble}") },
        };
        match self.question(call) {
            Ok(input) => rules.decide(&input, mode),
            Err(reason) => Decision::Deny { reason },
        }
    }

    fn question(&self, call: &LocalCall) -> Result<Input, String> {
        let asked = ToolCall {
            tool: &call.tool,
            arguments: &call.arguments,
            folder: &call.folder,
            workspace: Some(Workspace { id: WORKSPACE, root: &call.workspace }),
            home: self.home.as_deref(),
        };
        let mut line = vec![call.session_id.clone()];
        for name in &call.agents {
            line.push(format!("{}/{name}", line[line.len() - 1]));
        }
        let id = line.pop().unwrap_or_default();
        let workspace = WORKSPACE.to_owned();
        let above = |id| Ancestor { id, workspace: workspace.clone() };
        let actor = Actor::Agent {
            id,
            workspace: workspace.clone(),
            ancestry: line.into_iter().map(above).collect(),
        };
        let Asked { input, .. } = asked.ask(actor).map_err(|error| error.to_string())?;
        // Nothing holds whoever runs without a host.
        Ok(Input { contained: false, ..input })
    }

    fn in_force(&self) -> Result<Arc<InForce>, String> {
        let own = self.own.files();
        let project = self.project.as_ref().map_or(Ok(Vec::new()), RuleFolder::files);
        let found: Files = match (own, project) {
            (Ok(own), Ok(project)) => Ok([own, project]),
            (Err(errors), _) | (_, Err(errors)) => Err(errors),
        };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.seen.as_ref() != Some(&found) {
            match found.as_ref().map_err(Clone::clone).and_then(InForce::load) {
                Ok(rules) => (kept.rules, kept.trouble) = (Some(Arc::new(rules)), None),
                Err(errors) => kept.trouble = errors.first().map(ToString::to_string),
            }
            kept.seen = Some(found);
        }
        kept.rules.clone().ok_or_else(|| kept.trouble.clone().unwrap_or_default())
    }
}

impl InForce {
    fn load([own, project]: &[Vec<RuleFile>; 2]) -> Result<Self, Vec<LoadError>> {
        if own.is_empty() && project.is_empty() {
            return Ok(InForce { none: true, ..InForce::default() });
        }
        let mut beside_mode = sources(own);
        beside_mode.push(THE_MODE);
        Ok(InForce {
            own: Rules::load_without_defaults(&sources(own))?.rules,
            beside_mode: Rules::load_without_defaults(&beside_mode)?.rules,
            project: Restrictions::load_project(&sources(project))?.rules,
            none: false,
        })
    }

    fn decide(&self, input: &Input, mode: Decision) -> Decision {
        let ask = |reason| Decision::Ask { risk: input.risk, reason };
        let taken_away = self.beside_mode.decide(input, &[&self.project], Approved::No);
        match taken_away.answer {
            Answer::Deny => return Decision::Deny { reason: taken_away.reason() },
            Answer::NeedsApproval => return ask(taken_away.reason()),
            Answer::Allow => {}
        }
        let given = self.own.decide(input, &[], Approved::No);
        match (given.answer, given.why) {
            (Answer::Allow, _) => Decision::Allow,
            (Answer::NeedsApproval, _) if mode != Decision::Allow => ask(given.reason()),
            (Answer::Deny, Why::BrokenRule) => Decision::Deny { reason: given.reason() },
            // No rule of the user's speaks of it.
            _ => mode,
        }
    }
}

/// The root of the project around a folder, if it is one.
#[must_use]
pub fn project_around(folder: &Path) -> Option<PathBuf> {
    folder.ancestors().find(|folder| folder.join(".switchboard").is_dir()).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::Risk;
    use serde_json::json;

    struct Ground {
        dir: tempfile::TempDir,
        rules: LocalRules,
    }

    impl Ground {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            for folder in ["config/policy", "project/.switchboard/policy"] {
                std::fs::create_dir_all(dir.path().join(folder)).unwrap();
            }
            let (config, project) = (dir.path().join("config"), Some(dir.path().join("project")));
            let rules = LocalRules::new(RulePlaces { config, project });
            Ground { dir, rules }
        }

        fn own(&self, text: &str) {
            std::fs::write(self.dir.path().join("config/policy/a.cedar"), text).unwrap();
        }

        fn project(&self, text: &str) {
            std::fs::write(self.dir.path().join("project/.switchboard/policy/a.cedar"), text).unwrap();
        }

        fn decide(&self, tool: &str, arguments: Value, mode: Decision) -> Decision {
            let folder = self.dir.path().canonicalize().unwrap().join("project");
            let (workspace, session_id, agents) =
                (folder.clone(), "sess_1".to_owned(), vec!["scout".to_owned()]);
            let call = LocalCall { tool: tool.to_owned(), arguments, folder, workspace, session_id, agents };
            self.rules.decide(&call, mode)
        }

        fn bash(&self, command: &str, mode: Decision) -> Decision {
            self.decide("bash", json!({ "command": command }), mode)
        }
    }

    fn ask() -> Decision {
        Decision::Ask { risk: Risk::Medium, reason: "the mode asks".to_owned() }
    }

    fn deny() -> Decision {
        Decision::Deny { reason: "the mode denies".to_owned() }
    }

    fn reason(decision: Decision) -> (&'static str, String) {
        match decision {
            Decision::Allow => ("allow", String::new()),
            Decision::Ask { reason, .. } => ("ask", reason),
            Decision::Deny { reason } => ("deny", reason),
        }
    }

    #[test]
    fn without_rules_of_ones_own_the_mode_decides() {
        let ground = Ground::new();
        for mode in [Decision::Allow, ask(), deny()] {
            assert_eq!(ground.bash("git push", mode.clone()), mode);
        }
    }

    #[test]
    fn the_users_rules_speak_before_the_mode() {
        let ground = Ground::new();
        ground.own(
            r#"@reason("pushing is fine") permit (principal is Agent, action == Action::"tool.bash", resource)
               when { context.shell.commands.contains("git push") };
               @reason("no make here") forbid (principal, action == Action::"tool.bash", resource)
               when { context.shell.programs.contains("make") };
               @ask("is this the right file?") forbid (principal, action == Action::"tool.write", resource);
               @reason("reading may be agreed to") permit (principal, action == Action::"tool.read", resource)
               when { context.approved };"#,
        );
        assert_eq!(ground.bash("git push", ask()), Decision::Allow);
        assert_eq!(reason(ground.bash("make", Decision::Allow)), ("deny", "no make here".to_owned()));
        let write = ground.decide("write", json!({ "path": "a", "content": "" }), Decision::Allow);
        assert_eq!(reason(write), ("ask", "is this the right file?".to_owned()));
        let read = |mode| reason(ground.decide("read", json!({ "path": "/etc/passwd" }), mode)).0;
        assert_eq!((read(Decision::Allow), read(deny()), read(ask())), ("allow", "ask", "ask"));
        for mode in [Decision::Allow, ask(), deny()] {
            assert_eq!(ground.bash("ls", mode.clone()), mode, "no rule speaks of it");
        }
    }

    #[test]
    fn a_project_only_takes_away_and_an_agent_above_counts() {
        let ground = Ground::new();
        ground.project(
            r#"@reason("never this") forbid (principal, action == Action::"tool.bash", resource)
               when { context.shell.programs.contains("curl") };
               @ask("sure?") forbid (principal == Agent::"sess_1", action == Action::"tool.ls", resource);"#,
        );
        assert_eq!(reason(ground.bash("curl x", Decision::Allow)), ("deny", "never this".to_owned()));
        let (word, why) = reason(ground.decide("ls", json!({}), Decision::Allow));
        assert!(word == "ask" && why.starts_with("sure?"), "{word} {why}");
        assert_eq!(ground.bash("make", ask()), ask());
        // It may not permit: such a file cannot be used, and before there were rules nothing goes.
        let other = Ground::new();
        other.project("permit (principal, action, resource);");
        let (word, why) = reason(other.bash("ls", Decision::Allow));
        assert!(word == "deny" && why.contains(".switchboard/policy/a.cedar"), "{why}");
    }

    #[test]
    fn a_change_counts_at_once_and_a_broken_file_keeps_what_held() {
        let ground = Ground::new();
        let forbid = r#"forbid (principal, action == Action::"tool.bash", resource);"#;
        ground.own(forbid);
        assert_eq!(reason(ground.bash("ls", Decision::Allow)).0, "deny");
        ground.own("");
        assert_eq!(ground.bash("ls", Decision::Allow), Decision::Allow);
        ground.own("forbid (principal");
        assert_eq!(ground.bash("ls", Decision::Allow), Decision::Allow);
        ground.own(forbid);
        assert_eq!(reason(ground.bash("ls", Decision::Allow)).0, "deny");
    }
}
