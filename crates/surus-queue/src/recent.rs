//! What was pushed lately: who was not answered, because the owner has died before, pushes it again under the same name.

use std::collections::{HashMap, VecDeque};

use crate::job::Id;

const MOST: usize = 65_536;

/// The newest names, with what is known of each.
#[derive(Debug, Default)]
pub(crate) struct Recent<T> {
    order: VecDeque<Id>,
    known: HashMap<Id, T>,
}

impl<T> Recent<T> {
    pub(crate) fn add(&mut self, id: Id, what: T) {
        if self.known.insert(id, what).is_none() {
            self.order.push_back(id);
        }
        if self.order.len() > MOST {
            if let Some(oldest) = self.order.pop_front() {
                self.known.remove(&oldest);
            }
        }
    }

    pub(crate) fn get(&self, id: &Id) -> Option<&T> {
        self.known.get(id)
    }

    pub(crate) fn has(&self, id: &Id) -> bool {
        self.known.contains_key(id)
    }

    /// It could not be kept.
    pub(crate) fn remove(&mut self, id: &Id) {
        self.known.remove(id);
    }
}
