use super::*;

fn project(text: &str) -> Result<Loaded<Vec<Rule>>, Vec<LoadError>> {
    read(Layer::Project, &[Source { file: "project.cedar", text }])
}

fn user(text: &str) -> Result<Loaded<Vec<Rule>>, Vec<LoadError>> {
    read(Layer::User, &[Source { file: "own.cedar", text }])
}

/// The only error there is, as it is shown.
fn refused(result: Result<Loaded<Vec<Rule>>, Vec<LoadError>>) -> String {
    let errors = result.map(|loaded| loaded.rules.len()).expect_err("must be refused");
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors[0].to_string()
}

#[test]
fn a_rule_knows_its_name_place_and_reason() {
    let text = "// A comment.\n\n@id(\"quiet\")\n@reason(\"because\")\nforbid (principal, action == Action::\"tool.write\", resource);\n\n\
                permit (principal is User, action, resource);\n";
    let rules = user(text).unwrap().rules;
    let infos: Vec<_> =
        rules.iter().map(|rule| (&*rule.info.name, rule.info.line, rule.info.effect)).collect();
    assert_eq!(infos, [("quiet", 3, Effect::Forbid), ("own.cedar:7", 7, Effect::Permit)]);
    assert_eq!(rules[0].info.reason.as_deref(), Some("because"));
}

#[test]
fn a_project_may_not_permit() {
    let text =
        "forbid (principal, action in Action::\"write\", resource);\npermit (principal, action, resource);";
    assert_eq!(
        refused(project(text)),
        "project.cedar:2:1: a rule of a project may only forbid or ask, never permit \
         (what is permitted is decided in the user's own policy folder)"
    );
}

#[test]
fn what_does_not_parse_is_told_with_its_place() {
    let error = refused(user("forbid (principal, action, resource)\nwhen { context.risk > };"));
    assert!(error.starts_with("own.cedar:2:"), "{error}");
}

#[test]
fn every_error_of_every_file_is_told() {
    let files = [
        Source { file: "a.cedar", text: "forbid (principal, action, resource) when { context.rsk > 1 };" },
        Source { file: "b.cedar", text: "\nforbid (principal, action == Action::\"tool.wirte\", resource);" },
        Source { file: "c.cedar", text: "forbid (principal is Robot, action, resource);" },
        Source { file: "d.cedar", text: "fourbid" },
    ];
    let errors = read(Layer::User, &files).map(|loaded| loaded.rules.len()).unwrap_err();
    for (file, line) in [("a.cedar", 1), ("b.cedar", 2), ("c.cedar", 1), ("d.cedar", 1)] {
        assert!(errors.iter().any(|error| error.file == file && error.line == line), "{file}: {errors:?}");
    }
}

#[test]
fn a_concern_that_does_not_exist_is_refused() {
    let text = "forbid (principal, action in Action::\"run\", resource)\n\
                when { context.shell.concerns.contains(Concern::\"netwrok\") };";
    let error = refused(user(text));
    assert!(error.starts_with("own.cedar:2:"), "{error}");
}

#[test]
fn an_ask_is_a_forbid_that_stands_back_when_approved() {
    let rules = project("@ask(\"migrations are asked about\") forbid (principal, action in Action::\"write\", resource) when { resource.path like \"*/migrations/*\" };").unwrap().rules;
    assert_eq!(rules[0].info.effect, Effect::Ask);
    assert_eq!(rules[0].info.reason.as_deref(), Some("migrations are asked about"));
    assert!(rules[0].looks_at_approved);
    let json = rules[0].policy.to_json().unwrap();
    assert_eq!(json["conditions"].as_array().unwrap().len(), 2, "{json}");
    let error = refused(user("@ask permit (principal, action, resource);"));
    assert!(error.contains("`@ask` belongs to a `forbid`"), "{error}");
}

#[test]
fn only_rules_that_can_see_approved_are_asked_twice() {
    for (condition, looks) in [
        ("context.approved", true),
        ("context.risk > 1", false),
        ("context.risk > 1 && !context.approved", true),
        ("[context.approved].contains(true)", true),
        ("context has approved", true),
        ("principal is User", false),
        ("if context.contained then context.tool == \"approved\" else false", false),
    ] {
        let rules =
            user(&format!("forbid (principal, action, resource) when {{ {condition} }};")).unwrap().rules;
        assert_eq!(rules[0].looks_at_approved, looks, "{condition}");
    }
}

#[test]
fn only_rules_that_look_at_approved_first_are_left_out_while_it_is_not() {
    for (clauses, waits) in [
        ("when { context.approved }", true),
        ("when { context.approved && context.risk > 1 && context.tool == \"x\" }", true),
        ("when { context.approved } unless { context.risk > 1 }", true),
        ("when { context.risk > 1 && context.approved }", false),
        ("when { context.risk > 1 } when { context.approved }", false),
        ("when { context.approved || context.risk > 1 }", false),
        ("when { !context.approved }", false),
        ("unless { context.approved }", false),
        ("when { context.contained }", false),
        ("", false),
    ] {
        let rules = user(&format!("permit (principal, action, resource) {clauses};")).unwrap().rules;
        assert_eq!(rules[0].waits_for_approval, waits, "{clauses}");
    }
}

#[test]
fn one_name_is_one_rule() {
    let text =
        "@id(\"x\") forbid (principal, action, resource);\n@id(\"x\") forbid (principal, action, resource);";
    assert_eq!(
        refused(user(text)),
        "own.cedar:2:1: a rule is already called `x`: own.cedar:1 (give it another @id)"
    );
}

#[test]
fn templates_and_what_cannot_be_seen_are_refused() {
    let error = refused(user("forbid (principal == ?principal, action, resource);"));
    assert!(error.contains("slots"), "{error}");
    let error =
        refused(user("forbid (principal, action, resource)\nwhen { context.tool == \"\u{202e}x\" };"));
    assert_eq!(error, "own.cedar:2:25: the character U+202E cannot be seen (remove it)");
}

#[test]
fn a_file_without_end_and_rules_without_number_are_refused() {
    let error = refused(user(&"// x\n".repeat(MAX_FILE_BYTES / 5 + 1)));
    assert!(error.contains("larger than"), "{error}");
    let rule = "forbid (principal, action == Action::\"tool.write\", resource);";
    let error = refused(project(&rule.repeat(201)));
    assert!(error.contains("more than 200 rules"), "{error}");
}

#[test]
fn a_rule_that_would_overflow_the_stack_is_refused_before_it_is_parsed() {
    let rule = |condition: String| format!("forbid (principal, action, resource) when {{ {condition} }};");
    for (open, middle, close, most) in [
        ("(", "true", ")", 22),
        ("[", "1", "]", 22),
        ("{ a: ", "1", "}", 22),
        ("true && ", "true", "", 148),
        ("if true then true else ", "true", "", 98),
        ("1 + ", "1 > 0", "", 298),
    ] {
        let nested = |times: usize| rule(format!("{}{middle}{}", open.repeat(times), close.repeat(times)));
        // At the limit it must be survived, whatever the answer is.
        let _ = user(&nested(most));
        let error = refused(user(&nested(30_000.min(MAX_FILE_BYTES / (open.len() + close.len()) - 100))));
        assert!(error.contains("too deep") || error.contains("too long"), "{open}: {error}");
    }
}

#[test]
fn a_rule_that_can_never_apply_is_told() {
    let loaded = user("forbid (principal is User, action, resource) when { principal is Agent };").unwrap();
    assert_eq!(loaded.warnings.len(), 1, "{:?}", loaded.warnings);
}
