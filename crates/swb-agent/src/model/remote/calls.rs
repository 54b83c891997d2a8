//! Tool calls as they come in, in the three ways of the dialects.
//!
//! Anthropic's arrive as all there is so far, Gemini's at once, and those of OpenAI and its many imitators as fragments:
//! the first with an id and a name, the others with an index at best. `genai` turns a missing id into `call_<index>`; it
//! could put the fragments together itself, but would copy everything at each one and trust the index blindly. Ids must be
//! unique in a conversation, so those that were made up or come twice are replaced.

use std::collections::HashSet;

use genai::chat::ToolCall;
use serde_json::Value;

use crate::model::Delta;
use crate::model::provider::Dialect;

/// An answer with more calls than this is none.
const MAX_CALLS: usize = 256;

/// The calls of one answer.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: Vec<Call>,
    used: HashSet<String>,
}

#[derive(Debug)]
struct Call {
    /// As the provider names it.
    theirs: String,
    /// As the conversation names it.
    id: String,
    /// What is known of the arguments but not sent, because the name is still to come.
    held: String,
    named: bool,
    /// How much of the arguments was sent.
    sent: usize,
}

/// There are too many.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMany;

impl Calls {
    /// Takes what the provider says about a call.
    pub(super) fn take(
        &mut self,
        dialect: Dialect,
        call: ToolCall,
        into: &mut impl Extend<Delta>,
    ) -> Result<(), TooMany> {
        let ToolCall { call_id, fn_name, fn_arguments, .. } = call;
        let text = match fn_arguments {
            Value::String(text) => text,
            Value::Null => String::new(),
            whole => whole.to_string(),
        };
        let at = match dialect {
            Dialect::Gemini => self.begin(call_id, &fn_name)?,
            Dialect::Anthropic => match self.by_id(&call_id) {
                Some(at) => at,
                None => self.begin(call_id, &fn_name)?,
            },
            Dialect::OpenAi => match self.fragment_of(&call_id, &fn_name) {
                Some(at) => at,
                None => self.begin(call_id, &fn_name)?,
            },
        };
        let call = &mut self.calls[at];
        if !call.named {
            call.held.push_str(&text);
            if fn_name.is_empty() {
                return Ok(());
            }
            call.named = true;
            into.extend([Delta::CallStart { id: call.id.clone(), name: fn_name }]);
            let held = std::mem::take(&mut call.held);
            call.send(held, into);
            return Ok(());
        }
        let news = match dialect {
            // All so far: what was sent already is not sent again.
            Dialect::Anthropic => text.get(call.sent..).unwrap_or_default().to_owned(),
            Dialect::Gemini | Dialect::OpenAi => text,
        };
        call.send(news, into);
        Ok(())
    }

    fn by_id(&self, theirs: &str) -> Option<usize> {
        self.calls.iter().rposition(|call| call.theirs == theirs)
    }

    /// The call that this fragment goes on with; `None` if it begins one.
    fn fragment_of(&self, theirs: &str, name: &str) -> Option<usize> {
        if theirs.is_empty() {
            return if name.is_empty() { self.calls.len().checked_sub(1) } else { None };
        }
        if let Some(at) = self.by_id(theirs) {
            return Some(at);
        }
        let index = made_up_index(theirs)?;
        match self.calls.get(index) {
            Some(_) => Some(index),
            // Counted from one, or with gaps: what has no name cannot be new.
            None if name.is_empty() => self.calls.len().checked_sub(1),
            None => None,
        }
    }

    fn begin(&mut self, theirs: String, name: &str) -> Result<usize, TooMany> {
        if self.calls.len() == MAX_CALLS {
            return Err(TooMany);
        }
        let id = self.unique(&theirs, name);
        self.calls.push(Call { theirs, id, held: String::new(), named: false, sent: 0 });
        Ok(self.calls.len() - 1)
    }

    fn unique(&mut self, theirs: &str, name: &str) -> String {
        let made_up = theirs.is_empty() || theirs.starts_with("call#") || made_up_index(theirs).is_some();
        let id = match theirs {
            // Gemini is told ids of this form are none of its own.
            _ if theirs.starts_with("call#") => format!("call#{name}#{}", random()),
            _ if made_up || self.used.contains(theirs) => format!("call_{:016x}", random()),
            theirs => theirs.to_owned(),
        };
        self.used.insert(id.clone());
        id
    }
}

impl Call {
    fn send(&mut self, delta: String, into: &mut impl Extend<Delta>) {
        if !delta.is_empty() {
            self.sent += delta.len();
            into.extend([Delta::CallInput { id: self.id.clone(), delta }]);
        }
    }
}

fn made_up_index(id: &str) -> Option<usize> {
    id.strip_prefix("call_")?.parse().ok()
}

fn random() -> u64 {
    getrandom::u64().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
        ToolCall {
            call_id: id.to_owned(),
            fn_name: name.to_owned(),
            fn_arguments: Value::String(arguments.to_owned()),
            thought_signatures: None,
        }
    }

    /// Each call as its name and its arguments, in the order of their beginnings.
    fn whole(dialect: Dialect, pieces: Vec<ToolCall>) -> Vec<(String, String)> {
        let (mut calls, mut deltas) = (Calls::default(), Vec::new());
        for piece in pieces {
            calls.take(dialect, piece, &mut deltas).unwrap();
        }
        let mut found: Vec<(String, String, String)> = Vec::new();
        for delta in deltas {
            match delta {
                Delta::CallStart { id, name } => {
                    assert!(found.iter().all(|(known, ..)| *known != id), "{id} is there twice");
                    found.push((id, name, String::new()));
                }
                Delta::CallInput { id, delta } => {
                    found.iter_mut().find(|(known, ..)| *known == id).unwrap().2.push_str(&delta);
                }
                other => panic!("{other:?}"),
            }
        }
        found.into_iter().map(|(_, name, arguments)| (name, arguments)).collect()
    }

    fn pair(name: &str, arguments: &str) -> (String, String) {
        (name.to_owned(), arguments.to_owned())
    }

    #[test]
    fn fragments_find_their_call_by_id_or_index() {
        let pieces = vec![
            call("call_abc", "ls", ""),
            call("call_0", "", "{\"pa"),
            call("call_xyz", "read", "{"),
            call("call_1", "", "}"),
            call("call_0", "", "th\":1}"),
        ];
        assert_eq!(whole(Dialect::OpenAi, pieces), [pair("ls", "{\"path\":1}"), pair("read", "{}")]);
    }

    #[test]
    fn servers_with_odd_ids_are_understood() {
        // No ids at all, an index from one, the id in each fragment, a name in each fragment.
        let none = vec![call("call_0", "ls", "{}"), call("call_1", "ls", "{"), call("call_1", "", "}")];
        assert_eq!(whole(Dialect::OpenAi, none), [pair("ls", "{}"), pair("ls", "{}")]);
        let from_one = vec![call("x", "ls", "{"), call("call_1", "", "}")];
        assert_eq!(whole(Dialect::OpenAi, from_one), [pair("ls", "{}")]);
        let each =
            vec![call("x", "ls", "{"), call("x", "", "}"), call("y", "find", "{"), call("y", "find", "}")];
        assert_eq!(whole(Dialect::OpenAi, each), [pair("ls", "{}"), pair("find", "{}")]);
        let empty = vec![call("", "ls", "{"), call("", "", "}"), call("", "ls", "{}")];
        assert_eq!(whole(Dialect::OpenAi, empty), [pair("ls", "{}"), pair("ls", "{}")]);
    }

    #[test]
    fn a_call_begins_when_its_name_is_known() {
        let late = vec![call("x", "", "{\"a\""), call("call_0", "", ":"), call("call_0", "ls", "1}")];
        assert_eq!(whole(Dialect::OpenAi, late), [pair("ls", "{\"a\":1}")]);
    }

    #[test]
    fn what_is_repeated_is_sent_once() {
        let pieces = vec![
            call("toolu_1", "ls", ""),
            call("toolu_1", "ls", "{\"ä"),
            call("toolu_1", "ls", "{\"ä\":1}"),
            call("toolu_2", "ls", ""),
        ];
        assert_eq!(whole(Dialect::Anthropic, pieces), [pair("ls", "{\"ä\":1}"), pair("ls", "")]);
    }

    #[test]
    fn equal_ids_become_different_ones() {
        let twice = vec![call("call#ls#0", "ls", "{}"), call("call#ls#0", "ls", "{}")];
        assert_eq!(whole(Dialect::Gemini, twice).len(), 2);
        let same = vec![call("id", "ls", "{}"), call("id", "ls", "{}")];
        assert_eq!(whole(Dialect::Gemini, same).len(), 2);
    }

    #[test]
    fn a_flood_of_calls_is_refused() {
        let (mut calls, mut deltas) = (Calls::default(), Vec::new());
        let refused = (0..1000).find_map(|at| {
            calls.take(Dialect::OpenAi, call(&format!("id{at}"), "ls", ""), &mut deltas).err()
        });
        assert_eq!(refused, Some(TooMany));
    }
}
