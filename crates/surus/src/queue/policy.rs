//! What follows from how a run has ended: the job is gone, waits for its next run, or has failed.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use serde::Deserialize;
use surus_queue::{Delivery, Ending, Rate, Subscription};
use surus_zend::JobEnd;

use super::keeper::{back, seconds};

/// The longest pause before another run.
const LONGEST: Duration = Duration::from_secs(3600);

/// Before a job is offered again that the application could not begin.
const NOT_NOW: Duration = Duration::from_secs(1);

/// A queue, as the application has declared it.
#[derive(Debug, Deserialize)]
pub(super) struct Declared {
    queue: String,
    concurrency: u32,
    tries: u32,
    timeout: f64,
    backoff: f64,
    /// So many begin in so many seconds; none: as many as like.
    rate: Option<(u32, f64)>,
}

/// How PHP says that a job has ended.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Said {
    /// It was done.
    done: bool,
    /// It is to run again after these seconds.
    again: Option<f64>,
    /// It has failed for good.
    failed: Option<String>,
    /// An exception, or a reason for `again`.
    error: Option<String>,
}

impl Said {
    /// Of a job that PHP has taken itself.
    pub(super) fn of_taken(self) -> Ending {
        match (self.failed, self.again) {
            (Some(error), _) => Ending::Failed { error },
            (None, Some(delay)) => Ending::Again {
                delay: seconds(delay),
                error: self.error,
                counts: true,
            },
            (None, None) => Ending::Done,
        }
    }
}

impl Declared {
    pub(super) fn all(json: &str) -> Vec<Declared> {
        // PHP has made it, from values that it has checked.
        serde_json::from_str(json).unwrap_or_default()
    }

    pub(super) fn name(&self) -> &str {
        &self.queue
    }

    pub(super) fn subscription(&self) -> Subscription {
        Subscription {
            queue: self.queue.clone(),
            places: self.concurrency,
            tries: Some(self.tries),
            rate: Some(self.rate()),
        }
    }

    fn rate(&self) -> Rate {
        let (count, period) = self.rate.unwrap_or_default();
        let period = u32::try_from(seconds(period).as_millis()).unwrap_or(u32::MAX);
        Rate { count, period }
    }

    pub(super) fn limit(&self) -> Option<Duration> {
        Some(seconds(self.timeout)).filter(|limit| !limit.is_zero())
    }

    /// `took`: the time of the run.
    pub(super) fn ending(&self, job: &Delivery, end: JobEnd, took: Duration) -> Ending {
        let error = match end {
            JobEnd::NotBegun => return back(NOT_NOW),
            JobEnd::Said(said) => {
                let said: Said = serde_json::from_str(&said).unwrap_or_default();
                match said.error {
                    Some(error) if said.again.is_none() => error,
                    _ => return said.of_taken(),
                }
            }
            JobEnd::Cancelled if self.limit().is_some_and(|limit| took >= limit) => {
                format!("it was not done within {} s", self.timeout)
            }
            JobEnd::Cancelled => "it was cancelled".to_owned(),
            JobEnd::Fatal => "a fatal error has ended it; it is in the log".to_owned(),
            JobEnd::Exited => "exit has ended it".to_owned(),
        };
        self.after(job.attempt, error)
    }

    /// A run has failed.
    fn after(&self, attempt: u32, error: String) -> Ending {
        if attempt >= self.tries {
            return Ending::Failed { error };
        }
        Ending::Again {
            delay: self.pause(attempt),
            error: Some(error),
            counts: true,
        }
    }

    /// Doubles each time. Jobs that have failed together do not come back together: up to a quarter more or less.
    fn pause(&self, attempt: u32) -> Duration {
        let doubled = self.backoff * 2f64.powi(attempt.saturating_sub(1).min(30) as i32);
        let random = RandomState::new().hash_one(attempt) as f64 / u64::MAX as f64;
        seconds(doubled.min(LONGEST.as_secs_f64()) * (0.75 + random / 2.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared() -> Declared {
        let json = r#"[{"queue":"mail","concurrency":5,"tries":3,"timeout":2,"backoff":10}]"#;
        Declared::all(json).pop().expect("one queue")
    }

    #[test]
    fn a_pause_doubles_and_varies() {
        let queue = declared();
        for (attempt, middle) in [(1, 10.0), (2, 20.0), (3, 40.0), (30, 3600.0)] {
            let pause = queue.pause(attempt).as_secs_f64();
            assert!((middle * 0.75..=middle * 1.25).contains(&pause), "{pause}");
        }
        let pauses: std::collections::HashSet<_> = (0..20).map(|_| queue.pause(1)).collect();
        assert!(pauses.len() > 10);
    }

    #[test]
    fn the_last_try_fails_for_good() {
        let queue = declared();
        let error = || "wrong".to_owned();
        assert!(matches!(
            queue.after(2, error()),
            Ending::Again { counts: true, .. }
        ));
        assert_eq!(queue.after(3, error()), Ending::Failed { error: error() });
    }

    #[test]
    fn what_php_says_is_understood() {
        let said = |text: &str| serde_json::from_str::<Said>(text).expect("JSON").of_taken();
        assert_eq!(said(r#"{"done":true}"#), Ending::Done);
        let failed = said(r#"{"failed":"no such user"}"#);
        assert!(matches!(failed, Ending::Failed { error } if error == "no such user"));
        let again = said(r#"{"again":1.5,"error":"busy"}"#);
        assert!(matches!(again, Ending::Again { delay, .. } if delay.as_millis() == 1500));
    }
}
