//! Counts by a name that somebody else has chosen.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Names that are told apart.
const MOST_NAMES: usize = 64;
/// The longest name, in bytes.
const LONGEST_NAME: usize = 96;
/// What all further names are counted under.
const OTHER: &str = "other";

/// Counts by name.
#[derive(Debug, Default)]
pub(crate) struct Tally<V>(Mutex<BTreeMap<String, V>>);

impl<V: Default + Clone> Tally<V> {
    /// Counts something under a name.
    pub(crate) fn count(&self, name: &str, change: impl FnOnce(&mut V)) {
        let name = &name[..name.floor_char_boundary(LONGEST_NAME)];
        let mut counts = self.lock();
        if let Some(count) = counts.get_mut(name) {
            return change(count);
        }
        let name = if counts.len() < MOST_NAMES { name } else { OTHER };
        change(counts.entry(name.to_owned()).or_default());
    }

    /// All counts, by name.
    pub(crate) fn read(&self) -> Vec<(String, V)> {
        self.lock().iter().map(|(name, count)| (name.clone(), count.clone())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, V>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_many_names_come_few_are_told_apart_and_nothing_is_lost() {
        let tally = Tally::<u64>::default();
        for number in 0..1000 {
            tally.count(&format!("{number:04}{}", "é".repeat(200)), |count| *count += 1);
        }
        tally.count(&format!("0000{}", "é".repeat(200)), |count| *count += 1);
        let counts = tally.read();
        assert_eq!(counts.len(), MOST_NAMES + 1);
        assert_eq!(counts.iter().map(|(_, count)| count).sum::<u64>(), 1001);
        assert_eq!(counts[0].1, 2);
        assert!(counts.iter().all(|(name, _)| name.len() <= LONGEST_NAME));
    }
}
