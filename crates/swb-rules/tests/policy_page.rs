//! The rules that the documentation shows can be used as they stand.

use swb_rules::policy::{Restrictions, Rules, Source};

#[test]
fn every_rule_of_the_page_can_be_used() {
    let page = include_str!("../../../docs/policy.md");
    let rules: Vec<&str> =
        page.split("```cedar\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(rules.len() >= 4, "the page shows rules");
    for text in &rules {
        let loaded = Rules::load(&[Source { file: "docs/policy.md", text }]);
        let loaded = loaded.unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
        assert!(loaded.warnings.is_empty(), "{:?}\n{text}", loaded.warnings);
    }
    let last = rules.last().expect("there are some");
    Restrictions::load_project(&[Source { file: "ours.cedar", text: last }]).expect("a project's own");
}
