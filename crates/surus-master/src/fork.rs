use nix::unistd::ForkResult;

/// Forks.
///
/// The only unsafe call outside of surus-zend. `fork` is unsafe because of other threads: the child would inherit the
/// locks that they hold, and nothing would release them. The master never has other threads; that is checked here.
#[allow(unsafe_code)]
pub(crate) fn fork() -> nix::Result<ForkResult> {
    debug_assert_eq!(threads(), Some(1), "the master has started a thread");
    // SAFETY: this process has a single thread, so the child finds every lock and the heap in a consistent state.
    unsafe { nix::unistd::fork() }
}

fn threads() -> Option<usize> {
    // The test harness runs each test on a thread of its own.
    if cfg!(test) {
        return Some(1);
    }
    Some(std::fs::read_dir("/proc/self/task").ok()?.count())
}
