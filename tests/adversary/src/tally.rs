//! What has come of the requests, row by row.

use std::{
    collections::BTreeMap,
    fmt::{self, Display},
};

use crate::{
    plan::Plan,
    verdict::{Fault, Verdict},
};

#[derive(Debug, Clone, Default)]
pub(crate) struct Row {
    pub(crate) requests: u64,
    pub(crate) right: u64,
    pub(crate) cut: u64,
    pub(crate) ended: u64,
    pub(crate) declared: u64,
    pub(crate) tokens: u64,
    pub(crate) wrong: BTreeMap<Fault, u64>,
}

impl Row {
    fn add(&mut self, other: &Row) {
        self.requests += other.requests;
        self.right += other.right;
        self.cut += other.cut;
        self.ended += other.ended;
        self.declared += other.declared;
        self.tokens += other.tokens;
        for (fault, count) in &other.wrong {
            *self.wrong.entry(*fault).or_default() += count;
        }
    }
}

impl Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:7} requests, {:6} cuts, {:6} right, {:5} ended, {:5} errors, {:7} tokens",
            self.requests, self.cut, self.right, self.ended, self.declared, self.tokens
        )?;
        for (fault, count) in &self.wrong {
            write!(f, ", {count} {fault:?}")?;
        }
        Ok(())
    }
}

#[derive(Debug, Default)]
pub(crate) struct Tally {
    rows: BTreeMap<&'static str, Row>,
}

impl Tally {
    pub(crate) fn note(&mut self, plan: &Plan, verdict: &Verdict) {
        let row = self.rows.entry(plan.operation.name).or_default();
        row.requests += 1;
        match verdict {
            Verdict::Right => {
                row.right += 1;
                row.tokens += plan.operation.words;
            }
            Verdict::Cut => row.cut += 1,
            Verdict::Ended => row.ended += 1,
            Verdict::Declared => row.declared += 1,
            Verdict::Wrong(fault, _) => *row.wrong.entry(*fault).or_default() += 1,
        }
    }

    pub(crate) fn add(&mut self, other: &Tally) {
        for (name, row) in &other.rows {
            self.rows.entry(name).or_default().add(row);
        }
    }

    pub(crate) fn total(&self) -> Row {
        let mut total = Row::default();
        self.rows.values().for_each(|row| total.add(row));
        total
    }

    pub(crate) fn operations(&self) -> impl Iterator<Item = (&'static str, &Row)> {
        self.rows.iter().map(|(name, row)| (*name, row))
    }

    pub(crate) fn extensions(&self) -> BTreeMap<&'static str, Row> {
        let mut extensions: BTreeMap<_, Row> = BTreeMap::new();
        for (name, row) in &self.rows {
            let extension = name.split('.').next().unwrap_or(name);
            extensions.entry(extension).or_default().add(row);
        }
        extensions
    }
}
