//! Everything that belongs together: a correlation, what it was part of, and what became part of it.

use std::collections::{BTreeMap, BTreeSet};

use super::query::{Hits, MAX_LIMIT, Query};
use super::{Ledger, LedgerError};
use crate::audit::Record;

/// How many correlations one chain has at most.
pub const MAX_CHAIN: usize = 500;

impl Ledger {
    /// The records of a correlation and of all that are above and below it, the earliest first. A chain that bites its
    /// own tail is walked once around; one that is too long is cut, and then `false` comes with it.
    pub fn chain(&mut self, correlation_id: &str) -> Result<(Vec<Record>, bool), LedgerError> {
        let mut known = BTreeSet::from([correlation_id.to_owned()]);
        let mut found = BTreeMap::new();
        let mut next = vec![correlation_id.to_owned()];
        let mut whole = true;
        while let Some(id) = next.pop() {
            let mine = Query { correlation_id: Some(id.clone()), limit: MAX_LIMIT, ..Query::default() };
            let mine = self.search(&mine)?;
            let children = self.children(&id)?;
            whole &= !mine.more && !children.more;
            let above = mine.records.iter().filter_map(|record| record.entry.parent_correlation_id.clone());
            let below = children.records.iter().filter_map(|record| record.entry.correlation_id.clone());
            for id in above.chain(below).collect::<BTreeSet<_>>() {
                if known.contains(&id) {
                    continue;
                }
                if known.len() >= MAX_CHAIN {
                    whole = false;
                    break;
                }
                known.insert(id.clone());
                next.push(id);
            }
            found.extend(mine.records.into_iter().map(|record| (record.number, record)));
        }
        Ok((found.into_values().collect(), whole))
    }

    fn children(&mut self, id: &str) -> Result<Hits, LedgerError> {
        let query =
            Query { parent_correlation_id: Some(id.to_owned()), limit: MAX_LIMIT, ..Query::default() };
        self.search(&query)
    }
}
