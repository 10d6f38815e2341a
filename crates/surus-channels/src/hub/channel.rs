use std::{
    collections::{BTreeMap, HashMap},
    rc::Rc,
};

use crate::{presence::Presence, Position, Subscriber};

pub(super) struct Channel {
    pub(super) name: Rc<str>,
    /// Of this worker, in the order in which they have come.
    pub(super) subscribers: BTreeMap<u64, Rc<dyn Subscriber>>,
    /// What they have got last, if the channel has a history and they are some.
    pub(super) last: Option<Position>,
    /// How many there are in other workers.
    pub(super) elsewhere: HashMap<u64, u32>,
    pub(super) presence: Presence,
}

impl Channel {
    pub(super) fn new(name: Rc<str>) -> Self {
        Channel {
            name,
            subscribers: BTreeMap::new(),
            last: None,
            elsewhere: HashMap::new(),
            presence: Presence::default(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.is_occupied() && self.presence.is_empty()
    }

    pub(super) fn is_occupied(&self) -> bool {
        !self.subscribers.is_empty() || !self.elsewhere.is_empty()
    }

    pub(super) fn count(&self) -> usize {
        let elsewhere: u32 = self.elsewhere.values().sum();
        self.subscribers.len() + elsewhere as usize
    }

    pub(super) fn all(&self) -> Vec<Rc<dyn Subscriber>> {
        self.subscribers.values().cloned().collect()
    }
}
