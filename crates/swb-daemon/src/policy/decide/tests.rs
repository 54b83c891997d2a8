use std::path::PathBuf;
use std::time::{Duration, Instant};

use swb_bus::topics::{Retention, Topics};
use swb_rules::policy::{Ancestor, Answer, Resource, Why};

use super::*;

const NOBODY_READS: &str =
    "@id(\"nobody-reads\")\nforbid (principal, action in Action::\"read\", resource);\n";
const ASK_TO_READ: &str = "@id(\"ask\")\n@ask(\"reading is asked about\")\nforbid (principal, action in Action::\"read\", resource);\n";

struct House {
    dir: tempfile::TempDir,
    paths: Paths,
    policy: Policy,
}

impl House {
    fn with(text: Option<&str>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::under(&dir.path().join("home"));
        if let Some(text) = text {
            std::fs::create_dir_all(paths.policy()).unwrap();
            std::fs::write(paths.policy().join("own.cedar"), text).unwrap();
        }
        let policy = Policy::open(&paths, &Config::default());
        House { dir, paths, policy }
    }

    fn project(&self, text: &str) -> PathBuf {
        let root = self.dir.path().join("project");
        std::fs::create_dir_all(root.join(".switchboard/policy")).unwrap();
        std::fs::write(root.join(".switchboard/policy/p.cedar"), text).unwrap();
        root
    }

    fn answer(&self, place: &Place<'_>) -> Answer {
        self.policy.decide(&reading(&[]), place, Approved::No).answer
    }

    /// Waits for an answer, and says how long it took.
    fn becomes(&self, place: &Place<'_>, wanted: Answer) -> Duration {
        let began = Instant::now();
        testkit::wait("another answer", || self.answer(place) == wanted);
        began.elapsed()
    }

    fn write(&self, text: &str) {
        std::fs::create_dir_all(self.paths.policy()).unwrap();
        std::fs::write(self.paths.policy().join("own.cedar"), text).unwrap();
    }
}

/// An agent reads a file of its workspace; so many agents stand above it.
fn reading(above: &[&str]) -> Input {
    let ancestor = |id: &&str| Ancestor { id: (*id).to_owned(), workspace: "ws_1".to_owned() };
    let actor = Actor::Agent {
        id: "sess_a".to_owned(),
        workspace: "ws_1".to_owned(),
        ancestry: above.iter().map(ancestor).collect(),
    };
    let resource = Resource::folder("/w/src", Some("ws_1".to_owned()));
    Input::new(actor, "tool.read", resource)
}

const EVERYWHERE: Place<'static> = Place { project_root: None, session_id: None };

#[test]
fn without_files_the_rules_everyone_starts_with_hold() {
    let house = House::with(None);
    assert_eq!(house.answer(&EVERYWHERE), Answer::Allow);
    let health = house.policy.health();
    assert!(health.rules > 10 && health.problems.is_empty() && !health.denies_everything, "{health:?}");
}

#[test]
fn the_defaults_can_be_switched_off_and_then_nothing_is_permitted() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.policy.defaults = false;
    let policy = Policy::open(&Paths::under(dir.path()), &config);
    let decision = policy.decide(&reading(&[]), &EVERYWHERE, Approved::Yes);
    assert_eq!((decision.answer, decision.why), (Answer::Deny, Why::NoRules));
}

#[test]
fn a_folder_that_appears_and_a_file_that_changes_take_effect_within_a_second() {
    let house = House::with(None);
    let appeared = {
        house.write(NOBODY_READS);
        house.becomes(&EVERYWHERE, Answer::Deny)
    };
    house.write(ASK_TO_READ);
    let changed = house.becomes(&EVERYWHERE, Answer::NeedsApproval);
    std::fs::remove_dir_all(house.paths.policy()).unwrap();
    let removed = house.becomes(&EVERYWHERE, Answer::Allow);
    house.write(NOBODY_READS);
    let again = house.becomes(&EVERYWHERE, Answer::Deny);
    for took in [appeared, changed, removed, again] {
        assert!(took < Duration::from_secs(1), "{took:?}");
    }
}

#[test]
fn a_file_renamed_over_another_and_the_target_of_a_link_are_noticed() {
    let house = House::with(Some(NOBODY_READS));
    let own = house.paths.policy().join("own.cedar");
    let new = house.paths.policy().join("own.new");
    std::fs::write(&new, ASK_TO_READ).unwrap();
    std::fs::rename(&new, &own).unwrap();
    house.becomes(&EVERYWHERE, Answer::NeedsApproval);
    let elsewhere = house.dir.path().join("dotfiles.cedar");
    std::fs::write(&elsewhere, NOBODY_READS).unwrap();
    std::fs::remove_file(&own).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &own).unwrap();
    house.becomes(&EVERYWHERE, Answer::Deny);
    std::fs::write(&elsewhere, ASK_TO_READ).unwrap();
    house.becomes(&EVERYWHERE, Answer::NeedsApproval);
}

#[test]
fn a_broken_file_keeps_the_old_rules_and_says_where_it_is_broken() {
    let house = House::with(Some(NOBODY_READS));
    let topics = Topics::in_memory(Retention { events: 100, bytes: 1 << 20 });
    house.policy.announce_to(Arc::clone(&topics));
    house.write("@id(\"x\")\nforbid (principal action, resource);\n");
    testkit::wait("the problem to be noticed", || !house.policy.health().problems.is_empty());
    assert_eq!(house.answer(&EVERYWHERE), Answer::Deny, "the old rule still forbids");
    let health = house.policy.health();
    assert!(!health.denies_everything && health.rules > 10, "{health:?}");
    assert_eq!((health.problems[0].file.as_str(), health.problems[0].line), ("policy/own.cedar", 2));
    house.write(ASK_TO_READ);
    house.becomes(&EVERYWHERE, Answer::NeedsApproval);
    assert!(house.policy.health().problems.is_empty());
    // Rules hold before they are told.
    testkit::wait("both to be told", || topics.head() >= 2);
    let page = topics.read(Vec::new(), None, 100).unwrap();
    let told: Vec<_> = page.events.iter().map(|event| event.topic.as_str().to_owned()).collect();
    assert_eq!(told, ["policy.rules.rejected", "policy.rules.updated"]);
    let payload = page.events[0].payload.get();
    assert!(payload.contains("policy/own.cedar") && payload.contains("\"line\":2"), "{payload}");
}

#[test]
fn rules_broken_from_the_start_deny_everything_and_name_the_file() {
    let house = House::with(Some("permit (everyone);"));
    let topics = Topics::in_memory(Retention { events: 100, bytes: 1 << 20 });
    house.policy.announce_to(Arc::clone(&topics));
    let user = Input::new(Actor::User { id: "ann".to_owned() }, "bus.status", Resource::House);
    for input in [user, reading(&[])] {
        let decision = house.policy.decide(&input, &EVERYWHERE, Approved::Yes);
        assert_eq!((decision.answer, decision.why), (Answer::Deny, Why::NoRules));
        assert!(decision.reason().contains("policy/own.cedar:1:"), "{}", decision.reason());
    }
    assert!(house.policy.health().denies_everything);
    assert_eq!(topics.read(Vec::new(), None, 9).unwrap().events[0].topic.as_str(), "policy.rules.rejected");
    house.write("");
    house.becomes(&EVERYWHERE, Answer::Allow);
}

#[test]
fn a_project_restricts_itself_alone_and_cannot_permit() {
    let house = House::with(None);
    let root = house.project(NOBODY_READS);
    let there = Place { project_root: Some(&root), session_id: None };
    assert_eq!(house.answer(&there), Answer::Deny);
    assert_eq!(house.answer(&EVERYWHERE), Answer::Allow);
    house.project(ASK_TO_READ);
    assert!(house.becomes(&there, Answer::NeedsApproval) < Duration::from_secs(1));
    house.project("permit (principal, action, resource);");
    testkit::wait("the problem to be noticed", || !house.policy.health().problems.is_empty());
    assert_eq!(house.answer(&there), Answer::NeedsApproval, "the old ones hold");
    std::fs::remove_dir_all(root.join(".switchboard")).unwrap();
    house.becomes(&there, Answer::Allow);
}

#[test]
fn a_project_whose_rules_were_never_usable_denies_what_is_done_in_it() {
    let house = House::with(None);
    let root = house.project("nonsense");
    let there = Place { project_root: Some(&root), session_id: None };
    let decision = house.policy.decide(&reading(&[]), &there, Approved::Yes);
    assert_eq!(decision.answer, Answer::Deny);
    assert!(decision.reason().contains(".switchboard/policy/p.cedar:1:"), "{}", decision.reason());
    assert_eq!(house.answer(&EVERYWHERE), Answer::Allow);
}

#[test]
fn rules_of_a_session_hold_below_it_and_after_a_restart() {
    let house = House::with(None);
    let there = Place { project_root: None, session_id: Some("sess_root") };
    assert_eq!(house.policy.restrict_session("sess_root", NOBODY_READS).unwrap(), 1);
    let again = Policy::open(&house.paths, &Config::default());
    for policy in [&house.policy, &again] {
        let decide = |input: &Input, place| policy.decide(input, place, Approved::No).answer;
        assert_eq!(decide(&reading(&[]), &there), Answer::Deny);
        assert_eq!(decide(&reading(&["sess_root", "sess_b"]), &EVERYWHERE), Answer::Deny, "below it");
        assert_eq!(decide(&reading(&["sess_b"]), &EVERYWHERE), Answer::Allow);
    }
    let wrong = house.policy.restrict_session("sess_root", "permit (principal, action, resource);");
    assert!(matches!(wrong, Err(RestrictError::Rules(_))), "{wrong:?}");
    assert_eq!(house.answer(&there), Answer::Deny, "nothing changed");
    for id in ["", "../x", ".x", "a/b"] {
        assert!(matches!(house.policy.restrict_session(id, NOBODY_READS), Err(RestrictError::Id)), "{id}");
    }
    house.policy.forget_session("sess_root");
    assert_eq!(house.answer(&there), Answer::Allow);
    assert_eq!(std::fs::read_dir(house.paths.session_rules()).unwrap().count(), 0);
}

#[test]
fn a_damaged_file_of_a_session_denies_what_is_done_in_it() {
    let house = House::with(None);
    house.policy.restrict_session("sess_a", NOBODY_READS).unwrap();
    std::fs::write(house.paths.session_rules().join("sess_a.cedar"), [0xff]).unwrap();
    let again = Policy::open(&house.paths, &Config::default());
    let decision = again.decide(&reading(&[]), &EVERYWHERE, Approved::Yes);
    assert_eq!(decision.answer, Answer::Deny);
    assert!(decision.reason().contains("session rules"), "{}", decision.reason());
}

#[test]
fn the_last_one_to_go_ends_the_thread() {
    let house = House::with(None);
    let weak = Arc::downgrade(&house.policy.shared);
    let bell = Arc::clone(&house.policy.shared.bell);
    drop(house);
    assert!(bell.is_stopped());
    testkit::wait("the thread to let go", || weak.upgrade().is_none());
}
