//! What has blocked the event loop so far, by place.

use std::time::{Duration, Instant};

/// Places that are remembered. The one with the least time makes room for another one.
const MOST: usize = 64;

/// A place is logged once in this time.
const LOG_AGAIN: Duration = Duration::from_secs(60);

/// Shorter ones are counted, not logged.
const LOGGED: Duration = Duration::from_millis(20);

/// A place that blocks the event loop.
#[derive(Debug, Clone)]
pub struct Stall {
    /// The PHP function and the line that has called it: `flock() at /app/index.php:7`. Empty where it is not known.
    pub place: String,
    /// What it did the last time: `in the system call flock(/app/lock)`.
    pub call: String,
    /// Method and path of the last request.
    pub request: String,
    /// How often.
    pub count: u64,
    /// For how long, all in all.
    pub time: Duration,
    /// The longest one.
    pub longest: Duration,
}

/// Calls that have blocked the event loop.
#[derive(Debug, Clone, Default)]
pub struct Stalls {
    /// How many there were.
    pub count: u64,
    /// How long they have taken together.
    pub time: Duration,
    /// By place, those that took most first.
    pub places: Vec<Stall>,
}

struct Entry {
    stall: Stall,
    logged: Option<Instant>,
}

pub(super) struct Table {
    count: u64,
    time: Duration,
    entries: Vec<Entry>,
}

impl Table {
    pub(super) const fn new() -> Self {
        Table {
            count: 0,
            time: Duration::ZERO,
            entries: Vec::new(),
        }
    }

    /// Whether this one is to be logged; if so, it counts as logged from now on.
    pub(super) fn log(&mut self, place: &str, took: Duration) -> bool {
        if took < LOGGED {
            return false;
        }
        let now = Instant::now();
        let logged = &mut self.entry(place).logged;
        if logged.is_some_and(|at| now - at < LOG_AGAIN) {
            return false;
        }
        *logged = Some(now);
        true
    }

    pub(super) fn add(&mut self, place: &str, call: String, request: String, took: Duration) {
        self.count += 1;
        self.time += took;
        let stall = &mut self.entry(place).stall;
        stall.call = call;
        stall.request = request;
        stall.count += 1;
        stall.time += took;
        stall.longest = stall.longest.max(took);
    }

    pub(super) fn stalls(&self) -> Stalls {
        let counted = self.entries.iter().filter(|entry| entry.stall.count > 0);
        let mut places: Vec<_> = counted.map(|entry| entry.stall.clone()).collect();
        places.sort_by_key(|stall| std::cmp::Reverse(stall.time));
        Stalls {
            count: self.count,
            time: self.time,
            places,
        }
    }

    fn entry(&mut self, place: &str) -> &mut Entry {
        let known = self.entries.iter().position(|it| it.stall.place == place);
        let at = known.unwrap_or_else(|| {
            if self.entries.len() == MOST {
                let least = (0..MOST).min_by_key(|at| self.entries[*at].stall.time);
                self.entries.swap_remove(least.unwrap_or(0));
            }
            self.entries.push(Entry {
                stall: Stall {
                    place: place.to_owned(),
                    call: String::new(),
                    request: String::new(),
                    count: 0,
                    time: Duration::ZERO,
                    longest: Duration::ZERO,
                },
                logged: None,
            });
            self.entries.len() - 1
        });
        &mut self.entries[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_and_logged_once_a_minute() {
        let mut table = Table::new();
        let took = Duration::from_millis(30);
        assert!(table.log("a", took));
        assert!(!table.log("a", took));
        assert!(!table.log("b", LOGGED / 2));
        for _ in 0..2 {
            table.add("a", "computing".to_owned(), "GET /".to_owned(), took);
        }
        let stalls = table.stalls();
        assert_eq!((stalls.count, stalls.time), (2, 2 * took));
        assert_eq!(stalls.places.len(), 1);
        assert_eq!(
            (stalls.places[0].count, stalls.places[0].longest),
            (2, took)
        );
    }

    #[test]
    fn the_table_is_bounded() {
        let mut table = Table::new();
        for number in 0..3 * MOST {
            let took = Duration::from_millis(number as u64 + 1);
            table.add(&number.to_string(), String::new(), String::new(), took);
        }
        let stalls = table.stalls();
        assert_eq!(stalls.places.len(), MOST);
        assert_eq!(stalls.places[0].place, (3 * MOST - 1).to_string());
        assert_eq!(stalls.count, 3 * MOST as u64);
    }
}
