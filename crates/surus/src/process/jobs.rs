//! Jobs of `Surus\offload()`: a worker passes each to a free process, which runs it as a classic request.
//!
//! The processes start with the first job. Each job has a fresh PHP, so nothing of one is left for the next. If it does
//! not end when it must, its process is killed.

use std::any::Any;
use std::cell::Cell;
use std::future::Future;
use std::io::{self, Write};
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::{Response, StatusCode};
use surus_zend::{NoAnswer, Offloading, Request, ResponseBody, Script};
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use super::guard::Guard;
use super::server::Runs;
use super::wire::{put, Frames, DATA, END, HEAD, PROCESS};
use super::{client, head, Queue};
use crate::backend::Isolates;
use crate::config::App;

/// A process answers at the end of the job's time at the latest; this is the additional time for its answer to arrive.
const GRACE: Duration = Duration::from_secs(1);

/// Jobs of a worker that run or wait for a process.
const MOST: usize = 1024;

/// How a worker's jobs reach the processes of this queue. `wake` is called with the first job.
pub(crate) fn offloading(queue: &Queue, app: &App, wake: impl Fn() + 'static) -> Offloading {
    let jobs = Rc::new(Jobs {
        address: queue.address(),
        time: app.offload_timeout,
        processes: app.offload_processes,
        running: Cell::new(0),
        woken: Cell::new(false),
    });
    Offloading::Elsewhere(Rc::new(move |name, payload| {
        if !jobs.woken.replace(true) {
            wake();
        }
        let (jobs, name) = (Rc::clone(&jobs), name.to_owned());
        Box::pin(async move { jobs.run(&name, payload).await })
    }))
}

struct Jobs {
    address: std::path::PathBuf,
    time: Option<Duration>,
    processes: usize,
    running: Cell<usize>,
    woken: Cell<bool>,
}

/// Counts a job as long as its answer is awaited.
struct Place<'a>(&'a Cell<usize>);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl Jobs {
    async fn run(&self, name: &str, payload: Bytes) -> Result<Bytes, NoAnswer> {
        if self.running.get() >= MOST {
            let why = format!("{MOST} jobs of this worker run or wait for a process");
            return Err(NoAnswer::Failed(why));
        }
        self.running.set(self.running.get() + 1);
        let _place = Place(&self.running);
        let mut process = None;
        match self.answer(name, payload, &mut process).await {
            Ok(answer) => answer,
            Err(error) => Err(NoAnswer::Failed(match process {
                Some(process) => format!("the process of {name}, {process}, has died"),
                None => format!("no process has taken {name}: {error}"),
            })),
        }
    }

    async fn within<T>(
        &self,
        more: Duration,
        what: impl Future<Output = io::Result<T>>,
    ) -> io::Result<Option<T>> {
        match self.time {
            Some(time) => timeout(time.saturating_add(more), what)
                .await
                .ok()
                .transpose(),
            None => what.await.map(Some),
        }
    }

    /// `process` becomes the id of the process that has taken the job.
    async fn answer(
        &self,
        name: &str,
        payload: Bytes,
        process: &mut Option<u32>,
    ) -> io::Result<Result<Bytes, NoAnswer>> {
        let time = self.time.unwrap_or_default();
        let out = client::first(&Request::job(name, payload), None);
        let (stream, sent) = client::begin(&self.address, &out)?;
        // Both halves stay open until the answer is there: closing them gives the job up.
        let (input, mut output) = stream.into_split();
        let mut frames = Frames::new(input);
        let taken = self.within(Duration::ZERO, async {
            output.write_all(&out[sent..]).await?;
            frames.next().await
        });
        match taken.await? {
            None => {
                let count = self.processes;
                return Ok(Err(NoAnswer::Late(format!(
                    "{name} was not begun within {time:?}: all {count} processes had other jobs"
                ))));
            }
            Some((PROCESS, id)) => {
                *process = id.as_ref().try_into().ok().map(u32::from_le_bytes);
            }
            Some(_) => return Err(io::ErrorKind::InvalidData.into()),
        }
        let late = NoAnswer::Late(format!(
            "{name} was not done within {time:?}, and was ended"
        ));
        let Some((status, body)) = self.within(GRACE, response(&mut frames)).await? else {
            return Ok(Err(late));
        };
        Ok(match status {
            StatusCode::GATEWAY_TIMEOUT => Err(late),
            _ => Ok(body),
        })
    }
}

async fn response(frames: &mut Frames) -> io::Result<(StatusCode, Bytes)> {
    let (HEAD, head) = frames.next().await? else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let (response, ..) = head::read_response(head)?;
    let mut body = BytesMut::new();
    loop {
        match frames.next().await? {
            (DATA, bytes) => body.extend_from_slice(&bytes),
            (END, _) => return Ok((response.status(), body.freeze())),
            _ => return Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

/// The process's side.
pub(crate) struct JobRunner {
    isolates: Isolates,
    time: Option<Duration>,
}

impl JobRunner {
    pub(crate) fn new(isolates: Isolates, app: &App) -> Self {
        JobRunner {
            isolates,
            time: app.offload_timeout,
        }
    }
}

impl Runs for JobRunner {
    fn begin(&self, stream: &std::os::unix::net::UnixStream) -> io::Result<Box<dyn Any>> {
        let guard = Guard::new(stream, self.time)?;
        let mut out = Vec::new();
        put(&mut out, PROCESS, &std::process::id().to_le_bytes());
        (&*stream).write_all(&out)?;
        Ok(Box::new(guard))
    }

    async fn run(&self, request: Request, _: Option<Script>) -> Response<ResponseBody> {
        let begun = Instant::now();
        let mut answer = self.isolates.pool.call_job(request).await;
        // A job may set any status, which means nothing.
        let late = self.time.is_some_and(|time| begun.elapsed() >= time);
        if !late && answer.status() == StatusCode::GATEWAY_TIMEOUT {
            *answer.status_mut() = StatusCode::OK;
        }
        answer
    }

    fn unfinished(&self) -> usize {
        let (alive, idle) = self.isolates.pool.isolates();
        alive - idle
    }
}
