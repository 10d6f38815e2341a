//! The event loop of a process that runs PHP: one thread, with sockets and timers.

use std::future::Future;
use std::io;

use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

/// Helper threads, which write uploads to the disk and look up names, are so much nicer than PHP's thread (nice(2)):
/// short requests do not wait for them where cores are few.
const HELPERS: i32 = 5;

pub(crate) fn new() -> io::Result<Runtime> {
    Builder::new_current_thread()
        .enable_all()
        .on_thread_start(|| _ = rustix::process::nice(HELPERS))
        .build()
}

/// Runs one task on a loop of its own. What it has left behind is not waited for.
pub(crate) fn run<T>(task: impl Future<Output = T>) -> io::Result<T> {
    let runtime = new()?;
    let result = LocalSet::new().block_on(&runtime, task);
    runtime.shutdown_background();
    Ok(result)
}
