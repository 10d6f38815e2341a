//! The names of jobs that have gone lately.

use std::collections::{HashSet, VecDeque};

use crate::job::Id;

const MOST: usize = 65_536;

#[derive(Debug, Default)]
pub(crate) struct Recent {
    order: VecDeque<Id>,
    known: HashSet<Id>,
}

impl Recent {
    pub(super) fn add(&mut self, id: Id) {
        if self.known.insert(id) {
            self.order.push_back(id);
        }
        if self.order.len() > MOST {
            if let Some(oldest) = self.order.pop_front() {
                self.known.remove(&oldest);
            }
        }
    }

    pub(super) fn has(&self, id: &Id) -> bool {
        self.known.contains(id)
    }
}
