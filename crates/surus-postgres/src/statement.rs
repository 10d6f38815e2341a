//! Prepared statements of one connection.

use std::{collections::HashMap, rc::Rc};

/// So many are kept; then those that were not used for the longest time are closed.
const MOST: usize = 256;
/// Bytes of texts that are kept. The server keeps a text, too, and its plan takes a multiple of it.
const MOST_BYTES: usize = 1 << 20;

/// A column of a result.
#[derive(Debug, Clone)]
pub struct Column {
    /// Its name.
    pub name: Box<str>,
    /// Its type.
    pub kind: u32,
    /// Whether its values come in binary form, else as text.
    pub binary: bool,
}

/// What the server has prepared.
#[derive(Debug)]
pub struct Statement {
    pub(crate) name: String,
    pub(crate) sql: Rc<str>,
    pub(crate) parameters: Vec<u32>,
    /// The columns of its rows; empty if it has none.
    pub columns: Vec<Column>,
}

struct Kept {
    statement: Rc<Statement>,
    used: u64,
}

/// By their text.
#[derive(Default)]
pub(crate) struct Statements {
    kept: HashMap<Rc<str>, Kept>,
    bytes: usize,
    uses: u64,
}

impl Statements {
    pub(crate) fn find(&mut self, sql: &str) -> Option<Rc<Statement>> {
        self.uses += 1;
        let kept = self.kept.get_mut(sql)?;
        kept.used = self.uses;
        Some(kept.statement.clone())
    }

    /// Returns those that are to be closed in exchange.
    pub(crate) fn keep(&mut self, statement: Rc<Statement>) -> Vec<Rc<Statement>> {
        let mut closed = Vec::from_iter(self.forget(&statement.sql));
        let size = statement.sql.len();
        while !self.kept.is_empty() && (self.kept.len() >= MOST || self.bytes + size > MOST_BYTES) {
            let oldest = self.kept.iter().min_by_key(|(_, kept)| kept.used);
            let oldest = oldest.map(|(sql, _)| sql.clone());
            closed.extend(oldest.and_then(|sql| self.forget(&sql)));
        }
        self.bytes += size;
        let used = self.uses;
        self.kept
            .insert(statement.sql.clone(), Kept { statement, used });
        closed
    }

    pub(crate) fn forget(&mut self, sql: &str) -> Option<Rc<Statement>> {
        let kept = self.kept.remove(sql)?;
        self.bytes -= sql.len();
        Some(kept.statement)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(sql: String) -> Rc<Statement> {
        Rc::new(Statement {
            name: String::new(),
            sql: sql.into(),
            parameters: Vec::new(),
            columns: Vec::new(),
        })
    }

    #[test]
    fn those_used_last_are_kept() {
        let mut all = Statements::default();
        for number in 0..MOST + 10 {
            let closed = all.keep(statement(format!("select {number}")));
            assert_eq!(closed.len(), usize::from(number >= MOST));
            assert!(all.find("select 0").is_some(), "it is used all the time");
        }
        assert!(all.find("select 1").is_none());
    }

    #[test]
    fn large_ones_take_the_place_of_several() {
        let mut all = Statements::default();
        for number in 0..8 {
            let rest = " ".repeat(MOST_BYTES / 4 - 1);
            all.keep(statement(format!("{number}{rest}")));
            all.find("");
            assert!(all.bytes <= MOST_BYTES && all.kept.len() <= 4);
        }
        let closed = all.keep(statement(" ".repeat(2 * MOST_BYTES)));
        assert_eq!((closed.len(), all.kept.len()), (4, 1));
        let closed = all.keep(statement("select 1".to_owned()));
        assert_eq!((closed.len(), all.bytes), (1, 8));
    }
}
