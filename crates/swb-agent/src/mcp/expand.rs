//! Variables in settings: `${NAME}`, `${env:NAME}` and `${NAME:-OTHERWISE}`.
//!
//! So that a file names a secret without holding it. Anything else with a dollar sign is left as it is.

/// A setting names a variable that is not there.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the variable {0} is not set in the environment")]
pub(super) struct Unset(String);

/// The text with the values of its variables.
pub(super) fn expand(text: &str, value_of: impl Fn(&str) -> Option<String>) -> Result<String, Unset> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, after) = rest.split_at(at);
        expanded.push_str(before);
        let Some((inside, behind)) = after[2..].split_once('}') else {
            rest = after;
            break;
        };
        let (name, otherwise) = match inside.split_once(":-") {
            Some((name, otherwise)) => (name, Some(otherwise)),
            None => (inside.strip_prefix("env:").unwrap_or(inside), None),
        };
        if is_name(name) {
            let value = value_of(name).or_else(|| otherwise.map(str::to_owned));
            expanded.push_str(&value.ok_or_else(|| Unset(name.to_owned()))?);
        } else {
            expanded.push_str(&after[..after.len() - behind.len()]);
        }
        rest = behind;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

fn is_name(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && text.bytes().next().is_some_and(|byte| !byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Result<String, Unset> {
        expand(text, |name| (name == "KEY").then(|| "v${KEY}".to_owned()))
    }

    #[test]
    fn variables_are_replaced_once_and_other_dollars_stay() {
        for (text, wanted) in [
            ("Bearer ${KEY}", "Bearer v${KEY}"),
            ("${env:KEY}${KEY:-x}", "v${KEY}v${KEY}"),
            ("${NO:-a b}${NO:-}", "a b"),
            ("$KEY $5 ${} ${a b} ${", "$KEY $5 ${} ${a b} ${"),
            ("", ""),
        ] {
            assert_eq!(expanded(text).as_deref(), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn a_variable_that_is_not_set_is_named() {
        assert_eq!(expanded("x${NO}"), Err(Unset("NO".to_owned())));
    }
}
