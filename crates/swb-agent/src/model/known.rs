//! What is known of hosted models by their names, for those that nobody has configured.
//!
//! Names change faster than programs: this knows families, not lists, and says nothing about prices.

use super::provider::Dialect;
use super::settings::ModelSettings;

/// Families by the beginning of their names; the first that fits counts.
const FAMILIES: &[(Dialect, &str, Family)] = &[
    (Dialect::Anthropic, "claude-2", Family::plain(100_000)),
    (Dialect::Anthropic, "claude-3-7", Family::thinking(200_000)),
    (Dialect::Anthropic, "claude-3", Family::seeing(200_000)),
    (Dialect::Anthropic, "claude-", Family::thinking(200_000)),
    (Dialect::OpenAi, "gpt-5", Family::thinking(400_000)),
    (Dialect::OpenAi, "gpt-4.1", Family::seeing(1_047_576)),
    (Dialect::OpenAi, "gpt-4o", Family::seeing(128_000)),
    (Dialect::OpenAi, "gpt-4-turbo", Family::seeing(128_000)),
    (Dialect::OpenAi, "o1", Family::thinking(200_000)),
    (Dialect::OpenAi, "o3", Family::thinking(200_000)),
    (Dialect::OpenAi, "o4", Family::thinking(200_000)),
    (Dialect::Gemini, "gemini-1", Family::seeing(1_048_576)),
    (Dialect::Gemini, "gemini-2.0", Family::seeing(1_048_576)),
    (Dialect::Gemini, "gemini-", Family::thinking(1_048_576)),
];

#[derive(Clone, Copy)]
struct Family {
    context_window: u64,
    thinking: bool,
    files: bool,
}

impl Family {
    const fn plain(context_window: u64) -> Self {
        Family { context_window, thinking: false, files: false }
    }

    const fn seeing(context_window: u64) -> Self {
        Family { context_window, thinking: false, files: true }
    }

    const fn thinking(context_window: u64) -> Self {
        Family { context_window, thinking: true, files: true }
    }
}

/// What is known of a model that its maker serves. Others serve models under the same names with other limits.
pub(super) fn settings(provider: &str, dialect: Dialect, model: &str) -> ModelSettings {
    let makers = ["anthropic", "openai", "gemini", "google"];
    let family = FAMILIES.iter().find(|(spoken, begins, _)| *spoken == dialect && model.starts_with(begins));
    match family {
        Some((_, _, family)) if makers.contains(&provider) => ModelSettings {
            context_window: Some(family.context_window),
            thinking: Some(family.thinking),
            images: Some(family.files),
            pdf: Some(family.files),
            ..ModelSettings::default()
        },
        _ => ModelSettings::default(),
    }
}

/// Models that are there for whoever has a key, should the provider not say so itself in time.
pub(super) fn offered(provider: &str) -> &'static [&'static str] {
    match provider {
        "anthropic" => &["claude-haiku-4-5", "claude-opus-4-6", "claude-sonnet-4-6"],
        "openai" => &["gpt-5", "gpt-5-mini"],
        "gemini" => &["gemini-2.5-flash", "gemini-2.5-pro"],
        _ => &[],
    }
}

/// The provider of a model that is named without one.
pub(super) fn maker(model: &str) -> Option<&'static str> {
    let (dialect, _, _) = FAMILIES.iter().find(|(_, begins, _)| model.starts_with(begins))?;
    Some(match dialect {
        Dialect::Anthropic => "anthropic",
        Dialect::OpenAi => "openai",
        Dialect::Gemini => "gemini",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_known_where_its_maker_serves_it() {
        let sonnet = settings("anthropic", Dialect::Anthropic, "claude-sonnet-4-6");
        assert_eq!((sonnet.context_window, sonnet.thinking), (Some(200_000), Some(true)));
        let old = settings("anthropic", Dialect::Anthropic, "claude-3-5-haiku-latest");
        assert_eq!((old.thinking, old.images), (Some(false), Some(true)));
        assert_eq!(settings("local", Dialect::OpenAi, "gpt-4o"), ModelSettings::default());
        assert_eq!(settings("openai", Dialect::OpenAi, "unheard-of"), ModelSettings::default());
    }

    #[test]
    fn a_bare_name_belongs_to_its_maker() {
        assert_eq!(maker("claude-sonnet-4-6"), Some("anthropic"));
        assert_eq!(maker("gpt-5"), Some("openai"));
        assert_eq!(maker("gemini-2.5-pro"), Some("gemini"));
        assert_eq!(maker("smollm2"), None);
    }
}
