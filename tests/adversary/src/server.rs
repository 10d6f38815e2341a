//! The server under test, and what can be seen of it from outside.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    fs,
    net::SocketAddr,
    path::Path,
    process::ExitStatus,
    rc::Rc,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{kill, Signal},
    unistd::Pid,
};
use surus_tests::surus::{Mode, Surus};
use tokio::time::sleep;

use crate::{backends::Backends, interruption::Interruption};

/// Isolates of a classic site: fewer than requests, so that persistent connections go from one to the next.
const ISOLATES: usize = 16;
pub(crate) const PROCESSES: usize = 6;

pub(crate) struct Server {
    surus: RefCell<Surus>,
    address: SocketAddr,
    master: i32,
    workers: RefCell<BTreeSet<i32>>,
    /// How many processes there are while none is being replaced.
    size: usize,
    /// Workers may be replaced.
    pub(crate) changing: Cell<bool>,
    deaths: RefCell<Vec<String>>,
    /// How many deaths the log has that were told already.
    told: Cell<usize>,
}

impl Server {
    pub(crate) fn start(mode: Mode, interruption: Interruption, backends: &Backends) -> Rc<Server> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("php");
        let site = match mode {
            Mode::Coroutine | Mode::Snapshot => mode.script(&folder),
            _ => folder,
        };
        let timeout = match interruption {
            Interruption::Deadline => "250ms",
            _ => "30s",
        };
        let mut settings = vec![
            format!("request_timeout={timeout}"),
            "memory_limit=64M".to_owned(),
            "cancel_on_disconnect=true".to_owned(),
            "queue_timeout=30s".to_owned(),
        ];
        match mode {
            Mode::Coroutine => {}
            Mode::Classic | Mode::Snapshot => settings.push(format!("isolates.max={ISOLATES}")),
            Mode::Process => settings.push(format!("processes={PROCESSES}")),
        }
        let mut options = Surus::serve(&site).mode(mode);
        for setting in settings {
            options = options.argument("--set").argument(setting);
        }
        for (name, value) in backends.variables() {
            options = options.env(&name, &value);
        }
        if interruption == Interruption::FullDisk {
            options = options.under(&["sh", "-c", "exec \"$0\" \"$@\" 2>/dev/full"]);
        }
        let mut surus = options.start();
        let master = surus.process().id() as i32;
        let workers = children(master);
        Rc::new(Server {
            address: surus.address(),
            master,
            surus: RefCell::new(surus),
            size: workers.len(),
            workers: RefCell::new(workers),
            changing: Cell::new(false),
            deaths: RefCell::default(),
            told: Cell::new(0),
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    fn children(&self) -> BTreeSet<i32> {
        children(self.master)
    }

    /// Looks for workers that have ended, again and again.
    pub(crate) async fn watch(self: Rc<Self>) {
        loop {
            self.look();
            sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) fn look(&self) {
        let now = self.children();
        let before = self.workers.replace(now.clone());
        if self.changing.get() {
            return;
        }
        for gone in before.difference(&now) {
            let log = self.surus.borrow().log();
            let mut lines: Vec<_> = log
                .lines()
                .rev()
                .filter(|line| !line.contains(" PHP "))
                .take(6)
                .collect();
            lines.reverse();
            let text = format!("process {gone} has ended\n    {}", lines.join("\n    "));
            self.deaths.borrow_mut().push(text);
        }
    }

    /// The last reload has come to its end: those that it replaces may still have requests, and end when these do.
    pub(crate) async fn settled(&self, patience: Duration) {
        let begun = Instant::now();
        let mut since = Instant::now();
        while since.elapsed() < Duration::from_secs(2) && begun.elapsed() < patience {
            sleep(Duration::from_millis(50)).await;
            let before = self.workers.borrow().clone();
            self.look();
            if *self.workers.borrow() != before || before.len() != self.size {
                since = Instant::now();
            }
        }
    }

    /// Processes that have ended since the last call, and should not have.
    pub(crate) fn deaths(&self) -> Vec<String> {
        let mut deaths = self.deaths.take();
        // During reloads processes end all the time: of those that should not, the master says so.
        let log = self.surus.borrow().log();
        let said: Vec<&str> = log.lines().filter(|line| is_death(line)).collect();
        let new = &said[self.told.replace(said.len()).min(said.len())..];
        let is_known = |line: &str| deaths.iter().any(|text| text.contains(line));
        let unknown: Vec<_> = new.iter().filter(|line| !is_known(line)).collect();
        deaths.extend(unknown.into_iter().map(|line| (*line).to_owned()));
        deaths
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let _ = kill(Pid::from_raw(self.master), signal);
    }

    /// It finishes what it has begun, and ends.
    pub(crate) fn stop(&self) {
        self.changing.set(true);
        self.signal(Signal::SIGTERM);
    }

    /// Open descriptors of all workers.
    pub(crate) fn descriptors(&self) -> usize {
        let count = |pid: &i32| fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
        self.children().iter().map(count).sum()
    }

    /// Bytes of private memory of all workers.
    pub(crate) fn memory(&self) -> u64 {
        let private = |pid: &i32| {
            let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"));
            rollup
                .unwrap_or_default()
                .lines()
                .find_map(|line| line.strip_prefix("Private_Dirty:"))
                .and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok())
                .unwrap_or_default()
                * 1024
        };
        self.children().iter().map(private).sum()
    }

    /// Waits for its end; none if it does not end.
    pub(crate) async fn ended(&self, patience: Duration) -> Option<ExitStatus> {
        let begun = Instant::now();
        loop {
            let ended = self.surus.borrow_mut().process().ended();
            if ended.is_some() || begun.elapsed() > patience {
                return ended;
            }
            sleep(Duration::from_millis(20)).await;
        }
    }
}

/// The master's children: workers, and PHP's processes.
fn children(master: i32) -> BTreeSet<i32> {
    let path = format!("/proc/{master}/task/{master}/children");
    let list = fs::read_to_string(path).unwrap_or_default();
    list.split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

/// A line of the log about a process that was killed, or has ended although it should not have.
fn is_death(line: &str) -> bool {
    const WORDS: [&str; 3] = [" was killed by SIG", " exited with ", " panicked at "];
    !line.contains(" php: ") && WORDS.iter().any(|words| line.contains(words))
}

#[cfg(test)]
mod tests {
    use super::is_death;

    #[test]
    fn the_log_tells_of_deaths() {
        let master = "2026-11-25T10:00:00Z ERROR surus_master: worker 2 was killed by SIGSEGV; starting another";
        assert!(is_death(master));
        assert!(is_death(
            "thread 'main' panicked at crates/surus/src/main.rs:1:1:"
        ));
        assert!(!is_death(
            "2026-11-25T10:00:00Z ERROR php: my child was killed by SIGKILL"
        ));
        assert!(!is_death(
            "2026-11-25T10:00:00Z  INFO surus_master: reloaded"
        ));
    }
}
