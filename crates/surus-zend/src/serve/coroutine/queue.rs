//! Runs jobs of queues: each as a request that nobody has sent, in a fiber of the application.

use std::{rc::Rc, time::Duration};

use bytes::Bytes;

use super::{App, Coroutine};
use crate::{
    exchange::{
        request::Request,
        timers::{QueuedJob, Run},
        Exchange,
    },
    serve::task::Outcome,
};

/// How a run of a job has ended.
#[derive(Debug)]
pub enum JobEnd {
    /// With this answer of PHP, which is JSON.
    Said(String),
    /// It was cancelled: its time was over, or the worker ends.
    Cancelled,
    /// Without an answer: a fatal error, or a lost stack.
    Fatal,
    /// `exit`.
    Exited,
    /// It was not begun: the application does not boot, or does not have this queue any more.
    NotBegun,
}

impl Coroutine {
    /// The queues that the current version runs, as PHP has declared them, in JSON.
    #[must_use]
    pub fn queues(&self) -> Option<String> {
        self.app.version.borrow().queues.clone()
    }

    /// Runs a job to its end. `head` and `payload` are for PHP.
    pub async fn run_job(
        &self,
        queue: &str,
        head: String,
        payload: Bytes,
        limit: Option<Duration>,
    ) -> JobEnd {
        self.app.run_job(queue, head, payload, limit).await
    }
}

impl App {
    async fn run_job(
        self: &Rc<Self>,
        queue: &str,
        head: String,
        payload: Bytes,
        limit: Option<Duration>,
    ) -> JobEnd {
        let Some(version) = self.current().await else {
            return JobEnd::NotBegun;
        };
        if version.queues.is_none() || self.ends.get() {
            return JobEnd::NotBegun;
        }
        let exchange = Exchange::new(Request::of_queue(queue), None, self.engine.dev);
        exchange
            .timers
            .job
            .replace(Some(QueuedJob { head, payload }));
        let outcome = self
            .run_clientless(&version, &exchange, 0, Run::Queued, limit)
            .await;
        match (exchange.timers.ending.take(), outcome) {
            (_, None) => JobEnd::NotBegun,
            (Some(said), Some(Outcome::Ok | Outcome::Exception)) => JobEnd::Said(said),
            (_, Some(Outcome::Cancelled)) => JobEnd::Cancelled,
            (_, Some(Outcome::Fatal | Outcome::Abandoned)) => JobEnd::Fatal,
            (None, Some(Outcome::Ok | Outcome::Exception)) => JobEnd::Exited,
        }
    }
}
