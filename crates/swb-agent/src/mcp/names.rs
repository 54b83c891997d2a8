//! What tools are called: `server__tool`, in letters that every provider takes, at most 64 of them, no two alike.
//!
//! A name that had to be changed carries a few digits made from the original, so that it does not depend on the company
//! it is in: a tool keeps its name when another server comes or goes.

use std::collections::HashSet;

/// What providers allow.
const MAX_CHARS: usize = 64;
const DIGITS: usize = 6;

/// The names for these pairs of server and tool, in the same order.
pub(super) fn names<'a>(tools: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let mut taken = HashSet::new();
    tools
        .map(|(server, tool)| {
            let mut name = name(server, tool);
            for round in 0u32.. {
                if taken.insert(name.clone()) {
                    break;
                }
                name = marked(&name, &format!("{round}\n{server}\n{tool}"));
            }
            name
        })
        .collect()
}

fn name(server: &str, tool: &str) -> String {
    let wanted = format!("{}__{}", plain(server), plain(tool));
    let unchanged = plain(server) == server && plain(tool) == tool && wanted.len() <= MAX_CHARS;
    if unchanged { wanted } else { marked(&wanted, &format!("{server}\n{tool}")) }
}

fn plain(text: &str) -> String {
    let plain = |letter: char| {
        if letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-') { letter } else { '_' }
    };
    text.chars().map(plain).collect()
}

fn marked(name: &str, original: &str) -> String {
    let hash = blake3::hash(original.as_bytes()).to_hex();
    let kept = &name[..name.len().min(MAX_CHARS - DIGITS - 1)];
    format!("{kept}_{}", &hash[..DIGITS])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn named(tools: &[(&str, &str)]) -> Vec<String> {
        names(tools.iter().copied())
    }

    #[test]
    fn ordinary_names_stay_as_they_are() {
        assert_eq!(named(&[("git", "log"), ("git", "show-ref")]), ["git__log", "git__show-ref"]);
    }

    #[test]
    fn a_changed_name_does_not_depend_on_its_company() {
        let alone = named(&[("my server", "a.b")]);
        assert!(alone[0].starts_with("my_server__a_b_"), "{alone:?}");
        assert_eq!(named(&[("my server", "a b"), ("my_server", "a_b"), ("my server", "a.b")])[2], alone[0]);
    }

    #[test]
    fn two_ways_to_the_same_name_are_told_apart() {
        let names = named(&[("a", "b__c"), ("a__b", "c"), ("a", "b__c")]);
        assert_eq!(names[0], "a__b__c");
        assert!(names[1].starts_with("a__b__c_") && names[2].starts_with("a__b__c_"), "{names:?}");
    }

    proptest! {
        #[test]
        fn names_are_unique_and_fit_every_provider(
            tools in proptest::collection::vec(("\\PC{0,40}", "([ab_.]{0,3}|\\PC{0,80})"), 0..30),
        ) {
            let names = names(tools.iter().map(|(server, tool)| (server.as_str(), tool.as_str())));
            prop_assert_eq!(names.iter().collect::<HashSet<_>>().len(), tools.len());
            for name in names {
                let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
                prop_assert!((1..=MAX_CHARS).contains(&name.len()) && name.bytes().all(fits), "{name}");
                prop_assert!(name.contains("__"), "{name}");
            }
        }
    }
}
