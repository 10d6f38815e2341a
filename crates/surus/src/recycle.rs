//! Replaces the isolate of an application in coroutine mode when it has served for long enough: the code boots again in
//! a second one, as in a reload, and the memory of the old one is freed.
//!
//! Isolates of classic sites do not need this: each is checked after its request.

use std::rc::Rc;
use std::time::Duration;

use surus_zend::IsolateLimits;

use crate::backend::{Counted, Php};
use crate::orders::{ControlChannel, Since};

/// How often the limits are checked.
const LOOK: Duration = Duration::from_secs(1);

/// Time to wait after a failed boot.
const TRY_AGAIN: Duration = Duration::from_secs(10);

/// Replaces the isolate whenever it has reached a limit, as long as the worker serves.
///
/// The limits of requests and age are increased by up to a quarter, depending on the worker's number: the workers of a
/// server have equal load, so otherwise all of them would boot at the same time.
pub(crate) async fn watch<B: Php>(
    limits: IsolateLimits,
    (worker, workers): (usize, usize),
    backend: Rc<B>,
    counted: Rc<Counted<B>>,
    orders: Rc<ControlChannel<B>>,
) {
    let share = worker as f64 / workers.max(1) as f64 / 4.0;
    let limits = stretched(limits, share);
    loop {
        tokio::time::sleep(LOOK).await;
        let Since { time, requests } = orders.since();
        let requests = counted.requests().saturating_sub(requests);
        let memory = || backend.status()["php_memory_bytes"].as_u64().unwrap_or(0);
        let Some(why) = reason(limits, requests, time.elapsed(), memory) else {
            continue;
        };
        match orders.renew().await {
            Ok(true) => tracing::info!("the isolate of the application is replaced: {why}"),
            Ok(false) => {}
            Err(error) => {
                tracing::error!(%error, "the application did not boot again; the old version keeps running");
                tokio::time::sleep(TRY_AGAIN).await;
            }
        }
    }
}

fn stretched(limits: IsolateLimits, share: f64) -> IsolateLimits {
    IsolateLimits {
        requests: limits
            .requests
            .map(|limit| limit.saturating_add((limit as f64 * share) as u64)),
        age: limits
            .age
            .map(|limit| limit.saturating_add(limit.mul_f64(share))),
        memory: limits.memory,
    }
}

/// Why the isolate should be replaced, if it should.
fn reason(
    limits: IsolateLimits,
    requests: u64,
    age: Duration,
    memory: impl FnOnce() -> u64,
) -> Option<String> {
    if limits.requests.is_some_and(|limit| requests >= limit) {
        return Some(format!("it has served {requests} requests"));
    }
    if limits.age.is_some_and(|limit| age >= limit) {
        return Some(format!("it has served for {} s", age.as_secs()));
    }
    let limit = limits.memory?;
    let memory = Some(memory()).filter(|&bytes| bytes >= limit)?;
    Some(format!("it uses {} MB of memory", memory / 1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_take_their_turns() {
        let limits = IsolateLimits {
            requests: Some(100),
            age: Some(Duration::from_secs(40)),
            memory: Some(7),
        };
        assert_eq!(stretched(limits, 0.0), limits);
        let later = stretched(limits, 0.125);
        assert_eq!(later.requests, Some(112));
        assert_eq!(later.age, Some(Duration::from_secs(45)));
        assert_eq!(later.memory, Some(7));
    }

    #[test]
    fn each_limit_is_a_reason() {
        let limits = IsolateLimits {
            requests: Some(100),
            age: Some(Duration::from_secs(40)),
            memory: Some(5_000_000),
        };
        let why = |requests, age, memory| {
            reason(limits, requests, Duration::from_secs(age), || memory).unwrap_or_default()
        };
        assert_eq!(why(99, 39, 4_999_999), "");
        assert_eq!(why(100, 0, 0), "it has served 100 requests");
        assert_eq!(why(0, 40, 0), "it has served for 40 s");
        assert_eq!(why(0, 0, 5_000_000), "it uses 5 MB of memory");
        let never = IsolateLimits::default();
        assert_eq!(reason(never, 1000, Duration::MAX, || u64::MAX), None);
    }
}
