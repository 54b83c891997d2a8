//! Ids as people type them: whole, or so much of one end that only one is meant.

use crate::failure::Failure;
use crate::plain;

/// The one of `ids` that is meant. Ids of the same hour begin alike, so their ends will do as well.
pub(crate) fn one<'a>(
    ids: impl Iterator<Item = &'a str> + Clone,
    wanted: &str,
    what: &str,
    hint: &str,
) -> Result<&'a str, Failure> {
    if let Some(exact) = ids.clone().find(|id| *id == wanted) {
        return Ok(exact);
    }
    let same = |part: &str, whole: &str| part.eq_ignore_ascii_case(whole);
    let meant = |id: &&str| {
        let (bare, typed) = (unprefixed(id), unprefixed(wanted));
        let length = typed.len();
        let begins = bare.get(..length).is_some_and(|start| same(start, typed));
        let ends = bare.len().checked_sub(length).and_then(|at| bare.get(at..));
        !typed.is_empty() && (begins || ends.is_some_and(|end| same(end, typed)))
    };
    let mut meant = ids.filter(meant);
    let shown = plain::line(wanted, 90);
    match (meant.next(), meant.next()) {
        (Some(one), None) => Ok(one),
        (None, _) => Err(Failure::new(format!("there is no {what} {shown}")).hint(hint)),
        (Some(one), Some(other)) => Err(Failure::new(format!("{shown} is more than one {what}"))
            .cause(format!("{one} and {other}{}", if meant.next().is_some() { " and more" } else { "" }))
            .hint("type more of it")),
    }
}

fn unprefixed(id: &str) -> &str {
    ["apr_", "grant_", "sess_", "run_"].iter().find_map(|prefix| id.strip_prefix(prefix)).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDS: [&str; 4] = ["apr_01KAAA11", "apr_01KAAB22", "apr_01KAAB", "mine"];

    fn find(wanted: &str) -> Result<&'static str, String> {
        one(IDS.into_iter(), wanted, "approval", "a list").map_err(|failure| failure.message)
    }

    #[test]
    fn either_end_will_do_if_only_one_is_meant() {
        assert_eq!(find("apr_01KAAA"), Ok("apr_01KAAA11"));
        assert_eq!(find("01kaaa"), Ok("apr_01KAAA11"));
        assert_eq!(find("22"), Ok("apr_01KAAB22"));
        assert_eq!(find("apr_01KAAB"), Ok("apr_01KAAB"), "the whole id wins");
        assert_eq!(find("mi"), Ok("mine"));
        assert_eq!(find("01K"), Err("01K is more than one approval".into()));
        for unknown in ["", "apr_", "9", "ä", "apr_01KAAA112"] {
            assert!(find(unknown).unwrap_err().starts_with("there is no approval"), "{unknown}");
        }
    }
}
