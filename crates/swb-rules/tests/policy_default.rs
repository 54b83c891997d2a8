//! The default rules: who may do what, without having written a rule.

use swb_rules::policy::{
    Actor, Ancestor, Answer, Approved, Input, Resource, Restrictions, Rules, ShellFacts, Source, Why, actions,
};
use swb_rules::shell::{Mode, Scope, Touch, parse};

const HOME: &str = "/home/ann";
const FOLDER: &str = "/home/ann/project";

fn rules() -> Rules {
    Rules::load(&[]).expect("the default rules load").rules
}

fn with(own: &str) -> Rules {
    Rules::load(&[Source { file: "own.cedar", text: own }]).expect("the rules load").rules
}

fn project(text: &str) -> Restrictions {
    Restrictions::load_project(&[Source { file: "project.cedar", text }]).expect("the rules load").rules
}

fn user() -> Actor {
    Actor::User { id: "ann".into() }
}

fn service() -> Actor {
    Actor::Service { id: "ci".into() }
}

fn agent() -> Actor {
    Actor::Agent { id: "sess_a".into(), workspace: "ws_1".into(), ancestry: Vec::new() }
}

fn subagent(of: &[(&str, &str)]) -> Actor {
    let ancestry =
        of.iter().map(|(id, workspace)| Ancestor { id: (*id).into(), workspace: (*workspace).into() });
    Actor::Agent { id: "sess_sub".into(), workspace: "ws_1".into(), ancestry: ancestry.collect() }
}

fn scope() -> Scope {
    Scope { mode: Mode::Workspace, directory: FOLDER.into(), home: Some(HOME.into()), writable: Vec::new() }
}

fn on_path(actor: Actor, action: &str, path: &str) -> Input {
    let touch = if matches!(action, "tool.write" | "tool.edit") { Touch::Write } else { Touch::Read };
    let workspace = path.starts_with(FOLDER).then(|| "ws_1".to_owned());
    Input::new(actor, action, Resource::path(path, workspace, touch, &scope()))
}

fn line(actor: Actor, text: &str) -> Input {
    let (facts, risk, _) = ShellFacts::of(&parse(text), &scope());
    let folder = Resource::folder(FOLDER, Some("ws_1".into()));
    Input { shell: Some(facts), risk, contained: true, ..Input::new(actor, "tool.bash", folder) }
}

fn session(workspace: &str) -> Resource {
    Resource::Session { id: "sess_a".into(), workspace: workspace.into(), project: None }
}

fn terminal() -> Resource {
    Resource::Terminal { id: "term_1".into(), session: "sess_a".into(), workspace: "ws_1".into() }
}

fn answer(rules: &Rules, input: &Input) -> Answer {
    rules.decide(input, &[], Approved::No).answer
}

use Answer::{Allow, Deny, NeedsApproval};

#[test]
fn people_may_do_everything_but_share_unasked() {
    let rules = rules();
    for action in actions() {
        let resources = [
            Resource::House,
            Resource::Workspace { id: "ws_1".into() },
            Resource::Project { id: "proj_1".into(), workspace: "ws_1".into() },
            session("ws_1"),
            terminal(),
            Resource::path(format!("{FOLDER}/.env"), Some("ws_1".into()), Touch::Read, &scope()),
        ];
        let mut fits = 0;
        for resource in resources {
            let shell = Some(ShellFacts::default());
            let decision =
                rules.decide(&Input { shell, ..Input::new(user(), action, resource) }, &[], Approved::No);
            if decision.why == Why::Unfit {
                continue;
            }
            fits += 1;
            let wanted = if action.starts_with("share.") { NeedsApproval } else { Allow };
            assert_eq!(decision.answer, wanted, "{action}");
        }
        assert!(fits > 0, "{action} fits no resource");
    }
}

#[test]
fn agents_read_and_write_in_their_workspace() {
    let rules = rules();
    for (action, path, wanted) in [
        ("tool.read", "/home/ann/project/src/lib.rs", Allow),
        ("tool.grep", "/home/ann/project", Allow),
        ("tool.read", "/usr/include/stdio.h", Allow),
        ("tool.read", "/home/ann/.cargo/registry/src/x/lib.rs", Allow),
        ("tool.read", "/home/ann/other/notes.txt", NeedsApproval),
        ("tool.ls", "/home/ann", NeedsApproval),
        ("tool.read", "/etc/passwd", NeedsApproval),
        ("tool.read", "/home/ann/project/.env", Deny),
        ("tool.read", "/home/ann/.ssh/id_ed25519", Deny),
        ("tool.read", "/home/bob/notes.txt", Deny),
        ("tool.read", "/root/x", Deny),
        ("tool.read", "/home/ann/.config/switchboard/config.toml", Deny),
        ("tool.write", "/home/ann/project/src/lib.rs", Allow),
        ("tool.edit", "/home/ann/project/Makefile", Allow),
        ("tool.write", "/home/ann/other/x", NeedsApproval),
        ("tool.write", "/usr/bin/ls", NeedsApproval),
        ("tool.write", "/home/ann/project/.git/hooks/pre-commit", NeedsApproval),
        ("tool.write", "/home/ann/project/.switchboard/policy/x.cedar", NeedsApproval),
        ("tool.write", "/home/ann/project/.claude/settings.json", NeedsApproval),
        ("tool.write", "/home/ann/project/.env", Deny),
        ("tool.write", "/home/bob/x", Deny),
        ("tool.write", "/home/ann/.ssh/authorized_keys", Deny),
        ("tool.write", "/home/ann/.config/switchboard/policy/x.cedar", Deny),
    ] {
        assert_eq!(answer(&rules, &on_path(agent(), action, path)), wanted, "{action} {path}");
    }
}

#[test]
fn what_agents_may_ask_of_the_daemon() {
    let rules = rules();
    let workspace = || Resource::Workspace { id: "ws_1".into() };
    for (action, resource, wanted) in [
        ("bus.status", Resource::House, Allow),
        ("events.subscribe", Resource::House, Allow),
        ("session.get", session("ws_1"), Allow),
        ("message.post", Resource::House, Allow),
        ("policy.decide", session("ws_1"), Allow),
        ("approval.wait", session("ws_1"), Allow),
        ("agent.run", session("ws_1"), Allow),
        ("agent.run", session("ws_2"), NeedsApproval),
        ("session.create", workspace(), NeedsApproval),
        ("session.terminate", session("ws_1"), NeedsApproval),
        ("workspace.delete", workspace(), NeedsApproval),
        ("terminal.input", terminal(), NeedsApproval),
        ("tool.call", session("ws_1"), NeedsApproval),
        ("share.upterm.start", terminal(), Deny),
        ("approval.request.resolve", Resource::House, Deny),
        ("policy.reload", Resource::House, Deny),
        ("trust.grant", Resource::House, Deny),
        ("token.issue", Resource::House, Deny),
        ("audit.purge", Resource::House, Deny),
        ("audit.search", Resource::House, Deny),
        ("bus.shutdown", Resource::House, Deny),
        ("made.up", Resource::House, Deny),
    ] {
        assert_eq!(answer(&rules, &Input::new(agent(), action, resource)), wanted, "{action}");
    }
    assert_eq!(answer(&rules, &Input::new(service(), "bus.status", Resource::House)), Allow);
    assert_eq!(answer(&rules, &Input::new(service(), "agent.run", session("ws_1"))), Deny);
    assert_eq!(answer(&rules, &Input::new(service(), "approval.request.resolve", Resource::House)), Deny);
}

#[test]
fn an_approval_lets_through_what_was_asked_about_and_nothing_else() {
    let rules = rules();
    for (text, unasked, approved) in [
        ("ls", Allow, Allow),
        ("git push", NeedsApproval, Allow),
        ("curl https://example.org", NeedsApproval, Allow),
        ("cat .env", Deny, Deny),
        ("cat /home/bob/x", Deny, Deny),
        ("swb token", Deny, Deny),
    ] {
        let input = line(agent(), text);
        assert_eq!(answer(&rules, &input), unasked, "{text}");
        assert_eq!(rules.decide(&input, &[], Approved::Yes).answer, approved, "{text}");
    }
}

#[test]
fn a_subagent_never_gets_more_than_any_agent_above_it() {
    let own = "@id(\"root-reads-only\") forbid (principal == Agent::\"sess_root\", action in Action::\"write\", resource);";
    let rules = with(own);
    let write = |actor| on_path(actor, "tool.write", "/home/ann/project/x");
    assert_eq!(answer(&rules, &write(agent())), Allow);
    assert_eq!(answer(&rules, &write(subagent(&[]))), Allow);
    let below = write(subagent(&[("sess_root", "ws_1"), ("sess_mid", "ws_1")]));
    let decision = rules.decide(&below, &[], Approved::No);
    assert_eq!((decision.answer, decision.why), (Deny, Why::Forbidden));
    assert_eq!(decision.on_behalf_of.as_deref(), Some("sess_root"));
    assert_eq!(decision.rules[0].name, "root-reads-only");
    // A parent that works elsewhere may not write here, so neither may its child.
    let decision = rules.decide(&write(subagent(&[("sess_other", "ws_2")])), &[], Approved::No);
    assert_eq!((decision.answer, decision.on_behalf_of.as_deref()), (NeedsApproval, Some("sess_other")));
    // A rule about an agent and all below it.
    let rules = with("forbid (principal in Agent::\"sess_root\", action in Action::\"run\", resource);");
    let run = line(subagent(&[("sess_root", "ws_1")]), "ls");
    assert_eq!(answer(&rules, &run), Deny);
    assert_eq!(answer(&rules, &line(agent(), "ls")), Allow);
}

#[test]
fn a_project_can_forbid_and_ask_but_only_for_itself() {
    let rules = rules();
    let project = project(
        "@id(\"no-docker\") @reason(\"we do not use docker here\")\n\
         forbid (principal, action in Action::\"run\", resource) when { context.shell.programs.contains(\"docker\") };\n\
         @id(\"migrations\") @ask(\"migrations are looked at first\")\n\
         forbid (principal, action in Action::\"write\", resource) when { resource.path like \"*/migrations/*\" };",
    );
    let docker = line(agent(), "docker ps");
    assert_eq!(answer(&rules, &docker), NeedsApproval);
    let decision = rules.decide(&docker, &[&project], Approved::No);
    assert_eq!((decision.answer, decision.reason()), (Deny, "we do not use docker here".into()));
    assert_eq!(rules.decide(&docker, &[&project], Approved::Yes).answer, Deny);

    let migration = on_path(agent(), "tool.write", "/home/ann/project/migrations/1.sql");
    assert_eq!(answer(&rules, &migration), Allow);
    let decision = rules.decide(&migration, &[&project], Approved::No);
    assert_eq!((decision.answer, decision.why), (NeedsApproval, Why::AskedFor));
    assert_eq!(decision.reason(), "migrations are looked at first");
    assert_eq!(rules.decide(&migration, &[&project], Approved::Yes).answer, Allow);
}

#[test]
fn the_users_own_rules_widen_narrow_and_replace() {
    let read_env = on_path(agent(), "tool.read", "/home/ann/project/.env");
    let push = line(agent(), "git push");
    let widened = with(
        "permit (principal is Agent, action in Action::\"run\", resource)\n\
         when { context.shell.commands.contains(\"git push\") && context.risk <= 1 };",
    );
    assert_eq!(answer(&widened, &push), Allow);
    assert_eq!(answer(&widened, &line(agent(), "git push --force")), NeedsApproval);
    assert_eq!(answer(&widened, &read_env), Deny, "a forbid wins over any permit");
    let replaced = with(
        "@id(\"no-secrets\") forbid (principal is Agent, action in Action::\"read\", resource)\n\
         when { resource.path like \"*/.ssh/*\" };",
    );
    assert_eq!(answer(&replaced, &read_env), Allow);
    assert_eq!(answer(&replaced, &on_path(agent(), "tool.read", "/home/ann/.ssh/id_rsa")), Deny);
    let narrowed = with("forbid (principal is Agent, action, resource);");
    assert_eq!(answer(&narrowed, &line(agent(), "ls")), Deny);
}

#[test]
fn no_rules_mean_no() {
    let decision =
        Rules::none().decide(&Input::new(user(), "bus.status", Resource::House), &[], Approved::Yes);
    assert_eq!((decision.answer, decision.why), (Deny, Why::NoRules));
    let nothing = Rules::load_without_defaults(&[]).unwrap().rules;
    assert_eq!(answer(&nothing, &line(agent(), "ls")), Deny);
}

#[test]
fn a_rule_that_fails_denies_and_is_named() {
    // An overflow is the one thing that the schema cannot rule out.
    let rules = with(
        "@id(\"overflow\") forbid (principal is Agent, action in Action::\"run\", resource)\n\
         when { context.risk + 9223372036854775807 < 0 };",
    );
    assert_eq!(answer(&rules, &line(agent(), "ls")), Allow);
    let decision =
        rules.decide(&Input { risk: swb_rules::shell::Risk::High, ..line(agent(), "ls") }, &[], Approved::No);
    assert_eq!((decision.answer, decision.why), (Deny, Why::BrokenRule));
    assert_eq!(decision.rules[0].name, "overflow");
}

#[test]
fn what_does_not_fit_is_denied() {
    let rules = rules();
    let folder = Resource::folder(FOLDER, Some("ws_1".into()));
    for input in [
        Input::new(user(), "tool.bash", folder.clone()),
        Input::new(user(), "session.get", folder),
        Input::new(user(), "tool.read", Resource::House),
    ] {
        let decision = rules.decide(&input, &[], Approved::Yes);
        assert_eq!((decision.answer, decision.why), (Deny, Why::Unfit), "{input:?}");
    }
}
