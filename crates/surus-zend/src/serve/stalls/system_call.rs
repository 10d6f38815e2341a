//! A thread, looked at from another one: its CPU time, and the system call that it waits in.

use std::{ffi::c_long, fs, io, time::Duration};

/// System calls that wait, and whether their first argument is a descriptor.
const CALLS: [(c_long, &str, bool); 42] = [
    (libc::SYS_read, "read", true),
    (libc::SYS_write, "write", true),
    (libc::SYS_readv, "readv", true),
    (libc::SYS_writev, "writev", true),
    (libc::SYS_pread64, "pread", true),
    (libc::SYS_pwrite64, "pwrite", true),
    (libc::SYS_sendfile, "sendfile", true),
    (libc::SYS_copy_file_range, "copy_file_range", true),
    (libc::SYS_fsync, "fsync", true),
    (libc::SYS_fdatasync, "fdatasync", true),
    (libc::SYS_ftruncate, "ftruncate", true),
    (libc::SYS_fallocate, "fallocate", true),
    (libc::SYS_flock, "flock", true),
    (libc::SYS_fcntl, "fcntl", true),
    (libc::SYS_ioctl, "ioctl", true),
    (libc::SYS_getdents64, "getdents", true),
    (libc::SYS_connect, "connect", true),
    (libc::SYS_accept4, "accept", true),
    (libc::SYS_recvfrom, "recvfrom", true),
    (libc::SYS_recvmsg, "recvmsg", true),
    (libc::SYS_sendto, "sendto", true),
    (libc::SYS_sendmsg, "sendmsg", true),
    (libc::SYS_close, "close", true),
    (libc::SYS_openat, "open", false),
    (libc::SYS_newfstatat, "stat", false),
    (libc::SYS_statx, "stat", false),
    (libc::SYS_readlinkat, "readlink", false),
    (libc::SYS_renameat2, "rename", false),
    (libc::SYS_unlinkat, "unlink", false),
    (libc::SYS_mkdirat, "mkdir", false),
    (libc::SYS_sync, "sync", false),
    (libc::SYS_ppoll, "poll", false),
    (libc::SYS_pselect6, "select", false),
    (libc::SYS_clock_nanosleep, "nanosleep", false),
    (libc::SYS_nanosleep, "nanosleep", false),
    (libc::SYS_futex, "futex", false),
    (libc::SYS_wait4, "waitpid", false),
    (libc::SYS_waitid, "waitid", false),
    (libc::SYS_semop, "semop", false),
    (libc::SYS_msgrcv, "msgrcv", false),
    (libc::SYS_msgsnd, "msgsnd", false),
    (libc::SYS_mmap, "mmap", false),
];

pub(super) struct WatchedThread {
    id: libc::pid_t,
    clock: libc::clockid_t,
}

impl WatchedThread {
    /// The calling thread. It must not end before it is looked at for the last time.
    pub(super) fn current() -> io::Result<Self> {
        let mut clock = 0;
        // SAFETY: the thread is alive, and `clock` is written to.
        let failed = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock) };
        if failed != 0 {
            return Err(io::Error::from_raw_os_error(failed));
        }
        // SAFETY: a number.
        let id = unsafe { libc::gettid() };
        Ok(WatchedThread { id, clock })
    }

    /// How long it has computed.
    pub(super) fn cpu_time(&self) -> Duration {
        // SAFETY: all zeros is a time.
        let mut time: libc::timespec = unsafe { std::mem::zeroed() };
        // SAFETY: `time` is written to; a clock that is gone is an error, which leaves it.
        unsafe { libc::clock_gettime(self.clock, &raw mut time) };
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
    }

    /// The system call that it waits in, in words; None where it runs or only waits for a processor.
    pub(super) fn system_call(&self) -> Option<String> {
        let folder = format!("/proc/self/task/{}", self.id);
        match fs::read_to_string(format!("{folder}/syscall")) {
            Ok(line) => described(&line),
            // Kernels may be built without it.
            Err(_) => fs::read_to_string(format!("{folder}/stat"))
                .is_ok_and(|stat| waits(&stat))
                .then(|| "in a system call".to_owned()),
        }
    }
}

/// A line of proc_pid_syscall(5).
fn described(line: &str) -> Option<String> {
    let mut words = line.split_ascii_whitespace();
    let number: c_long = words.next()?.parse().ok()?; // or "running"
    if number < 0 {
        return Some("waiting for memory that is on a disk".to_owned());
    }
    let Some((_, name, is_of_file)) = CALLS.iter().find(|(known, ..)| *known == number) else {
        return Some(format!("in the system call {number}"));
    };
    let argument = words.next().filter(|_| *is_of_file);
    let descriptor =
        argument.and_then(|text| i64::from_str_radix(text.trim_start_matches("0x"), 16).ok());
    let path = descriptor.and_then(|fd| fs::read_link(format!("/proc/self/fd/{fd}")).ok());
    let path = path.map_or_else(String::new, |path| path.display().to_string());
    Some(format!("in the system call {name}({path})"))
}

/// By the state in proc_pid_stat(5), which follows the name in parentheses.
fn waits(stat: &str) -> bool {
    let state = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next());
    matches!(state, Some('S' | 'D'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel() {
        assert_eq!(described("running\n"), None);
        let sync = format!(
            "{} 0x7fff 0x0 0x0 0x0 0x0 0x0 0x7ffd 0x7f12\n",
            libc::SYS_sync
        );
        assert_eq!(
            described(&sync).as_deref(),
            Some("in the system call sync()")
        );
        let memory = "-1 0x7ffd 0x7f12\n";
        assert_eq!(
            described(memory).as_deref(),
            Some("waiting for memory that is on a disk")
        );
        assert_eq!(
            described("9999 0x0\n").as_deref(),
            Some("in the system call 9999")
        );
        assert!(waits("12 (a) b) S 1 2"));
        assert!(!waits("12 (a) R 1 2"));
    }

    #[test]
    fn a_thread_that_waits() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            sender
                .send(WatchedThread::current().expect("a clock"))
                .expect("the test");
            std::thread::sleep(Duration::from_millis(300));
        });
        let watched = receiver.recv().expect("the thread");
        let begun = std::time::Instant::now();
        let found = std::iter::repeat_with(|| watched.system_call())
            .take_while(|_| begun.elapsed() < Duration::from_millis(250))
            .any(|call| call.is_some_and(|text| text.contains("system call")));
        assert!(found);
        assert!(watched.cpu_time() < Duration::from_millis(250));
        thread.join().expect("its end");
    }
}
