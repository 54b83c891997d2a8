//! Loop variables whose values stand in the line: `for f in a.rs b.rs; do wc -l "$f"; done`.
//!
//! A variable is followed only when nothing else in the loop could give it another value; what is doubtful stays unknown.

use super::script::{Block, Node, Script};
use super::word::{Piece, Word};

/// More values than this are not followed one by one.
const MAX_VALUES: usize = 16;

/// Variables with known values, innermost loop last.
#[derive(Debug, Default, Clone)]
pub(super) struct Bindings {
    bound: Vec<(String, Vec<Word>)>,
}

impl Bindings {
    /// Follows the variable of a loop, or stops following one of the same name.
    pub(super) fn enter(&mut self, name: &str, block: &Block) {
        let plain = block.words.len() <= MAX_VALUES
            && block.words.iter().all(|word| word.text().is_some())
            && !sets_elsewhere(&block.body, name);
        self.bound.push((name.to_owned(), if plain { block.words.clone() } else { Vec::new() }));
    }

    pub(super) fn leave(&mut self) {
        self.bound.pop();
    }

    /// The words that `word` stands for; itself if no variable in it is followed.
    pub(super) fn values(&self, word: &Word) -> Vec<Word> {
        let followed = word.pieces.iter().find_map(|piece| match piece {
            Piece::Variable(name) => {
                let (_, values) = self.bound.iter().rev().find(|(bound, _)| bound == name)?;
                (!values.is_empty()).then_some((name, values))
            }
            _ => None,
        });
        let Some((name, values)) = followed else { return vec![word.clone()] };
        values
            .iter()
            .map(|value| {
                let mut pieces = Vec::new();
                for piece in &word.pieces {
                    match piece {
                        Piece::Variable(other) if other == name => {
                            pieces.extend(value.pieces.iter().cloned());
                        }
                        piece => pieces.push(piece.clone()),
                    }
                }
                Word { pieces }
            })
            .collect()
    }
}

/// Whether the commands of a loop may set `name`, or run something that may.
fn sets_elsewhere(script: &Script, name: &str) -> bool {
    script.iter().any(|item| node_sets(&item.node, name))
}

fn node_sets(node: &Node, name: &str) -> bool {
    match node {
        Node::Pipeline(members) => members.iter().any(|member| node_sets(member, name)),
        Node::Block(block) => sets_elsewhere(&block.body, name),
        Node::Simple(simple) => {
            simple.assignments.iter().any(|assignment| assignment.name == name)
                || simple.words.iter().any(|word| {
                    word.pieces.iter().any(|piece| match piece {
                        // The bare name: `read f`, `declare f=`, `printf -v f`; or text that is a script.
                        Piece::Literal { text, .. } => {
                            text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                                .any(|part| part == name)
                                || matches!(text.as_str(), "eval" | "source" | ".")
                        }
                        _ => false,
                    })
                })
        }
    }
}
