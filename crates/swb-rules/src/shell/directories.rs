//! Where a command would run: `cd` followed through lists, subshells and loops.
//!
//! A `cd` may fail, and then what follows a `;` runs where the line stood before. So there may be several directories at
//! once; a path is judged in each of them. Behind `&&` the `cd` has succeeded and there is one.

use super::place::Place;

/// More possibilities than this are as good as unknown.
const MOST: usize = 4;

/// The directories in which the next command may run.
#[derive(Debug, Clone)]
pub(super) struct Directories {
    here: Vec<Place>,
    /// Those that apply once the chain of `&&` is left.
    otherwise: Vec<Place>,
}

impl Directories {
    pub(super) fn start() -> Self {
        Self { here: vec![Place::start()], otherwise: Vec::new() }
    }

    pub(super) fn here(&self) -> &[Place] {
        &self.here
    }

    /// A command follows that does not depend on success.
    pub(super) fn leave_chain(&mut self) {
        for place in std::mem::take(&mut self.otherwise) {
            if !self.here.iter().any(|known| same(known, &place)) {
                self.here.push(place);
            }
        }
        self.cap();
    }

    /// A change of directory to one of `places`.
    pub(super) fn change(&mut self, places: Vec<Place>) {
        self.otherwise.append(&mut self.here);
        self.here = places;
        self.cap();
    }

    /// Nothing is known any more.
    pub(super) fn lose(&mut self) {
        self.here = vec![Place::unknown("the current directory")];
        self.otherwise.clear();
    }

    fn cap(&mut self) {
        if self.here.len() > MOST || self.otherwise.len() > 4 * MOST {
            self.lose();
        }
    }
}

/// The same place, however it was written.
pub(super) fn same(one: &Place, other: &Place) -> bool {
    one.root == other.root && one.parts == other.parts && one.pattern == other.pattern && one.is_known()
}
