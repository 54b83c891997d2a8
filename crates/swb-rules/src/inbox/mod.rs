//! Messages to an agent at work: which are let in, how they are said, and as what they are shown.
//!
//! A message on the bus of a task is let in if it is a question, an answer or a word of somebody, and does not come from
//! the agent itself or from anything below it. Who has a say over the agent is heard as such, before its next step if it is
//! urgent. What anybody else has written is data ([`as_data`]): a frame that no text gets out of. Agents that talk to each
//! other stop after a few messages until a person says something.
//!
//! Invariants: only people and agents above can steer; what is not verified is data; without people no more than the
//! limit gets through. Proof: the tests below, and those of the frame beside it.

mod frame;

pub use frame::{Head, as_data, as_word};

/// Who has posted a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Poster {
    /// A person.
    Person,
    /// An agent that the addressed one works for.
    Above,
    /// Another agent or program that is known.
    Elsewhere,
    /// Anybody: the message did not come through the daemon.
    Unverified,
}

/// What is known of a message.
#[derive(Debug, Clone, Copy)]
pub struct Letter<'a> {
    /// Its type.
    pub kind: &'a str,
    /// Who has posted it.
    pub poster: Poster,
    /// Whether it comes from the addressed agent, or from one below it.
    pub is_own: bool,
    /// Whether it is marked as urgent.
    pub is_urgent: bool,
}

/// What became of the messages before it.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Messages that reached the agent since a person last said something.
    pub so_far: u32,
    /// The most that may.
    pub limit: u32,
    /// Whether the agent has as many that it is not done with as it may have.
    pub is_full: bool,
}

/// How a message is said to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Before its next step.
    Steer,
    /// When it is done.
    FollowUp,
}

/// What becomes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is not for the agent.
    Ignore,
    /// It waits: for a person to say something, or for the agent to get on.
    Hold,
    /// It is said.
    Deliver {
        /// When.
        manner: Manner,
        /// As data, not as a word that counts.
        as_data: bool,
    },
}

/// What becomes of a message.
#[must_use]
pub fn judge(letter: &Letter<'_>, row: Row) -> Verdict {
    if letter.is_own || !matches!(letter.kind.trim(), "USER" | "QUESTION" | "ANSWER") {
        return Verdict::Ignore;
    }
    if row.is_full || letter.poster != Poster::Person && row.so_far >= row.limit {
        return Verdict::Hold;
    }
    let has_a_say = matches!(letter.poster, Poster::Person | Poster::Above);
    let manner = if has_a_say && letter.is_urgent { Manner::Steer } else { Manner::FollowUp };
    Verdict::Deliver { manner, as_data: !has_a_say }
}

/// How long the row is after a message of this poster has reached the agent.
#[must_use]
pub fn row_after(so_far: u32, poster: Poster) -> u32 {
    if poster == Poster::Person { 0 } else { so_far.saturating_add(1) }
}

/// Whether a value of `meta.urgent` means yes.
#[must_use]
pub fn means_urgent(value: &str) -> bool {
    ["true", "yes", "1"].iter().any(|yes| value.trim().eq_ignore_ascii_case(yes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const POSTERS: [Poster; 4] = [Poster::Person, Poster::Above, Poster::Elsewhere, Poster::Unverified];

    fn letters() -> impl Strategy<Value = (String, usize, bool, bool)> {
        let kinds = prop_oneof![
            Just("USER".to_owned()),
            Just("QUESTION".to_owned()),
            Just("ANSWER".to_owned()),
            Just("INFO".to_owned()),
            "[A-Z_]{0,8}",
        ];
        (kinds, 0..POSTERS.len(), any::<bool>(), any::<bool>())
    }

    proptest! {
        #[test]
        fn who_has_no_say_never_steers_and_is_data(
            (kind, poster, is_own, is_urgent) in letters(), so_far in 0u32..6, limit in 0u32..6, is_full: bool,
        ) {
            let letter = Letter { kind: &kind, poster: POSTERS[poster], is_own, is_urgent };
            let verdict = judge(&letter, Row { so_far, limit, is_full });
            if let Verdict::Deliver { manner, as_data } = verdict {
                let has_a_say = matches!(letter.poster, Poster::Person | Poster::Above);
                prop_assert_eq!(as_data, !has_a_say);
                prop_assert_eq!(manner == Manner::Steer, has_a_say && is_urgent);
                prop_assert!(!is_own && !is_full);
                prop_assert!(["USER", "QUESTION", "ANSWER"].contains(&kind.as_str()));
            }
        }

        /// However messages come, no more than the limit in a row reach the agent without a person among them, and none
        /// of a person waits for the others.
        #[test]
        fn without_a_person_only_a_few_get_through(letters in prop::collection::vec(letters(), 0..60), limit in 0u32..5) {
            let (mut so_far, mut in_a_row) = (0, 0);
            for (kind, poster, is_own, is_urgent) in &letters {
                let letter =
                    Letter { kind, poster: POSTERS[*poster], is_own: *is_own, is_urgent: *is_urgent };
                match judge(&letter, Row { so_far, limit, is_full: false }) {
                    Verdict::Deliver { .. } => {
                        so_far = row_after(so_far, letter.poster);
                        in_a_row = if letter.poster == Poster::Person { 0 } else { in_a_row + 1 };
                        prop_assert!(in_a_row <= limit);
                    }
                    Verdict::Hold => prop_assert!(letter.poster != Poster::Person && in_a_row == limit),
                    Verdict::Ignore => {}
                }
            }
        }
    }

    #[test]
    fn urgent_is_said_in_few_words() {
        assert!(["true", "True", " yes ", "1"].iter().all(|value| means_urgent(value)));
        assert!(["", "false", "no", "0", "very"].iter().all(|value| !means_urgent(value)));
    }
}
