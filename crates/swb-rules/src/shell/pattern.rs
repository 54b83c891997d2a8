//! Names with `*`, `?` and `[…]` on both sides: could two patterns mean the same name?

/// Whether a name (or pattern) of a path and a name of a rule can be the same.
pub(super) fn meets(part: &str, name: &str) -> bool {
    let is_pattern = part.contains(['*', '?', '[']);
    if !is_pattern && !name.contains('*') {
        return part.eq_ignore_ascii_case(name);
    }
    if is_pattern && is_generic(part) {
        return false;
    }
    let (part, name) = (part.to_lowercase(), name.to_lowercase());
    let (part, name): (Vec<char>, Vec<char>) = (flatten(&part), flatten(&name));
    if part.len() > 256 {
        return true;
    }
    // Row by row: `reach[j]` says whether what was read of `part` can be the first `j` characters of `name`.
    let mut reach = vec![false; name.len() + 1];
    reach[0] = true;
    for (at, wild) in name.iter().enumerate() {
        reach[at + 1] = reach[at] && *wild == '*';
    }
    for &p in &part {
        let mut next = vec![false; name.len() + 1];
        next[0] = p == '*' && reach[0];
        for (at, &n) in name.iter().enumerate() {
            next[at + 1] = if p == '*' || n == '*' {
                reach[at + 1] || next[at] || (reach[at] && p != '*' && n == '*')
            } else {
                reach[at] && (p == n || p == '?' || n == '?')
            };
        }
        reach = next;
    }
    reach.last().copied().unwrap_or(false)
}

/// A pattern that is not aimed at any name: `*`, `*.rs`, `[a-z]*`. Shells keep such patterns away from dot files.
fn is_generic(part: &str) -> bool {
    if part.starts_with('.') {
        return false;
    }
    let stem = part
        .rsplit_once('.')
        .map_or(part, |(stem, extension)| if extension.contains(['*', '?', '[']) { part } else { stem });
    flatten(stem).iter().all(|character| !character.is_alphanumeric())
}

/// A pattern with its bracket expressions taken for any character.
fn flatten(pattern: &str) -> Vec<char> {
    let mut flat = Vec::new();
    let mut rest = pattern.chars();
    while let Some(character) = rest.next() {
        if character == '['
            && let Some((_, after)) = rest.as_str().split_once(']')
        {
            flat.push('?');
            rest = after.chars();
        } else {
            flat.push(character);
        }
    }
    flat
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_meet_names_they_could_expand_to() {
        for (part, name) in [
            (".e*", ".env"),
            (".en?", ".env"),
            (".[e]nv", ".env"),
            ("cred*", "credentials.json"),
            (".ENV", ".env"),
            ("service-account-7.json", "service-account*.json"),
            ("*edentials*", "credentials.yml"),
            ("id_*", "id_rsa"),
        ] {
            assert!(meets(part, name), "{part} {name}");
        }
        for (part, name) in [
            ("*", ".env"),
            ("*.rs", "credentials.json"),
            ("environment", ".env"),
            (".envrc", ".env"),
            ("src", "secrets"),
        ] {
            assert!(!meets(part, name), "{part} {name}");
        }
    }
}
