//! How deep and how long a rule is, found without parsing it.
//!
//! Cedar's parser and validator call themselves for every bracket and every operator, and an overflow of the stack ends
//! the process: a rule file from a stranger must not reach them before it was measured.
//! Errs on the strict side: what is inside strings and comments is not counted, everything else is.

/// Deepest nesting of brackets.
const MAX_DEPTH: usize = 24;
/// Most operators in one rule.
const MAX_OPERATORS: usize = 300;
/// Most bytes of one rule.
const MAX_RULE_BYTES: usize = 16 * 1024;

/// Where a text goes beyond what is looked at, and why.
pub(super) fn measure(text: &str) -> Result<(), (usize, &'static str)> {
    let bytes = text.as_bytes();
    let (mut at, mut depth, mut operators, mut started) = (0, 0_usize, 0_usize, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |end| at + end);
            }
            b'"' => at = end_of_string(bytes, at),
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b';' => (operators, started) = (0, at + 1),
            b'&' | b'|' | b'+' | b'-' | b'*' | b'.' | b'!' | b'<' | b'>' | b'=' => operators += 1,
            b'i' | b't' | b'e' if starts_word(bytes, at) => {
                operators += usize::from(["if", "then", "else"].iter().any(|word| is_word(bytes, at, word)));
            }
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err((at, "brackets are nested too deep"));
        }
        if operators > MAX_OPERATORS || at.saturating_sub(started) > MAX_RULE_BYTES {
            return Err((started + leading_space(&bytes[started..]), "the rule is too long"));
        }
        at += 1;
    }
    Ok(())
}

/// The closing quote, or the end of the text.
fn end_of_string(bytes: &[u8], open: usize) -> usize {
    let mut at = open + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at
}

fn starts_word(bytes: &[u8], at: usize) -> bool {
    at == 0 || !bytes[at - 1].is_ascii_alphanumeric()
}

fn is_word(bytes: &[u8], at: usize, word: &str) -> bool {
    bytes[at..].starts_with(word.as_bytes())
        && bytes.get(at + word.len()).is_none_or(|byte| !byte.is_ascii_alphanumeric())
}

fn leading_space(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_rules_pass_and_endless_ones_do_not() {
        assert_eq!(measure(super::super::DEFAULT_RULES), Ok(()));
        assert_eq!(measure(&format!("// {}", "(".repeat(1000))), Ok(()));
        assert_eq!(measure(&format!("\"{}\\\"{}\"", "(".repeat(1000), "&&".repeat(1000))), Ok(()));
        let rule = format!("permit (principal, action, resource) when {{ {} }};", "true && ".repeat(90));
        assert_eq!(measure(&rule.repeat(20)), Ok(()));
        for endless in ["(", "[", "{a:", "true &&", "1 + ", "context.", "if true then 1 else "] {
            assert!(measure(&endless.repeat(400)).is_err(), "{endless}");
        }
        assert!(measure(&"x ".repeat(MAX_RULE_BYTES)).is_err());
    }

    #[test]
    fn the_place_is_that_of_the_rule() {
        let text = format!("permit (principal, action, resource);\n\n{};", "a.".repeat(400));
        assert_eq!(measure(&text), Err((39, "the rule is too long")));
    }
}
