//! What is known of the text of a statement: whether it may be sent, and whether others may be sent behind it.
//!
//! A statement that takes long holds up those behind it on its connection. So nothing is sent behind one that is not
//! known to be quick, nor behind one that may wait for a lock, which can be a transaction's whose code waits for what
//! is behind it.

use std::{cell::Cell, collections::HashMap, rc::Rc, time::Duration};

use crate::sql;

/// Less is quick.
const QUICK: Duration = Duration::from_millis(10);
/// Texts that are remembered; then it begins anew.
const MOST: usize = 1024;
/// Longer texts are not remembered.
const LONGEST: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) sql: Rc<str>,
    /// The word for which it must not be sent on a connection that others use.
    pub(crate) refused: Option<&'static str>,
    reads: bool,
    /// How long it takes, the last times more than those before.
    time: Cell<Option<Duration>>,
}

impl Known {
    fn new(text: &str) -> Self {
        Known {
            sql: text.into(),
            refused: sql::refused(text, false),
            reads: sql::only_reads(text),
            time: Cell::new(None),
        }
    }

    /// Whether others may be sent behind it.
    pub(crate) fn is_quick(&self) -> bool {
        self.reads && self.is_short()
    }

    /// Whether it has not taken long, locks apart.
    pub(crate) fn is_short(&self) -> bool {
        self.time.get().is_some_and(|time| time < QUICK)
    }

    /// It has taken so long.
    pub(crate) fn note(&self, time: Duration) {
        let before = self.time.get().unwrap_or(time);
        self.time.set(Some((before * 3 + time) / 4));
    }
}

/// By their text.
#[derive(Debug, Default)]
pub(crate) struct AllKnown(HashMap<Rc<str>, Rc<Known>>);

impl AllKnown {
    pub(crate) fn find(&mut self, text: &str) -> Rc<Known> {
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        let known = Rc::new(Known::new(text));
        if text.len() <= LONGEST {
            if self.0.len() >= MOST {
                self.0.clear();
            }
            self.0.insert(known.sql.clone(), known.clone());
        }
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_been_quick_is() {
        let mut all = AllKnown::default();
        let known = all.find("SELECT 1");
        assert!(!known.is_quick());
        known.note(Duration::from_millis(1));
        assert!(all.find("SELECT 1").is_quick());
        known.note(Duration::from_secs(1));
        assert!(!known.is_quick());
        for _ in 0..30 {
            known.note(Duration::from_millis(1));
        }
        assert!(known.is_quick());
        let other = all.find("UPDATE x SET a = 1");
        other.note(Duration::from_millis(1));
        assert!(!other.is_quick());
    }
}
