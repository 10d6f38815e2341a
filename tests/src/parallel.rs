//! Many clients at once.

use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Calls `work(0)` to `work(count - 1)`, all starting together, each in a thread; the results in order, and
/// the time from the start to the last one's end. A panic in one of them is the caller's.
pub fn together<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> (Vec<T>, Duration) {
    let barrier = Barrier::new(count + 1);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map(|number| {
                let (barrier, work) = (&barrier, &work);
                scope.spawn(move || {
                    barrier.wait();
                    work(number)
                })
            })
            .collect();
        barrier.wait();
        let start = Instant::now();
        let results = threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect();
        (results, start.elapsed())
    })
}
