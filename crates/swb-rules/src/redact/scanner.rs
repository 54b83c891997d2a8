//! Puts it together: anchors in order, regions that grow, text that leaves.
//!
//! Two places matter. Before the *frontier* every anchor was decided; before *emitted* the text has left. A region is a
//! stretch that is hidden: overlapping and touching secrets become one. Its placeholder leaves when its start does, its
//! end may come later.
//! Invariants: text leaves in order and only up to the frontier; nothing inside a region leaves; every decision depends
//! only on the text, never on where a chunk ended.

use super::anchors::{find_all, hold_back};
use super::category::{Category, Match};
use super::run::Run;
use super::shapes::{self, Hit};
use super::view::{LOOK_BEHIND, More, View};

/// What has been found and what has left.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    pub(super) columns: Option<usize>,
    /// Offset of the text in the stream.
    base: usize,
    frontier: usize,
    emitted: usize,
    regions: Vec<Region>,
}

/// What leaves.
#[derive(Debug, Default)]
pub(super) struct Sink {
    pub(super) text: String,
    pub(super) matches: Vec<Match>,
}

#[derive(Debug)]
struct Region {
    category: Category,
    rule: &'static str,
    /// Offset in the stream.
    position: usize,
    start: usize,
    end: usize,
    runs: Vec<Run>,
    announced: bool,
}

impl Scanner {
    /// Looks at the text from where the last look ended. `last` says that nothing follows.
    pub(super) fn advance(&mut self, text: &str, last: bool, sink: &mut Sink) {
        let view = View { text, last, columns: self.columns };
        for region in &mut self.regions {
            region.extend(&view);
        }
        self.merge();
        let mut settled = if last { text.len() } else { hold_back(text, self.frontier) };
        for anchor in find_all(&view, self.frontier) {
            if anchor.start >= settled {
                break;
            }
            match shapes::find(anchor.rule, &view, anchor.start, anchor.end) {
                Err(More) => {
                    settled = anchor.start;
                    break;
                }
                Ok(None) => {}
                Ok(Some(hit)) => {
                    // What lies before this anchor can no longer change: let it go, so that regions stay few.
                    self.emit(text, anchor.start, false, sink);
                    self.insert(hit, anchor.rule.category, anchor.rule.id, &view);
                }
            }
        }
        self.frontier = settled;
        self.emit(text, settled, last, sink);
    }

    fn insert(&mut self, hit: Hit, category: Category, rule: &'static str, view: &View<'_>) {
        let mut region = Region {
            category,
            rule,
            position: self.base + hit.start,
            start: hit.start,
            end: hit.end,
            runs: Vec::from_iter(hit.run),
            announced: false,
        };
        for run in &mut region.runs {
            run.extend_counted(view);
            // A run of the same kind that has been here already has done the reading.
            let runs =
                self.regions.iter().flat_map(|region| &region.runs).filter(|done| done.is_like(&run.kind));
            if let Some(done) =
                runs.max_by_key(|done| done.at).filter(|done| done.at > run.at && run.is_settled())
            {
                run.at = done.at;
                run.open = done.open;
            }
        }
        region.extend(view);
        let at = self.regions.partition_point(|other| other.position <= region.position);
        self.regions.insert(at, region);
        self.merge();
    }

    /// Makes one region of those that overlap or touch.
    fn merge(&mut self) {
        let mut at = 1;
        while at < self.regions.len() {
            if self.regions[at].start > self.regions[at - 1].end {
                at += 1;
                continue;
            }
            let second = self.regions.remove(at);
            let first = &mut self.regions[at - 1];
            first.end = first.end.max(second.end);
            for run in second.runs {
                match first.runs.iter_mut().find(|known| known.is_like(&run.kind)) {
                    Some(known) => known.unite(run),
                    None => first.runs.push(run),
                }
            }
        }
    }

    fn emit(&mut self, text: &str, limit: usize, last: bool, sink: &mut Sink) {
        loop {
            let Some(region) =
                self.regions.first_mut().filter(|region| region.announced || region.start < limit)
            else {
                if self.emitted < limit {
                    sink.text.push_str(&text[self.emitted..limit]);
                    self.emitted = limit;
                }
                return;
            };
            if !region.announced {
                sink.text.push_str(&text[self.emitted..region.start]);
                sink.text.push_str(region.category.placeholder());
                region.announced = true;
            }
            self.emitted = self.emitted.max(region.end);
            // Another secret may still start where this one ends.
            if region.runs.iter().any(|run| run.open) || (region.end >= limit && !last) {
                return;
            }
            let Region { category, rule, position, end, .. } = self.regions.remove(0);
            sink.matches.push(Match { category, rule, position, length: self.base + end - position });
        }
    }

    /// How much of the text will not be looked at again.
    pub(super) fn done(&self) -> usize {
        let runs = self.regions.iter().flat_map(|region| &region.runs).map(|run| run.at);
        runs.chain([self.frontier]).min().unwrap_or_default().saturating_sub(LOOK_BEHIND)
    }

    /// The text was cut at its beginning.
    pub(super) fn forget(&mut self, bytes: usize) {
        self.base += bytes;
        self.frontier -= bytes;
        self.emitted -= bytes;
        for region in &mut self.regions {
            region.start = region.start.saturating_sub(bytes);
            region.end = region.end.saturating_sub(bytes);
            for run in &mut region.runs {
                run.at -= bytes;
            }
        }
    }
}

impl Region {
    fn extend(&mut self, view: &View<'_>) {
        for run in &mut self.runs {
            run.extend(view);
            self.end = self.end.max(run.at);
        }
    }
}
