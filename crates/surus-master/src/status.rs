//! The status of the master and its workers, and the questions to workers for it.

use std::time::{Duration, Instant};

use serde_json::{json, Map, Value};
use surus_log::Log;

use crate::admin::{self, Admin, Page};
use crate::board::Tally;
use crate::clients::ClientId;
use crate::executor::Master;
use crate::metrics;
use crate::process::unix_time;
use crate::state::{Life, Now};
use crate::upgrade::Predecessor;

/// How long workers have to answer before the client gets the status without their answers.
const PATIENCE: Duration = Duration::from_millis(300);

/// Seconds by which file times may be rounded, and clocks may differ.
const CLOCK_SLACK: u64 = 2;

/// The client that asks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asker {
    Control(ClientId),
    Admin(ClientId, Page),
}

/// A client that waits for the workers' answers.
#[derive(Debug)]
pub(crate) struct Question {
    asker: Asker,
    /// The question to the workers, once it was sent.
    asked: Option<(u64, Instant)>,
}

impl Question {
    pub(crate) fn new(asker: Asker) -> Self {
        Question { asker, asked: None }
    }
}

/// Results of reloads so far.
#[derive(Debug)]
pub(crate) struct Reloads {
    /// Unix time: OPcache has the current version of files that changed before it.
    refreshed: u64,
    /// For processes that boot a new version in the current reload: files may have changed since this time.
    pub(crate) pending: Option<u64>,
    done: u64,
    failed: u64,
    last: Value,
}

impl Reloads {
    pub(crate) fn new(now: u64) -> Self {
        Reloads {
            refreshed: now,
            pending: None,
            done: 0,
            failed: 0,
            last: Value::Null,
        }
    }

    /// The time since which OPcache may have missed changes. Called when a reload invalidates them.
    pub(crate) fn refresh(&mut self) -> u64 {
        let since = std::mem::replace(&mut self.refreshed, unix_time());
        since.saturating_sub(CLOCK_SLACK)
    }

    pub(crate) fn note(&mut self, result: &Result<(), String>) {
        match result {
            Ok(()) => self.done += 1,
            Err(_) => self.failed += 1,
        }
        self.last = json!({
            "at": unix_time(),
            "ok": result.is_ok(),
            "error": result.as_ref().err(),
        });
    }
}

impl Master<'_> {
    /// When the next client must be answered.
    pub(crate) fn question_due(&self) -> Option<Now> {
        let patience = |at: Instant| (at + PATIENCE).saturating_duration_since(self.started);
        let questions = self.questions.iter().filter_map(|question| question.asked);
        questions.map(|(_, at)| patience(at)).min()
    }

    /// Asks the workers on behalf of clients.
    pub(crate) fn ask_workers(&mut self) {
        if self
            .questions
            .iter()
            .all(|question| question.asked.is_some())
        {
            return;
        }
        let number = self.ask_all();
        for question in &mut self.questions {
            question.asked.get_or_insert((number, Instant::now()));
        }
    }

    /// Sends a question to all workers. Returns its number.
    pub(crate) fn ask_all(&mut self) -> u64 {
        self.last_question += 1;
        let now = self.started.elapsed();
        for process in self.processes.values_mut() {
            process.ask(self.last_question, now);
        }
        self.last_question
    }

    /// The client that can be answered next.
    pub(crate) fn answerable(&mut self) -> Option<Asker> {
        let (number, at) = self.questions.front()?.asked?;
        let starting = |id| matches!(self.state.processes.get(id), Some(process) if process.life == Life::Starting);
        let all = self
            .processes
            .iter()
            .all(|(id, process)| process.plain || process.answered >= number || starting(id));
        if !all && at.elapsed() < PATIENCE {
            return None;
        }
        self.questions.pop_front().map(|question| question.asker)
    }

    pub(crate) fn read_admin(&mut self) {
        let asked = self.admin.as_mut().map(Admin::read).unwrap_or_default();
        let askers = asked.into_iter().map(|(id, page)| Asker::Admin(id, page));
        self.questions.extend(askers.map(Question::new));
    }

    pub(crate) fn answer_admin(&mut self, id: ClientId, page: Page, status: &Value) {
        let (content_type, body) = match page {
            Page::Status => {
                let mut status = status.clone();
                admin::without_queries(&mut status);
                ("application/json", status.to_string())
            }
            Page::Metrics => {
                let seats = (0..self.state.seats.len()).filter(|&at| !self.state.seats[at].plain);
                let tallies: Vec<Tally> = seats.map(|at| self.config.board.tally(at)).collect();
                let text = metrics::text(status, &tallies);
                ("text/plain; version=0.0.4; charset=utf-8", text)
            }
        };
        if let Some(admin) = &mut self.admin {
            admin.answer(id, content_type, &body);
        }
    }

    /// The status of a seat and its process, if there is one.
    fn described(&self, seat: usize, own: Value) -> Value {
        let known = &self.state.seats[seat];
        let mut worker = json!({
            "worker": seat + 1,
            "kind": if known.plain { "process" } else { "worker" },
            "restarts": known.restarts,
            "last_restart": known.reason,
        });
        // The counters belong to the seat: they outlive its process.
        let counted = (!known.plain).then(|| self.config.board.tally(seat).json());
        if let Some(worker) = worker.as_object_mut() {
            for part in counted.iter().chain([&own]).filter_map(Value::as_object) {
                worker.extend(part.clone());
            }
        }
        worker
    }

    pub(crate) fn status(&self) -> Value {
        let now = self.started.elapsed();
        let mut workers: Vec<Value> = self
            .state
            .processes
            .iter()
            .filter_map(|(id, process)| {
                let child = self.processes.get(id)?;
                let waited = child.asked.map(|(_, since)| now.saturating_sub(since));
                let state = match process.life {
                    Life::Starting => "starting",
                    Life::Ready if waited.is_some_and(|time| time >= PATIENCE) => "stuck",
                    Life::Ready => "ready",
                    Life::Leaving { .. } => "leaving",
                };
                let mut own = json!({
                    "pid": child.pid.as_raw(),
                    "state": state,
                    "uptime_s": now.saturating_sub(process.since).as_secs_f64(),
                    "rss_bytes": child.resident(),
                });
                if let (Some(own), Some(told)) = (own.as_object_mut(), child.status.as_object()) {
                    own.extend(told.clone());
                }
                Some(self.described(process.seat, own))
            })
            .collect();
        let empty = self.state.seats.iter().enumerate();
        let empty = empty.filter(|(_, seat)| seat.current.is_none() && !seat.asleep);
        let seats = empty.map(|(seat, _)| seat);
        workers.extend(seats.map(|seat| self.described(seat, json!({"state": "waiting"}))));
        let mut status = Map::new();
        status.extend(self.config.about.as_object().cloned().unwrap_or_default());
        status.insert("pid".to_owned(), json!(std::process::id()));
        status.insert("uptime_s".to_owned(), json!(now.as_secs_f64()));
        let waits_for = self.state.awaited();
        status.insert(
            "reloads".to_owned(),
            json!({
                "done": self.reloads.done,
                "failed": self.reloads.failed,
                "last": self.reloads.last,
                "waits_for": waits_for.as_ref().map(|(what, _)| what),
                "gives_up_in_s": waits_for.map(|(_, until)| until.saturating_sub(now).as_secs_f64()),
            }),
        );
        let predecessor = self.config.predecessor.as_ref();
        let predecessor = predecessor.and_then(Predecessor::pid);
        status.insert("ending".to_owned(), json!(self.state.is_ending()));
        status.insert("predecessor".to_owned(), json!(predecessor));
        let admin = self.admin.as_ref().and_then(Admin::address);
        status.insert("admin".to_owned(), json!(admin));
        let shared = (self.config.shared_memory)();
        status.insert("shared_memory".to_owned(), shared);
        status.insert(
            "log_lines_dropped".to_owned(),
            json!({
                "error": surus_log::dropped(Log::Error),
                "access": surus_log::dropped(Log::Access),
            }),
        );
        status.insert("jobs".to_owned(), self.config.jobs.json());
        status.insert("processes".to_owned(), self.companions.json(now));
        status.insert("workers".to_owned(), Value::Array(workers));
        Value::Object(status)
    }
}
