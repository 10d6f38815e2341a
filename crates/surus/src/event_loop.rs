//! The event loop of a process that runs PHP: one thread, with sockets and timers.

use std::future::Future;
use std::io;

use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

/// The nice value (nice(2)) of helper threads, which write uploads to the disk and resolve names: with few cores, short
/// requests do not wait for them.
const HELPERS: i32 = 5;

pub(crate) fn new() -> io::Result<Runtime> {
    Builder::new_current_thread()
        .enable_all()
        .on_thread_start(|| _ = rustix::process::nice(HELPERS))
        .build()
}

/// Runs one task on a new event loop. Does not wait for helper threads that the task has left running.
pub(crate) fn run<T>(task: impl Future<Output = T>) -> io::Result<T> {
    let runtime = new()?;
    let result = LocalSet::new().block_on(&runtime, task);
    runtime.shutdown_background();
    Ok(result)
}
