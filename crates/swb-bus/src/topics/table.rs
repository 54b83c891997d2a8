//! The topics that were published to: a number for each, and how far each has counted.

use std::collections::{BTreeMap, HashMap};

use swb_proto::Topic;

/// Topics are few and named in the code. A bus that sees more than this has ids in its topic names.
pub(super) const MAX_TOPICS: usize = 1024;

#[derive(Debug)]
pub(super) struct TopicTable {
    /// A topic's number is its place in `topics`.
    numbers: HashMap<Topic, u32>,
    topics: Vec<Counted>,
    /// What a topic starts from that has not been counted yet.
    floor: u64,
}

#[derive(Debug)]
struct Counted {
    name: Topic,
    last: u64,
    /// Whether its events are kept, once that was asked.
    kept: Option<bool>,
}

impl TopicTable {
    pub(super) fn new(known: BTreeMap<String, u64>, floor: u64) -> Self {
        let mut table = TopicTable { numbers: HashMap::new(), topics: Vec::new(), floor };
        for (name, last) in known {
            if let Ok(name) = Topic::try_from(name) {
                table.insert(name, last);
            }
        }
        table
    }

    /// The number of a topic that has been counted before.
    pub(super) fn number(&self, name: &str) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    /// A number for a new topic; `None` if there are too many already.
    pub(super) fn add(&mut self, name: Topic) -> Option<u32> {
        (self.topics.len() < MAX_TOPICS).then(|| self.insert(name, self.floor))
    }

    fn insert(&mut self, name: Topic, last: u64) -> u32 {
        let number = u32::try_from(self.topics.len()).unwrap_or(u32::MAX);
        self.numbers.insert(name.clone(), number);
        self.topics.push(Counted { name, last, kept: None });
        number
    }

    /// Counts one event: its topic and its place within it.
    pub(super) fn count(&mut self, number: u32) -> (Topic, u64) {
        let topic = &mut self.topics[number as usize];
        topic.last += 1;
        (topic.name.clone(), topic.last)
    }

    /// Whether the events of a topic are kept, as `ask` says when it is asked first.
    pub(super) fn is_kept(&mut self, number: u32, ask: impl FnOnce(&str) -> bool) -> bool {
        let Counted { name, kept, .. } = &mut self.topics[number as usize];
        *kept.get_or_insert_with(|| ask(name.as_str()))
    }

    /// How far each topic has counted, for the disk.
    pub(super) fn counts(&self) -> BTreeMap<String, u64> {
        self.topics.iter().map(|topic| (topic.name.as_str().to_owned(), topic.last)).collect()
    }
}
