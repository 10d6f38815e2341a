//! A process in process mode: one isolate, one request at a time.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use http::Response;
use surus_master::{Channel, Order, Report, Seat};
use surus_zend::{BootError, Engine, Offloading, Request, ResponseBody, Script};

use crate::backend::{self, Isolates};
use crate::broken;
use crate::config::{Config, Entry};
use crate::dev::{self, Watcher};
use crate::process::{self, JobRunner, News, Purpose, Queue, Runs};
use crate::worker::{failed, Failure, GIVEN_UP, PHP_GRACE};
use crate::BOOT_FAILED;

/// Returns the exit code.
pub(crate) async fn run(config: &Config, engine: &Engine, queue: &Queue, mut seat: Seat) -> i32 {
    dev::begin();
    // Only workers hold these: when the last one has exited, this process ends, too.
    seat.held.clear();
    seat.listeners.clear();
    engine.enter_worker(config.app.preempt_after);
    let news = Rc::new(Reporter {
        master: RefCell::new(seat.master),
        limit: config.master.recycle.requests,
        requests: Cell::new(0),
        ready: Cell::new(false),
        worn_out: Cell::new(false),
    });
    let first = seat.index == config.workers;
    let served = match queue.purpose {
        Purpose::Requests => one_at_a_time(config, engine, queue, seat.refresh, first, &news).await,
        Purpose::Jobs => jobs(config, engine, queue, seat.refresh, &news).await,
    };
    match served {
        Ok(()) => 0,
        Err(error) if news.ready.get() => {
            surus_log::say!("{error}");
            i32::from(BOOT_FAILED)
        }
        Err(error) => failed(&news.master.borrow(), &error.to_string()),
    }
}

/// Reports to the master.
struct Reporter {
    master: RefCell<Channel>,
    /// Requests after which the process asks to be replaced.
    limit: Option<u64>,
    requests: Cell<u64>,
    ready: Cell<bool>,
    worn_out: Cell<bool>,
}

impl Reporter {
    fn tell(&self, news: News<'_>) {
        match news {
            News::Ready => {
                self.ready.set(true);
                self.master.borrow().send(&Report::Ready);
            }
            News::Served => {
                self.requests.set(self.requests.get() + 1);
                if let Some(why) = self.wear().filter(|_| !self.worn_out.replace(true)) {
                    self.master.borrow().send(&Report::Worn { why });
                }
            }
            News::Idle => {}
            News::Orders(retire) => {
                let mut master = self.master.borrow_mut();
                while let Ok(Some(orders)) = master.receive() {
                    if orders.contains(&Order::Retire) && !retire.replace(true) {
                        master.send(&Report::Retired);
                    }
                }
            }
        }
    }

    /// Why the process should be replaced, if it should.
    fn wear(&self) -> Option<String> {
        let requests = self.requests.get();
        if surus_zend::has_given_up() {
            return Some(GIVEN_UP.to_owned());
        }
        (self.limit? <= requests).then(|| format!("it has served {requests} requests"))
    }
}

/// `first`: this is the first of the processes, which all find the same errors.
async fn one_at_a_time(
    config: &Config,
    engine: &Engine,
    queue: &Queue,
    refresh: Option<u64>,
    first: bool,
    reporter: &Rc<Reporter>,
) -> Result<(), Failure> {
    if let Some(since) = refresh {
        engine.refresh(since).await?;
    }
    let why = "there are no processes for jobs: in process mode each request has a process of its own, where it can call \
               the job itself";
    surus_zend::offload_to(Offloading::Refused(why.to_owned()));
    surus_zend::without_websockets();
    let app = &config.app.alone();
    let (wait, drain) = (backend::limits(app).wait(), config.edge.drain + PHP_GRACE);
    let reporter = Rc::clone(reporter);
    match &app.entry {
        Entry::Coroutine { .. } => match backend::boot(engine, app).await {
            Ok(app) if app.has_timers() => {
                let error = "timers do not run in processes: serve the application in coroutine mode, without `processes`";
                return Err(BootError(error.to_owned()).into());
            }
            Ok(app) if config.dev => {
                let (app, source) = (Rc::new(app), config.app.source.clone());
                let files = Rc::clone(&app);
                let tell = watching(reporter, move || {
                    let mut files = files.files();
                    files.push(source.clone());
                    files
                });
                process::serve(queue, &*app, wait, drain, tell).await?;
            }
            Ok(app) => {
                let tell = move |news: News<'_>| reporter.tell(news);
                process::serve(queue, &app, wait, drain, tell).await?;
            }
            // Only at the start: in a reload the old version keeps serving, and the workers show the error.
            Err(error) if config.dev && refresh.is_none() => {
                if first {
                    surus_log::say!("{error}");
                }
                let source = config.app.source.clone();
                let tell = watching(reporter, move || dev::around(&source));
                process::serve(queue, &Broken(error.to_string()), wait, drain, tell).await?;
            }
            Err(error) => return Err(error.into()),
        },
        // PHP reads the files for each request.
        Entry::Classic { .. } | Entry::Worker { .. } => {
            let isolates = Isolates::new(engine, app)?;
            let tell = move |news: News<'_>| reporter.tell(news);
            process::serve(queue, &isolates.pool, wait, drain, tell).await?;
        }
    }
    Ok(())
}

/// Runs jobs of `Surus\offload()`.
async fn jobs(
    config: &Config,
    engine: &Engine,
    queue: &Queue,
    refresh: Option<u64>,
    reporter: &Rc<Reporter>,
) -> Result<(), Failure> {
    let why = "the job is already in another process, and runs all that it calls";
    surus_zend::offload_to(Offloading::Refused(why.to_owned()));
    if let Some(since) = refresh {
        engine.refresh(since).await?;
    }
    let app = config.app.for_jobs();
    let jobs = JobRunner::new(Isolates::new(engine, &app)?, &app);
    let drain = config.edge.drain + PHP_GRACE;
    let reporter = Rc::clone(reporter);
    let tell = move |news: News<'_>| reporter.tell(news);
    // A worker knows itself how long a job has waited.
    process::serve(queue, &jobs, Duration::MAX, drain, tell).await?;
    Ok(())
}

/// Between two requests, checks whether one of these files, or of those that the application has named, has changed.
fn watching(reporter: Rc<Reporter>, files: impl Fn() -> Vec<PathBuf>) -> impl Fn(News<'_>) {
    let watcher = RefCell::new(Watcher::default());
    move |news: News<'_>| {
        if matches!(news, News::Ready | News::Served | News::Idle) {
            let mut watcher = watcher.borrow_mut();
            if let Some(report) = watcher.look(|| files().into_iter().collect()) {
                reporter.master.borrow().send(&report);
            }
        }
        reporter.tell(news);
    }
}

/// Answers in place of an application that does not boot, until it does (development).
struct Broken(String);

impl Runs for Broken {
    async fn run(&self, request: Request, _: Option<Script>) -> Response<ResponseBody> {
        broken::response(&self.0, &request.headers).map(ResponseBody::full)
    }

    fn unfinished(&self) -> usize {
        0
    }
}
