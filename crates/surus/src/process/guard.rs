//! Kills its own process when a job does not end: PHP can neither leave C code that computes nor be made to return from
//! code that ignores that it must end. A process has one job at a time, so nobody else loses anything.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{kill, SigSet, SigmaskHow, Signal};
use nix::unistd::Pid;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;

/// How long `finally` blocks may take after a job was told to end.
const UNWIND: Duration = Duration::from_secs(2);

/// Watches over one job, from a thread, until it is dropped.
pub(crate) struct Guard {
    done: UnixStream,
    /// Taken by whoever comes first: the job's end, or the thread that kills the process.
    decided: Arc<AtomicBool>,
}

impl Guard {
    /// `caller`: closed when nobody waits for the job any more. `time`: how long it may take.
    pub(crate) fn new(caller: &UnixStream, time: Option<Duration>) -> io::Result<Self> {
        let (done, waits) = UnixStream::pair()?;
        let caller = caller.try_clone()?;
        let decided = Arc::new(AtomicBool::new(false));
        let ours = Arc::clone(&decided);
        // PHP's signals are for the thread that runs it.
        let mask = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let thread = thread::Builder::new().name("guard".to_owned());
        let spawned = thread.spawn(move || watch(&caller, &waits, time, &ours));
        mask.thread_set_mask()?;
        spawned?;
        Ok(Guard { done, decided })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.decided.swap(true, Ordering::SeqCst) {
            // The process is about to be killed: it must not take another job.
            thread::sleep(Duration::MAX);
        }
        let _ = self.done.write_all(b".");
    }
}

fn watch(caller: &UnixStream, done: &UnixStream, time: Option<Duration>, decided: &AtomicBool) {
    let until = time.and_then(|time| Instant::now().checked_add(time));
    if wait(&[(caller, PollFlags::RDHUP), (done, PollFlags::IN)], until) == Some(1) {
        return;
    }
    if wait(&[(done, PollFlags::IN)], Some(Instant::now() + UNWIND)).is_some() {
        return;
    }
    if !decided.swap(true, Ordering::SeqCst) {
        let _ = kill(Pid::this(), Signal::SIGKILL);
    }
}

/// The last that is ready; `None` when the time is over.
fn wait(streams: &[(&UnixStream, PollFlags)], until: Option<Instant>) -> Option<usize> {
    let mut fds: Vec<PollFd<'_>> = streams
        .iter()
        .map(|(stream, events)| PollFd::new(*stream, *events))
        .collect();
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let left = left.map(|left| Timespec::try_from(left).unwrap_or_default());
        match poll(&mut fds, left.as_ref()) {
            Ok(0) if until.is_some_and(|until| Instant::now() >= until) => return None,
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) | Err(_) => break,
        }
    }
    fds.iter().rposition(|fd| !fd.revents().is_empty())
}
