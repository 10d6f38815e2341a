//! Carries decisions out: the only place that forks, signals and waits.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::prctl;
use nix::sys::signal::{kill, SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};
use nix::unistd::{getpid, getppid, ForkResult, Pid};
use serde_json::Value;

use crate::admin::Admin;
use crate::board::Board;
use crate::control::{outcome, Control, Request};
use crate::fork::fork;
use crate::identity::Identity;
use crate::notify::Manager;
use crate::process::{unix_time, Process};
use crate::protocol::{Order, Report, Stamp};
use crate::seat::Channel;
use crate::state::{Action, Death, Event, Id, Now, Outcome, State};
use crate::status::{Asker, Question, Reloads};
use crate::upgrade::{Predecessor, Program};
use crate::{Listeners, Seat};

#[derive(Clone, Debug)]
pub struct Config {
    /// From SIGTERM to SIGKILL. Longer than the time that workers give their own requests.
    pub drain: Duration,
    /// How long a new version may take to boot in a reload.
    pub boot: Duration,
    /// Where `surus status` and its like find this master.
    pub control: Option<PathBuf>,
    /// A worker whose event loop stands still for longer is killed.
    pub watchdog: Option<Duration>,
    pub recycle: Recycle,
    /// Who workers are; else who the master is.
    pub identity: Option<Identity>,
    /// Where metrics and the dashboard are served.
    pub admin: Option<SocketAddr>,
    /// What workers count.
    pub board: Board,
    /// What SIGUSR2 starts.
    pub program: Program,
    /// The master that this one replaces.
    pub predecessor: Option<Predecessor>,
    /// What `status` says of this server beside what the master knows.
    pub about: Value,
}

/// When workers are replaced, one at a time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recycle {
    pub requests: Option<u64>,
    /// Bytes of resident memory.
    pub memory: Option<u64>,
    pub age: Option<Duration>,
}

/// Exit code of a worker that panicked outside of a request, as Rust's runtime has it.
const PANICKED: i32 = 101;

/// Forks one worker per seat and keeps them running until a signal ends it all.
///
/// `worker` is a worker's whole life: it runs in the child, which exits with the code it returns. `announce` is called
/// once, when every worker is ready. This returns in the master only.
pub fn run(
    config: &Config,
    listeners: Listeners,
    worker: &dyn Fn(Seat) -> i32,
    announce: &mut dyn FnMut(),
) -> io::Result<Outcome> {
    let mut master = Master::new(config, listeners, worker)?;
    let outcome = master.run(announce);
    master.mask.thread_set_mask()?;
    outcome
}

pub(crate) struct Master<'a> {
    pub(crate) config: &'a Config,
    pub(crate) state: State,
    listeners: Listeners,
    pub(crate) processes: BTreeMap<Id, Process>,
    worker: &'a dyn Fn(Seat) -> i32,
    signals: SignalFd,
    /// The signal mask of workers.
    mask: SigSet,
    pub(crate) started: Instant,
    /// Files for which there was a reload, as they were then (development).
    changes: HashMap<String, Stamp>,
    control: Option<Control>,
    pub(crate) admin: Option<Admin>,
    pub(crate) manager: Manager,
    /// The new master, until it serves.
    upgrade: Option<Pid>,
    /// The same from then on.
    successor: Option<Pid>,
    pub(crate) questions: VecDeque<Question>,
    pub(crate) last_question: u64,
    /// When the workers are looked after next.
    pub(crate) next_look: Option<Now>,
    pub(crate) reloads: Reloads,
}

impl<'a> Master<'a> {
    fn new(
        config: &'a Config,
        listeners: Listeners,
        worker: &'a dyn Fn(Seat) -> i32,
    ) -> io::Result<Self> {
        let signals = [
            Signal::SIGTERM,
            Signal::SIGINT,
            Signal::SIGCHLD,
            Signal::SIGHUP,
            Signal::SIGUSR2,
        ];
        let watched = SigSet::from_iter(signals);
        // Blocked from here on: they arrive through the descriptor, at a place of our choosing. A master that was
        // started by another one has inherited them blocked; its workers must not.
        let mut mask = watched.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        for signal in signals {
            mask.remove(signal);
        }
        let signals =
            SignalFd::with_flags(&watched, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        let mut control = config.control.as_ref().and_then(|path| {
            Control::bind(path)
                .inspect_err(|error| {
                    eprintln!("surus: no control socket at {}: {error}", path.display());
                })
                .ok()
        });
        // The name may be the predecessor's, which goes on if this one does not come up.
        if let (Some(control), None) = (&mut control, config.predecessor) {
            control.publish();
        }
        let admin = match config.admin {
            Some(address) => Some(Admin::bind(address, config.predecessor.is_some())?),
            None => None,
        };
        Ok(Master {
            config,
            state: State::new(
                listeners.accepting(),
                listeners.workers() - listeners.accepting(),
                config.drain,
                config.boot,
            ),
            processes: BTreeMap::new(),
            listeners,
            worker,
            signals,
            mask,
            started: Instant::now(),
            changes: HashMap::new(),
            control,
            admin,
            manager: Manager::from_env(),
            upgrade: None,
            successor: None,
            questions: VecDeque::new(),
            last_question: 0,
            next_look: Some(Duration::ZERO),
            reloads: Reloads::new(unix_time()),
        })
    }

    fn run(&mut self, announce: &mut dyn FnMut()) -> io::Result<Outcome> {
        let mut actions = self.state.start(self.started.elapsed());
        loop {
            let mut events = Vec::new();
            for action in actions {
                match action {
                    Action::Announce => {
                        announce();
                        let pid = std::process::id();
                        self.manager.tell(&format!("READY=1\nMAINPID={pid}\n"));
                        if let Some(control) = &mut self.control {
                            control.publish();
                        }
                        if let Some(predecessor) = self.config.predecessor {
                            predecessor.retire();
                        }
                    }
                    Action::Finish(outcome) => return Ok(outcome),
                    action => events.extend(self.act(action)?),
                }
            }
            if events.is_empty() {
                events = self.wait()?;
            }
            actions = Vec::new();
            for event in events {
                let now = self.started.elapsed();
                actions.extend(self.state.on(event, now));
            }
        }
    }

    /// Carries one action out; an event, if that has an outcome at once.
    fn act(&mut self, action: Action) -> io::Result<Option<Event>> {
        match action {
            Action::Spawn { seat, id } => self.spawn(seat, id)?,
            Action::CloseListeners => {
                self.listeners.close();
                self.admin = None;
                if self.upgrade.is_none() && self.successor.is_none() {
                    self.manager.tell("STOPPING=1\n");
                }
            }
            Action::Terminate(id) => self.signal(id, Signal::SIGTERM),
            Action::Retire(id) => self.signal(id, Signal::SIGUSR1),
            Action::Kill(id) => self.signal(id, Signal::SIGKILL),
            Action::Prepare {
                id,
                reload,
                refresh,
            } => {
                let refresh = refresh.map(|since| since.min(self.reloads.refresh()));
                self.order(id, &Order::Prepare { reload, refresh });
            }
            Action::Refresh(since) => {
                self.reloads.pending = Some(since.min(self.reloads.refresh()));
            }
            Action::Commit(id, reload) => self.order(id, &Order::Commit { reload }),
            Action::Abort(id, reload, error) => self.order(id, &Order::Abort { reload, error }),
            Action::Reloaded(result) => self.reloaded(result),
            Action::Adopt { id, seat } => self.order(id, &Order::Adopt { seat }),
            Action::Release { id, seat } => self.order(id, &Order::Release { seat }),
            Action::StartUpgrade => return Ok(self.start_upgrade()),
            Action::StopUpgrade => {
                if let Some(pid) = self.upgrade.take() {
                    let _ = kill(pid, Signal::SIGKILL);
                }
            }
            Action::ReloadSuccessor => {
                if let Some(pid) = self.successor {
                    let _ = kill(pid, Signal::SIGHUP);
                }
            }
            Action::Upgraded(result) => {
                if let Some(control) = &mut self.control {
                    if result.is_ok() {
                        control.leave_behind();
                    }
                    control.answer_all(Request::Upgrade, &outcome(result));
                }
            }
            Action::Log(message) => eprintln!("surus: {message}"),
            Action::Announce | Action::Finish(_) => {}
        }
        Ok(None)
    }

    fn reloaded(&mut self, result: Result<(), String>) {
        match &result {
            Ok(()) => eprintln!("surus: reloaded"),
            Err(error) => eprintln!("surus: not reloaded, the old version goes on: {error}"),
        }
        self.reloads.note(&result);
        self.reloads.pending = None;
        if self.state.is_reload_continued() {
            return;
        }
        if let Some(control) = &mut self.control {
            control.answer_all(Request::Reload, &outcome(result));
        }
    }

    fn start_upgrade(&mut self) -> Option<Event> {
        let started = self
            .listeners
            .duplicate()
            .and_then(|sockets| self.config.program.start(sockets));
        match started {
            Ok(child) => {
                self.upgrade = i32::try_from(child.id()).ok().map(Pid::from_raw);
                None
            }
            Err(error) => {
                let path = self.config.program.path.display();
                Some(Event::UpgradeFailed(format!("{path}: {error}")))
            }
        }
    }

    /// Sleeps until something has happened.
    fn wait(&mut self) -> io::Result<Vec<Event>> {
        let next = [self.state.deadline(), self.question_due(), self.next_look];
        let timeout = match next.into_iter().flatten().min() {
            // Rounded up, or the last fraction of a millisecond would be spent spinning.
            Some(at) => {
                let left = at.saturating_sub(self.started.elapsed());
                PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
            }
            None => PollTimeout::NONE,
        };
        let mut fds = vec![PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        let channels = self.processes.values().filter_map(Process::channel);
        fds.extend(channels.map(|channel| PollFd::new(channel.as_fd(), PollFlags::POLLIN)));
        let control = self.control.iter().flat_map(Control::descriptors);
        let admin = self.admin.iter().flat_map(Admin::descriptors);
        fds.extend(
            control
                .chain(admin)
                .map(|fd| PollFd::new(fd, PollFlags::POLLIN)),
        );
        match poll(&mut fds, timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut events = Vec::new();
        let mut stop = false;
        let mut deaths = false;
        while let Some(signal) = self.signals.read_signal()? {
            match Signal::try_from(signal.ssi_signo as i32) {
                Ok(Signal::SIGCHLD) => deaths = true,
                Ok(Signal::SIGHUP) => events.push(Event::Reload(u64::MAX)),
                Ok(Signal::SIGUSR2) => events.push(Event::Upgrade),
                _ if self.is_successor(signal.ssi_pid) => {
                    self.successor = self.upgrade.take();
                    events.push(Event::TakenOver);
                }
                _ => stop = true,
            }
        }
        // The order matters. Reports before deaths: a worker that could not boot says why, and then exits. The signal
        // to stop before deaths: workers may have got it as well, from a terminal or a service manager.
        self.read_reports(&mut events);
        self.read_control(&mut events);
        self.read_admin();
        if stop {
            events.push(Event::Stop);
        }
        if deaths {
            self.reap(&mut events)?;
        }
        self.look_after_workers(&mut events);
        self.ask_workers();
        self.answer_questions();
        events.push(Event::Tick);
        Ok(events)
    }

    fn is_successor(&self, pid: u32) -> bool {
        self.upgrade
            .is_some_and(|upgrade| i32::try_from(pid) == Ok(upgrade.as_raw()))
    }

    fn read_reports(&mut self, events: &mut Vec<Event>) {
        let now = self.started.elapsed();
        for (&id, process) in &mut self.processes {
            for report in process.reports() {
                match report {
                    Report::Ready => events.push(Event::Ready(id)),
                    Report::BootFailed { error } => events.push(Event::BootFailed(id, error)),
                    Report::Prepared { reload } => events.push(Event::Prepared(id, reload)),
                    Report::PrepareFailed { reload, error } => {
                        events.push(Event::PrepareFailed(id, reload, error));
                    }
                    Report::Committed { reload } => events.push(Event::Committed(id, reload)),
                    Report::Retired => events.push(Event::Retired(id)),
                    Report::Status { question, status } => process.answered(question, status, now),
                    Report::Worn { why } => events.push(Event::Recycle(id, why)),
                    // Its successor has read the file as it is now.
                    Report::Changed { .. } if self.state.is_leaving(id) => {}
                    Report::Changed { file, stamp } => {
                        // Every worker sees it, and one reload is for all.
                        if self.changes.get(&file) != Some(&stamp) {
                            eprintln!("surus: {file} has changed");
                            events.push(Event::Reload(u64::MAX));
                            self.changes.insert(file, stamp);
                        }
                    }
                }
            }
        }
    }

    fn read_control(&mut self, events: &mut Vec<Event>) {
        let Some(control) = &mut self.control else {
            return;
        };
        for (client, request) in control.read() {
            match request {
                Request::Reload => events.push(Event::Reload(u64::MAX)),
                Request::Upgrade => events.push(Event::Upgrade),
                Request::Stop => {
                    events.push(Event::Stop);
                    control.answer(client, &outcome(Ok(())));
                }
                Request::Status => {
                    self.questions
                        .push_back(Question::new(Asker::Control(client)));
                }
            }
        }
    }

    /// Answers the clients whose question every worker has answered, or has had the time to.
    fn answer_questions(&mut self) {
        while let Some(asker) = self.answerable() {
            let status = self.status();
            match asker {
                Asker::Control(client) => {
                    if let Some(control) = &mut self.control {
                        control.answer(client, &status);
                    }
                }
                Asker::Admin(client, page) => self.answer_admin(client, page, &status),
            }
        }
    }

    fn reap(&mut self, events: &mut Vec<Event>) -> io::Result<()> {
        loop {
            let (pid, death) = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => (pid, Death::Exit(code)),
                Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, Death::Signal(signal.as_str())),
                Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return Ok(()),
                Ok(_) | Err(Errno::EINTR) => continue,
                Err(error) => return Err(error.into()),
            };
            if self.upgrade == Some(pid) {
                self.upgrade = None;
                events.push(Event::UpgradeFailed(format!("it {death}")));
                continue;
            }
            let of = |(_, process): &(&Id, &Process)| process.pid == pid;
            if let Some((&id, _)) = self.processes.iter().find(of) {
                self.processes.remove(&id);
                events.push(Event::Exited(id, death));
            }
        }
    }

    fn signal(&self, id: Id, signal: Signal) {
        if let Some(process) = self.processes.get(&id) {
            // Not reaped yet, so the number is still its own; ESRCH cannot be, and EPERM would be nothing to act on.
            let _ = kill(process.pid, signal);
        }
    }

    fn order(&mut self, id: Id, order: &Order) {
        if let Some(process) = self.processes.get(&id) {
            process.order(order);
        }
    }

    fn spawn(&mut self, seat: usize, id: Id) -> io::Result<()> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let master = getpid();
        match fork()? {
            ForkResult::Parent { child } => {
                self.processes
                    .insert(id, Process::new(child, ours, self.state.seats[seat].plain));
                Ok(())
            }
            ForkResult::Child => {
                drop(ours);
                std::process::exit(self.live(seat, theirs, master))
            }
        }
    }

    /// In the child.
    fn live(&mut self, index: usize, channel: UnixStream, master: Pid) -> i32 {
        if let Err(error) = self
            .config
            .identity
            .as_ref()
            .map_or(Ok(()), Identity::assume)
        {
            let error = format!("cannot become the user that workers run as: {error}");
            Channel::new(channel).send(&Report::BootFailed { error });
            return PANICKED;
        }
        // A worker must not outlive its master, however that one dies. If it died before this call, nothing will come.
        if prctl::set_pdeathsig(Signal::SIGKILL).is_err() || getppid() != master {
            return PANICKED;
        }
        // The other workers' channels: held open here, they would never end.
        self.processes.clear();
        if let Some(control) = self.control.take() {
            control.forget();
        }
        self.admin = None;
        if self.mask.thread_set_mask().is_err() {
            return PANICKED;
        }
        let (listeners, held) = self.listeners.take();
        let refresh = self.reloads.pending;
        let seat = Seat {
            index,
            listeners,
            held,
            refresh,
            tally: self.config.board.tally(index),
            master: Channel::new(channel),
        };
        catch_unwind(AssertUnwindSafe(|| (self.worker)(seat))).unwrap_or(PANICKED)
    }
}
