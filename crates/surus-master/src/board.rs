//! Counters of workers in memory that they share with the master, so that counting needs no system call, and the
//! counters of a dead or blocked worker can still be read.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use serde_json::{json, Value};

/// Latency buckets: four for each power of two, in microseconds, up to about a minute.
const BUCKETS: usize = 104;
/// Responses by the first digit of their status, then the sum of latencies in microseconds, then the buckets.
const CLASSES: usize = 6;
const CELLS: usize = CLASSES + 1 + BUCKETS + REFUSALS.len();

/// The edge's names for reasons to refuse something without the application; the last one is for all others.
const REFUSALS: [&str; 13] = [
    "malformed",
    "tls",
    "http2",
    "proxy_protocol",
    "timeout",
    "target_too_long",
    "head_too_large",
    "body_too_large",
    "not_implemented",
    "host",
    "too_many_connections",
    "too_many_of_one_address",
    "other",
];

/// Upper bounds of the histogram that Prometheus gets, in seconds.
const BOUNDS: [f64; 12] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0,
];

/// The counters of all seats.
#[derive(Clone, Copy, Debug)]
pub struct Board(&'static [AtomicU64]);

/// The counters of one seat.
#[derive(Clone, Copy, Debug)]
pub struct Tally(&'static [AtomicU64]);

impl Board {
    /// The number of zeroed cells that it needs.
    #[must_use]
    pub fn cells(seats: usize) -> usize {
        seats * CELLS
    }

    /// A board in the cells that master and workers share; [`Board::cells`] gives their number.
    #[must_use]
    pub fn new(cells: &'static [AtomicU64]) -> Self {
        Board(cells)
    }

    /// The counters of a seat. If there is no room for the seat, nothing is counted.
    #[must_use]
    pub fn tally(&self, seat: usize) -> Tally {
        Tally(self.0.get(seat * CELLS..(seat + 1) * CELLS).unwrap_or(&[]))
    }
}

impl Tally {
    /// Counts `times` responses that have begun, each `took` after its request was received.
    pub fn count(&self, status: u16, times: u32, took: Duration) {
        let Some((head, buckets)) = self.0.split_at_checked(CLASSES + 1) else {
            return;
        };
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let times = u64::from(times);
        head[usize::from(status / 100).min(CLASSES - 1)].fetch_add(times, Relaxed);
        head[CLASSES].fetch_add(micros.saturating_mul(times), Relaxed);
        buckets[bucket(micros)].fetch_add(times, Relaxed);
    }

    /// Counts a refusal for this reason.
    pub fn refuse(&self, why: &str) {
        let at = REFUSALS.iter().position(|name| *name == why);
        let at = at.unwrap_or(REFUSALS.len() - 1);
        if let Some(cell) = self.0.get(CLASSES + 1 + BUCKETS + at) {
            cell.fetch_add(1, Relaxed);
        }
    }

    /// `(reason, count)` of the refusals.
    pub(crate) fn refusals(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let refusals = REFUSALS.into_iter().enumerate();
        refusals.map(|(at, name)| (name, self.get(CLASSES + 1 + BUCKETS + at)))
    }

    fn get(&self, index: usize) -> u64 {
        self.0.get(index).map_or(0, |cell| cell.load(Relaxed))
    }

    fn total(&self) -> u64 {
        (0..CLASSES).map(|class| self.get(class)).sum()
    }

    /// The latency in microseconds that this share of the responses did not exceed, with an error of at most a quarter.
    fn percentile(&self, share: f64) -> u64 {
        let counts: Vec<u64> = (0..BUCKETS).map(|at| self.get(CLASSES + 1 + at)).collect();
        let wanted = (counts.iter().sum::<u64>() as f64 * share).ceil() as u64;
        let mut seen = 0;
        for (at, count) in counts.iter().enumerate() {
            seen += count;
            if seen >= wanted && seen > 0 {
                return upper(at);
            }
        }
        0
    }

    pub(crate) fn json(&self) -> Value {
        let refused = self.refusals().filter(|(_, count)| *count > 0);
        let refused: Value = refused.map(|(why, count)| (why, json!(count))).collect();
        json!({
            "refused": refused,
            "requests_total": self.total(),
            "responses": {
                "2xx": self.get(2), "3xx": self.get(3), "4xx": self.get(4), "5xx": self.get(5),
            },
            "latency_us": {
                "p50": self.percentile(0.5), "p90": self.percentile(0.9), "p99": self.percentile(0.99),
            },
        })
    }

    /// `(class, count)` for each class of status codes.
    pub(crate) fn classes(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        (1..CLASSES).map(|class| (class, self.get(class)))
    }

    /// Cumulative counts for [`BOUNDS`], their number, and the sum of latencies in seconds.
    pub(crate) fn histogram(&self) -> (Vec<(f64, u64)>, u64, f64) {
        let below = |bound: f64| {
            let counted = (0..BUCKETS).filter(|&at| upper(at) as f64 <= bound * 1e6);
            counted.map(|at| self.get(CLASSES + 1 + at)).sum()
        };
        let buckets = BOUNDS.map(|bound| (bound, below(bound))).to_vec();
        (buckets, self.total(), self.get(CLASSES) as f64 / 1e6)
    }
}

fn bucket(micros: u64) -> usize {
    if micros < 4 {
        return micros as usize;
    }
    let power = 63 - u64::from(micros.leading_zeros());
    let index = 4 * (power - 1) + ((micros >> (power - 2)) & 3);
    (index as usize).min(BUCKETS - 1)
}

/// The largest number in a bucket.
fn upper(bucket: usize) -> u64 {
    if bucket < 4 {
        return bucket as u64;
    }
    let (power, quarter) = (bucket as u64 / 4 + 1, bucket as u64 % 4);
    ((4 + quarter + 1) << (power - 2)) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally() -> Tally {
        let cells: Vec<AtomicU64> = std::iter::repeat_with(AtomicU64::default)
            .take(Board::cells(2))
            .collect();
        Board::new(cells.leak()).tally(1)
    }

    #[test]
    fn buckets_hold_what_lies_between_their_bounds() {
        for micros in (0..5000).chain([1 << 20, (1 << 25) + 7]) {
            let at = bucket(micros);
            assert!(micros <= upper(at), "{micros}");
            assert!(at == 0 || micros > upper(at - 1), "{micros}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_are_near_the_truth() {
        let tally = tally();
        for millis in 1..=100 {
            tally.count(200, 1, Duration::from_millis(millis));
        }
        tally.count(503, 1, Duration::from_micros(2));
        let found = tally.json();
        assert_eq!(found["requests_total"], 101);
        assert_eq!(found["responses"]["5xx"], 1);
        let near = |key: &str, truth: f64| {
            let micros = found["latency_us"][key].as_f64().unwrap();
            assert!((0.99..1.3).contains(&(micros / truth)), "{key} {micros}");
        };
        near("p50", 50_000.0);
        near("p99", 99_000.0);
        let (buckets, count, sum) = tally.histogram();
        assert_eq!(count, 101);
        assert!((5.0..5.1).contains(&sum));
        assert_eq!(buckets.last().unwrap().1, 101);
    }

    #[test]
    fn a_seat_beyond_the_board_counts_nothing() {
        let board = Board::new(&[]);
        board.tally(7).count(200, 1, Duration::ZERO);
        assert_eq!(board.tally(7).json()["requests_total"], 0);
    }
}
