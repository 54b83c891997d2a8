//! What an entry can be filtered by, as words of the index.
//!
//! A facet stands in the same index as the words, so that a filter and a word are intersected by it and not one hit after
//! the other. It begins with `§`, which no word contains, and is hashed, so that any text becomes one word. Two texts
//! with the same hash do no harm: every hit is compared with the record itself.

use serde::Serialize;

use crate::audit::Entry;

/// What an entry can be filtered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Facet {
    ActorKind,
    ActorId,
    /// A method or a topic.
    Name,
    /// The part of a name before its first dot.
    Namespace,
    Workspace,
    Session,
    Correlation,
    ParentCorrelation,
    Status,
    Kind,
    Decision,
}

impl Facet {
    pub(super) fn word(self, value: &str) -> String {
        let letter = match self {
            Facet::ActorKind => 'A',
            Facet::ActorId => 'a',
            Facet::Name => 'n',
            Facet::Namespace => 'N',
            Facet::Workspace => 'w',
            Facet::Session => 's',
            Facet::Correlation => 'c',
            Facet::ParentCorrelation => 'p',
            Facet::Status => 't',
            Facet::Kind => 'k',
            Facet::Decision => 'd',
        };
        // The index folds the case of letters; digits keep apart what letters would not.
        let hash = blake3::hash(value.as_bytes());
        format!("§{}{}", u32::from(letter), &hash.to_hex()[..16])
    }
}

/// The facets of an entry.
pub(super) fn facets_of(entry: &Entry) -> Vec<String> {
    let mut found = vec![Facet::Kind.word(&name_of(entry.kind))];
    let mut put = |facet: Facet, value: Option<&str>| found.extend(value.map(|value| facet.word(value)));
    put(Facet::ActorKind, entry.actor.as_ref().map(|actor| actor.kind.as_str()));
    put(Facet::ActorId, entry.actor.as_ref().map(|actor| actor.id.as_str()));
    let name = entry.method.as_deref().or(entry.topic.as_deref());
    put(Facet::Name, name);
    put(Facet::Namespace, name.map(namespace));
    put(Facet::Workspace, entry.workspace_id.as_deref());
    put(Facet::Session, entry.session_id.as_deref());
    put(Facet::Correlation, entry.correlation_id.as_deref());
    put(Facet::ParentCorrelation, entry.parent_correlation_id.as_deref());
    put(Facet::Status, entry.status.map(name_of).as_deref());
    put(Facet::Decision, entry.decision.as_ref().map(|decision| decision.id.as_str()));
    found
}

/// The part of a method or topic before its first dot or slash.
pub(super) fn namespace(name: &str) -> &str {
    name.split(['.', '/']).next().unwrap_or(name)
}

/// A kind or a status as it is written.
pub(super) fn name_of(value: impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}
