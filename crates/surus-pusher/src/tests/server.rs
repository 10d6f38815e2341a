//! Workers of one process, for tests.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use bytes::Bytes;
use surus_channels::{History, HistoryError, Hub, Keep, Links, Position, Rules};

use crate::{App, Front, Happened, Reporter};

/// Letters lie here until they are read.
#[derive(Default)]
pub(crate) struct Server {
    letters: RefCell<Vec<(u64, Bytes)>>,
    kept: RefCell<BTreeMap<String, Vec<Vec<u8>>>>,
    last: Cell<u64>,
    /// By any worker.
    pub(crate) reports: RefCell<Vec<String>>,
}

struct Noted(Rc<Server>);

impl Reporter for Noted {
    fn report(&self, app: usize, happened: Happened) {
        let json = serde_json::to_string(&happened).expect("JSON");
        self.0.reports.borrow_mut().push(format!("{app} {json}"));
    }
}

struct Side(Rc<Server>, u64);

impl Links for Side {
    fn send(&self, letter: Bytes) {
        self.0.letters.borrow_mut().push((self.1, letter));
    }

    fn soon(&self) {}
}

impl History for Side {
    fn append(&self, channel: &str, _: Keep, content: &[u8]) -> Result<Position, HistoryError> {
        let mut kept = self.0.kept.borrow_mut();
        let all = kept.entry(channel.to_owned()).or_default();
        all.push(content.to_vec());
        let offset = all.len() as u64;
        Ok(Position { epoch: 1, offset })
    }

    fn newest(&self, channel: &str, _: Keep) -> Result<Position, HistoryError> {
        let kept = self.0.kept.borrow();
        let offset = kept.get(channel).map_or(0, Vec::len) as u64;
        Ok(Position { epoch: 1, offset })
    }

    fn is_known(&self, channel: &str) -> bool {
        self.0.kept.borrow().contains_key(channel)
    }

    fn read(&self, channel: &str, position: Position) -> Option<Bytes> {
        let kept = self.0.kept.borrow();
        let content = kept.get(channel)?.get(position.offset as usize - 1)?;
        Some(Bytes::copy_from_slice(content))
    }

    fn put(&self, _: &str, _: Keep, _: Position, _: Option<&[u8]>) -> Result<(), HistoryError> {
        Err(HistoryError::None)
    }

    fn appended(&self) -> u64 {
        0
    }
}

impl Server {
    /// A new worker with these applications.
    pub(crate) fn worker(self: &Rc<Self>, apps: Vec<App>) -> Rc<Front> {
        self.last.set(self.last.get() + 1);
        let mut rules = Rules::default();
        apps.iter().for_each(|app| app.add_rules(&mut rules));
        let side = || Box::new(Side(self.clone(), self.last.get()));
        let hub = Hub::new(self.last.get(), side(), side(), rules);
        hub.hello();
        Front::new(
            apps,
            Rc::new(hub),
            Some(Box::new(Noted(self.clone()))),
            super::now,
        )
    }

    /// Lets these workers tell each other what they have to tell.
    pub(crate) fn talk(&self, workers: &[&Front]) {
        workers.iter().for_each(|front| front.hub().flush());
        loop {
            let letters = self.letters.take();
            if letters.is_empty() {
                return;
            }
            for (from, letter) in letters {
                let others = workers.iter().filter(|front| front.hub().me() != from);
                others.for_each(|front| _ = front.hub().receive(&letter));
            }
        }
    }
}
