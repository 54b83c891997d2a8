//! Over random questions and random rules: the sorted, two-step decision is the one that Cedar gives over all rules at
//! once, and nothing that may only take away ever gives.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use cedar_policy::{Authorizer, Context, Decision as Cedar, Entities, EntityUid, PolicySet, Request, Schema};
use proptest::prelude::*;
use serde_json::{Value, json};
use swb_rules::policy::{
    Actor, Ancestor, Answer, Approved, DEFAULT_RULES, Input, Resource, Restrictions, Rules, SCHEMA,
    ShellFacts, Source, actions,
};
use swb_rules::shell::{Concern, Risk};

static DEFAULTS: LazyLock<Rules> = LazyLock::new(|| Rules::load(&[]).expect("the default rules load").rules);

const WORKSPACES: [&str; 2] = ["ws_1", "ws_2"];
const AGENTS: [&str; 3] = ["sess_a", "sess_b", "sess_c"];

fn workspace() -> impl Strategy<Value = String> {
    prop::sample::select(&WORKSPACES[..]).prop_map(str::to_owned)
}

fn actor() -> impl Strategy<Value = Actor> {
    let ancestor = (prop::sample::select(&AGENTS[..2]), workspace())
        .prop_map(|(id, workspace)| Ancestor { id: id.to_owned(), workspace });
    prop_oneof![
        1 => Just(Actor::User { id: "ann".into() }),
        1 => Just(Actor::Service { id: "ci".into() }),
        4 => (prop::sample::select(&AGENTS[..]), workspace(), prop::collection::vec(ancestor, 0..3)).prop_map(
            |(id, workspace, mut ancestry)| {
                ancestry.retain(|above| above.id != id);
                ancestry.dedup_by(|one, other| one.id == other.id);
                Actor::Agent { id: id.to_owned(), workspace, ancestry }
            }
        ),
    ]
}

fn concerns() -> impl Strategy<Value = BTreeSet<Concern>> {
    prop::collection::btree_set(prop::sample::select(&Concern::ALL[..]), 0..3)
}

fn resource() -> impl Strategy<Value = Resource> {
    prop_oneof![
        Just(Resource::House),
        workspace().prop_map(|id| Resource::Workspace { id }),
        workspace().prop_map(|workspace| Resource::Project { id: "proj_1".into(), workspace }),
        workspace().prop_map(|workspace| Resource::Session {
            id: "sess_a".into(),
            workspace,
            project: Some("proj_1".into())
        }),
        workspace().prop_map(|workspace| Resource::Terminal {
            id: "term_1".into(),
            session: "sess_a".into(),
            workspace
        }),
        (prop::option::of(workspace()), concerns(), any::<bool>(), "/[a-z]{1,3}/[a-z.]{1,6}").prop_map(
            |(workspace, concerns, common, path)| Resource::Path { path, workspace, concerns, common }
        ),
    ]
}

fn input() -> impl Strategy<Value = Input> {
    let names = actions().chain(["made.up"]).map(str::to_owned).collect::<Vec<_>>();
    let shell =
        (concerns(), prop::collection::btree_set("(rm|ls|git)", 0..3)).prop_map(|(concerns, programs)| {
            ShellFacts { programs: programs.clone(), commands: programs, concerns }
        });
    (
        actor(),
        prop_oneof![
            2 => prop::sample::select(names),
            1 => prop::sample::select(vec!["tool.bash".to_owned(), "tool.read".to_owned(), "tool.write".to_owned()])
        ],
        resource(),
        prop::sample::select(vec![Risk::Low, Risk::Medium, Risk::High, Risk::Critical]),
        any::<bool>(),
        prop::option::weighted(0.8, shell),
    )
        .prop_map(|(actor, action, resource, risk, contained, shell)| Input {
            risk,
            contained,
            shell,
            ..Input::new(actor, action, resource)
        })
}

/// Conditions that every action can be asked about, and a few scopes.
fn rule() -> impl Strategy<Value = String> {
    let effect = prop::sample::select(vec!["permit", "forbid"]);
    let principal = prop::sample::select(vec![
        "principal",
        "principal is User",
        "principal is Agent",
        "principal == Agent::\"sess_a\"",
        "principal in Agent::\"sess_b\"",
        "principal is Agent in Agent::\"sess_b\"",
        "principal == Service::\"ci\"",
    ]);
    let action = prop::sample::select(vec![
        "action",
        "action in Action::\"look\"",
        "action in [Action::\"read\", Action::\"write\"]",
        "action in Action::\"tool\"",
        "action == Action::\"tool.bash\"",
        "action in [Action::\"share\", Action::\"session.get\"]",
    ]);
    let resource = prop::sample::select(vec![
        "resource",
        "resource is Path",
        "resource in Workspace::\"ws_1\"",
        "resource is Session in Workspace::\"ws_2\"",
        "resource in Project::\"proj_1\"",
        "resource == House::\"house\"",
    ]);
    let condition = prop::sample::select(vec![
        "true",
        "context.approved",
        "context.risk > 1",
        "context.contained",
        "!context.approved && context.risk > 0",
        "context.approved || context.contained",
        "resource in Workspace::\"ws_1\"",
        "principal is Agent && resource in principal.workspace",
        "principal in Agent::\"sess_a\"",
    ]);
    (effect, principal, action, resource, prop::sample::select(vec!["when", "unless"]), condition).prop_map(
        |(effect, principal, action, resource, word, condition)| {
            format!("{effect} ({principal}, {action}, {resource}) {word} {{ {condition} }};\n")
        },
    )
}

fn load(text: &str) -> Option<Rules> {
    // Scopes that contradict each other are refused by the schema; the rest of the file is what matters then.
    Rules::load(&[Source { file: "own.cedar", text }]).ok().map(|loaded| loaded.rules)
}

/// The answer of Cedar itself over all rules, for one agent of the line; `None` if the schema refuses the question.
fn oracle(
    policies: &PolicySet,
    schema: &Schema,
    input: &Input,
    level: usize,
    approved: bool,
) -> Option<bool> {
    let uid = |kind: &str, id: &str| json!({ "type": kind, "id": id });
    let (kind, id, attributes, parents): (&str, String, Value, Vec<Value>) = match &input.actor {
        Actor::User { id } => ("User", id.clone(), json!({}), vec![]),
        Actor::Service { id } => ("Service", id.clone(), json!({}), vec![]),
        Actor::Agent { id, workspace, ancestry } => {
            let (id, workspace) =
                ancestry.get(level).map_or((id, workspace), |above| (&above.id, &above.workspace));
            let parents = ancestry[..level].iter().map(|above| uid("Agent", &above.id)).collect();
            let home = json!({ "workspace": { "__entity": uid("Workspace", workspace) } });
            ("Agent", id.clone(), home, parents)
        }
    };
    let of = |concerns: &BTreeSet<Concern>| -> Vec<Value> {
        concerns.iter().map(|concern| json!({ "__entity": uid("Concern", concern.name()) })).collect()
    };
    let in_workspace = |workspace: &String| uid("Workspace", workspace);
    let (resource_kind, resource_attributes, resource_parents) = match &input.resource {
        Resource::House => ("House", json!({}), vec![]),
        Resource::Workspace { .. } => ("Workspace", json!({}), vec![]),
        Resource::Project { workspace, .. } => ("Project", json!({}), vec![in_workspace(workspace)]),
        Resource::Session { workspace, project, .. } => (
            "Session",
            json!({}),
            project.iter().map(|project| uid("Project", project)).chain([in_workspace(workspace)]).collect(),
        ),
        Resource::Terminal { session, workspace, .. } => {
            ("Terminal", json!({}), vec![uid("Session", session), in_workspace(workspace)])
        }
        Resource::Path { path, workspace, concerns, common } => (
            "Path",
            json!({ "path": path, "concerns": of(concerns), "common": common }),
            workspace.iter().map(in_workspace).collect(),
        ),
    };
    let entities = json!([
        { "uid": uid(kind, &id), "attrs": attributes, "parents": parents },
        { "uid": uid(resource_kind, input.resource.id()), "attrs": resource_attributes, "parents": resource_parents },
    ]);
    let entities = Entities::from_json_value(entities, Some(schema)).expect("entities fit the schema");
    let action: EntityUid = EntityUid::from_json(uid("Action", &input.action)).ok()?;
    let mut context = json!({
        "approved": approved, "risk": input.risk as i64, "contained": input.contained,
        "tool": input.tool.clone().unwrap_or_default(), "arguments": "",
    });
    if input.action == "tool.bash" {
        let shell = input.shell.as_ref()?;
        context["shell"] = json!({ "programs": shell.programs, "commands": shell.commands, "concerns": of(&shell.concerns) });
    }
    let context = Context::from_json_value(context, Some((schema, &action))).ok()?;
    let principal = EntityUid::from_json(uid(kind, &id)).expect("a name");
    let resource = EntityUid::from_json(uid(resource_kind, input.resource.id())).expect("a name");
    let request = Request::new(principal, action, resource, context, Some(schema)).ok()?;
    Some(Authorizer::new().is_authorized(&request, policies, &entities).decision() == Cedar::Allow)
}

fn depth(actor: &Actor) -> usize {
    match actor {
        Actor::Agent { ancestry, .. } => ancestry.len(),
        _ => 0,
    }
}

fn alone(input: &Input, level: usize) -> Input {
    let mut input = input.clone();
    if let Actor::Agent { id, workspace, ancestry } = &mut input.actor
        && let Some(above) = ancestry.get(level).cloned()
    {
        (*id, *workspace) = (above.id, above.workspace);
        ancestry.truncate(level);
    }
    input
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn sorting_and_asking_twice_changes_no_answer(
        own in prop::collection::vec(rule(), 0..6),
        inputs in prop::collection::vec(input(), 1..12),
    ) {
        let schema = Schema::from_cedarschema_str(SCHEMA).unwrap().0;
        let own = own.concat();
        let Some(rules) = load(&own) else { return Ok(()) };
        let policies: PolicySet = format!("{DEFAULT_RULES}\n{own}").parse().unwrap();
        for input in inputs {
            let wanted = (0..=depth(&input.actor))
                .map(|level| {
                    let ask = |approved| oracle(&policies, &schema, &input, level, approved).unwrap_or(false);
                    match (ask(false), ask(true)) {
                        (true, _) => Answer::Allow,
                        (false, true) => Answer::NeedsApproval,
                        (false, false) => Answer::Deny,
                    }
                })
                .max()
                .unwrap();
            prop_assert_eq!(rules.decide(&input, &[], Approved::No).answer, wanted, "{:?}\n{}", input, own);
        }
    }

    #[test]
    fn a_subagent_gets_no_more_than_each_agent_above_it(inputs in prop::collection::vec(input(), 20)) {
        for input in inputs {
            let own = DEFAULTS.decide(&input, &[], Approved::No).answer;
            for level in 0..depth(&input.actor) {
                prop_assert!(DEFAULTS.decide(&alone(&input, level), &[], Approved::No).answer <= own);
            }
        }
    }

    #[test]
    fn rules_of_a_project_only_take_away(
        more in prop::collection::vec((any::<bool>(), rule()), 0..6),
        inputs in prop::collection::vec(input(), 1..12),
    ) {
        let text: String = more
            .iter()
            .map(|(ask, rule)| format!("{}{}", if *ask { "@ask " } else { "" }, rule.replace("permit", "forbid")))
            .collect();
        let Ok(loaded) = Restrictions::load_project(&[Source { file: "p.cedar", text: &text }]) else {
            return Ok(());
        };
        for input in inputs {
            for approved in [Approved::No, Approved::Yes] {
                let without = DEFAULTS.decide(&input, &[], approved).answer;
                let with = DEFAULTS.decide(&input, &[&loaded.rules], approved).answer;
                prop_assert!(with >= without, "{:?}\n{}", input, text);
            }
        }
    }

    #[test]
    fn any_text_is_loaded_or_refused(text in "\\PC{0,200}", file in "[a-z]{1,4}\\.cedar") {
        if let Err(errors) = Rules::load_without_defaults(&[Source { file: &file, text: &text }]) {
            prop_assert!(!errors.is_empty());
            prop_assert!(errors.iter().all(|error| error.file == file && error.line >= 1));
        }
    }

    #[test]
    fn without_rules_nothing_is_allowed(inputs in prop::collection::vec(input(), 10)) {
        let rules = Rules::load_without_defaults(&[]).unwrap().rules;
        for input in inputs {
            prop_assert_eq!(rules.decide(&input, &[], Approved::Yes).answer, Answer::Deny);
        }
    }
}
