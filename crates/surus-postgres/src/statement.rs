//! Prepared statements of one connection.

use std::{collections::HashMap, rc::Rc};

/// So many are kept; then the one that was not used for the longest time is closed.
const MOST: usize = 256;

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
    pub(crate) fn keep(&mut self, statement: Rc<Statement>) -> Option<Rc<Statement>> {
        let oldest = (self.kept.len() >= MOST).then(|| {
            let oldest = self.kept.iter().min_by_key(|(_, kept)| kept.used);
            oldest.map(|(sql, _)| sql.clone())
        });
        let closed = oldest
            .flatten()
            .and_then(|sql| self.kept.remove(&sql))
            .map(|kept| kept.statement);
        let used = self.uses;
        self.kept
            .insert(statement.sql.clone(), Kept { statement, used });
        closed
    }

    pub(crate) fn forget(&mut self, sql: &str) -> Option<Rc<Statement>> {
        self.kept.remove(sql).map(|kept| kept.statement)
    }
}
