//! Which topics a subscriber wants. Globs are matched once per topic; after that it is one look into a table.

use swb_proto::TopicGlob;

use super::event::Event;

#[derive(Debug, Clone)]
pub(super) struct Filter {
    globs: Vec<TopicGlob>,
    /// By topic number: not yet known, no, yes.
    known: Vec<Option<bool>>,
}

impl Filter {
    pub(super) fn new(globs: Vec<TopicGlob>) -> Self {
        // Everything and something is everything.
        let everything = globs.iter().any(TopicGlob::is_everything);
        Filter { globs: if everything { Vec::new() } else { globs }, known: Vec::new() }
    }

    pub(super) fn wants(&mut self, event: &Event) -> bool {
        if self.globs.is_empty() {
            return true;
        }
        let at = event.topic_number as usize;
        if at >= self.known.len() {
            self.known.resize(at + 1, None);
        }
        *self.known[at].get_or_insert_with(|| self.globs.iter().any(|glob| glob.matches(event.topic())))
    }

    /// The same for a topic that has no number.
    pub(super) fn wants_topic(&self, topic: &str) -> bool {
        self.globs.is_empty() || self.globs.iter().any(|glob| glob.matches(topic))
    }
}
