//! Dotted keys, with parts that may contain dots: `models."local/qwen2.5".context_window`.

use std::fmt::Write;

/// The key of these parts; those that need it are quoted, as TOML does it.
pub(super) fn join(parts: &[&str]) -> String {
    let mut key = String::new();
    for part in parts {
        if !key.is_empty() {
            key.push('.');
        }
        let plain = part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        if plain && !part.is_empty() {
            key.push_str(part);
        } else {
            // Writing to a string cannot fail.
            let _ = write!(key, "{part:?}");
        }
    }
    key
}

/// The parts of a key. What is not closed reaches to the end; every text is a key of something.
pub(super) fn split(key: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let (mut quoted, mut escaped) = (false, false);
    for letter in key.chars() {
        let Some(part) = parts.last_mut() else { break };
        match letter {
            _ if escaped => {
                part.push(letter);
                escaped = false;
            }
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '.' if !quoted => parts.push(String::new()),
            letter => part.push(letter),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_needs_quotes_has_them() {
        assert_eq!(join(&["log", "level"]), "log.level");
        assert_eq!(join(&["models", "local/qwen2.5", "images"]), "models.\"local/qwen2.5\".images");
        assert_eq!(join(&["models", ""]), "models.\"\"");
    }

    proptest::proptest! {
        #[test]
        fn a_key_comes_apart_as_it_was_put_together(parts in proptest::collection::vec("[a-z.\"\\\\/ -]{0,6}", 1..4)) {
            let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
            proptest::prop_assert_eq!(split(&join(&parts)), parts);
        }

        #[test]
        fn any_text_comes_apart(key in "\\PC{0,20}") {
            proptest::prop_assert!(!split(&key).is_empty());
        }
    }
}
