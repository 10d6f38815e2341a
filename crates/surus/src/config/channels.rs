//! `[channel.PATTERN]`: which channels have a history.

use std::collections::BTreeMap;
use std::time::Duration;

use surus_channels::{Keep, Rules, LONGEST_NAME};

use super::fill;
use super::tables::Channel;
use super::units::Span;
use super::wrong::Wrong;

/// More publications of one channel are a mistake: what must not get lost belongs in a database.
const MOST: u64 = 100_000;

/// Resolves and checks them; fills in what is left out. Of several patterns that match a name the longest counts.
pub(super) fn of(
    tables: &mut BTreeMap<String, Channel>,
    shared_memory: u64,
    wrong: &mut Wrong,
) -> Rules {
    let mut all: Vec<(&String, Option<Keep>)> = Vec::new();
    for (pattern, table) in tables {
        let key = |key: &str| format!("channel.{pattern}.{key}");
        if pattern.is_empty() || pattern.len() > LONGEST_NAME {
            let why = format!("the pattern of a channel has 1 to {LONGEST_NAME} bytes");
            wrong.note(&key("history"), why);
        }
        let messages = fill(&mut table.history, 100);
        if messages > MOST {
            wrong.note(&key("history"), format!("history must be at most {MOST}"));
        }
        if messages > 0 && shared_memory == 0 {
            let why = "history needs shared_memory of the application, which is 0";
            wrong.note(&key("history"), why);
        }
        let ttl = fill(&mut table.ttl, Span(Duration::from_secs(3600))).0;
        if ttl.is_zero() {
            wrong.note(
                &key("ttl"),
                "ttl must be more than 0: history = 0 keeps nothing",
            );
        }
        all.push((pattern, (messages > 0).then_some(Keep { messages, ttl })));
    }
    all.sort_by_key(|(pattern, _)| std::cmp::Reverse(pattern.len()));
    let mut rules = Rules::default();
    for (pattern, keep) in all {
        rules.add(pattern, keep);
    }
    rules
}
