//! A worker: one thread, one event loop, one application.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use surus_edge::Edge;
use surus_master::{Channel, Report, Seat};
use surus_zend::{BootError, Engine, IsolateLimits, Offloading};
use tokio::signal::unix::{signal, SignalKind};
use tokio::sync::mpsc;
use tokio::task::{spawn_local, LocalSet};

use crate::alone;
use crate::backend::{
    self, Classic, Coroutine, Counted, Files, Isolates, Php, Remote, Scripts, Worker,
};
use crate::config::{App, Config, Entry, Reset};
use crate::dev;
use crate::event_loop;
use crate::nodes;
use crate::open_files;
use crate::orders::ControlChannel;
use crate::process::{self, Processes, Purpose, Queue};
use crate::pusher::{self, WithPusher};
use crate::queue;
use crate::recycle;
use crate::BOOT_FAILED;

/// How long PHP may take for `finally` blocks and destructors after the edge is drained. The master waits longer.
pub(crate) const PHP_GRACE: Duration = Duration::from_secs(3);

/// Runs in the child, after the fork. Returns its exit code. With a `queue`, PHP has its own processes, whose seats
/// come after those of the workers.
pub(crate) fn run(config: &Config, engine: &Engine, queue: Option<&Queue>, seat: Seat) -> i32 {
    let runtime = match event_loop::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            return failed(
                &seat.master,
                &format!("cannot start an event loop: {error}"),
            );
        }
    };
    let code = LocalSet::new().block_on(&runtime, live(config, engine, queue, seat));
    // Helper threads may be blocked in a DNS lookup, whose answer is not needed any more.
    runtime.shutdown_background();
    code
}

/// Reports why it cannot serve.
pub(crate) fn failed(master: &Channel, error: &str) -> i32 {
    let error = error.to_owned();
    master.send(&Report::BootFailed { error });
    i32::from(BOOT_FAILED)
}

/// Only the master handles signals of operators and their scripts, even if all processes get them: by Ctrl-C, from a
/// service manager, by `killall`. Here they are caught permanently, and ignored.
fn leave_to_master() -> io::Result<()> {
    for kind in [
        SignalKind::interrupt(),
        SignalKind::quit(),
        SignalKind::hangup(),
        SignalKind::user_defined1(),
        SignalKind::user_defined2(),
    ] {
        let _ = signal(kind)?;
    }
    Ok(())
}

async fn live(config: &Config, engine: &Engine, queue: Option<&Queue>, seat: Seat) -> i32 {
    if let Err(error) = leave_to_master() {
        return failed(&seat.master, &format!("cannot catch signals: {error}"));
    }
    dev::begin();
    let app = &config.app;
    app.room.clone().enter();
    match seat.master.another() {
        Ok(master) => queue::in_server(app, master),
        Err(error) => return failed(&seat.master, &format!("no channel to the master: {error}")),
    }
    if let Some(queue) = queue.filter(|_| seat.index >= config.workers) {
        surus_zend::reach_channels();
        share_channels(app, false);
        return alone::run(config, engine, queue, seat).await;
    }
    surus_zend::enter_channels();
    share_channels(app, true);
    surus_zend::beat_event_streams(app.heartbeat.unwrap_or_default());
    let offloading = match offloading(app, queue, &seat.master) {
        Ok(offloading) => offloading,
        Err(error) => return failed(&seat.master, &format!("no channel to the master: {error}")),
    };
    surus_zend::offload_to(offloading);
    let Some(queue) = queue.filter(|queue| queue.purpose == Purpose::Requests) else {
        engine.enter_worker(app.preempt_after);
        engine.keep_connections(&app.persistent);
        if app.persistent_reset == Reset::Changed {
            engine.trust_texts();
        }
        if let Some(Err(error)) = app.blocking_threshold.map(surus_zend::detect_stalls) {
            surus_log::say!("calls that block the event loop are not detected: {error}");
        }
        return match &app.entry {
            Entry::Coroutine { .. } => match Coroutine::boot(engine, app).await {
                Err(error) if config.dev => {
                    let backend = Coroutine::empty(engine, app);
                    serve(config, engine, seat, Ok::<_, Failure>(backend), Some(error)).await
                }
                backend => serve(config, engine, seat, backend, None).await,
            },
            Entry::Worker { .. } => match Worker::boot(engine, app).await {
                Err(error) if config.dev => {
                    let backend = Worker::empty(engine, app);
                    serve(config, engine, seat, backend, Some(error)).await
                }
                backend => serve(config, engine, seat, backend, None).await,
            },
            Entry::Classic { front, .. } => {
                let backend = Isolates::new(engine, app)
                    .map_err(Into::into)
                    .and_then(|isolates| classic(app, front, isolates));
                serve(config, engine, seat, backend, None).await
            }
        };
    };
    let processes = Processes::new(queue, &backend::limits(app));
    match &app.entry {
        Entry::Coroutine { .. } | Entry::Worker { .. } => {
            let backend = Ok::<_, Failure>(Remote::new(processes, app));
            serve(config, engine, seat, backend, None).await
        }
        Entry::Classic { front, .. } => {
            let backend = classic(app, front, processes);
            serve(config, engine, seat, backend, None).await
        }
    }
}

/// With other servers, if that is configured. `listens`: this process has clients.
fn share_channels(app: &App, listens: bool) {
    let Some((url, hub)) = app.channels_redis.as_ref().zip(surus_zend::channels()) else {
        return;
    };
    if let Err(error) = nodes::share(url, &hub, listens) {
        surus_log::say!("channels are not shared: {error}");
    }
}

/// Where jobs of this worker run.
fn offloading(app: &App, queue: Option<&Queue>, master: &Channel) -> io::Result<Offloading> {
    let Some(queue) = queue.filter(|queue| queue.purpose == Purpose::Jobs) else {
        let why = "there are no processes for jobs: set offload_processes of the application";
        return Ok(Offloading::Refused(why.to_owned()));
    };
    let master = master.another()?;
    Ok(process::offloading(queue, app, move || {
        master.send(&Report::Wake);
    }))
}

pub(crate) type Failure = Box<dyn std::error::Error>;

fn classic<S: Scripts>(app: &App, front: &str, scripts: S) -> Result<Classic<S>, Failure> {
    Ok(Classic::new(app, front, scripts)?)
}

/// Serves with the backend, or reports why there is none. Returns the exit code.
async fn serve<B: Php>(
    config: &Config,
    engine: &Engine,
    seat: Seat,
    backend: Result<B, impl std::fmt::Display>,
    broken: Option<BootError>,
) -> i32 {
    let backend = match backend {
        Ok(backend) => backend,
        Err(error) => return failed(&seat.master, &error.to_string()),
    };
    match serve_with(config, engine, seat, backend, broken).await {
        Ok(()) => 0,
        Err(error) => {
            surus_log::say!("{error}");
            i32::from(BOOT_FAILED)
        }
    }
}

async fn serve_with<B: Php>(
    config: &Config,
    engine: &Engine,
    seat: Seat,
    backend: B,
    broken: Option<BootError>,
) -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let backend = Rc::new(backend);
    let counted = Rc::new(Counted::new(Rc::clone(&backend), seat.tally));
    if let Some(error) = broken {
        // The error is the same for every worker.
        if seat.index == 0 {
            surus_log::say!("{error}");
        }
        counted.set_broken(Some(error.to_string()));
    }
    let files = Rc::new(Files::new(Rc::clone(&counted), &config.app)?);
    let front = Rc::new(WithPusher::new(files, config));
    let mut limits = config.edge.clone();
    limits.connections = open_files::connections(limits.connections);
    let edge = Edge::new(front, limits, config.settings.clone());
    let (intake, changes) = mpsc::unbounded_channel();
    let orders = ControlChannel::new(
        engine,
        config.dev,
        Rc::clone(&backend),
        Rc::clone(&counted),
        seat.master,
        seat.listeners,
        intake,
    );
    let orders = Rc::new(orders);
    orders.report(&Report::Ready);
    backend.start_timers();
    let following = spawn_local(Rc::clone(&orders).follow());
    let watched = Rc::clone(&orders);
    let wearing = spawn_local(async move {
        surus_zend::giving_up().await;
        let why = GIVEN_UP.to_owned();
        watched.report(&Report::Worn { why });
    });
    if config.dev {
        spawn_local(dev::watch(
            Rc::clone(&backend),
            Rc::clone(&counted),
            Rc::clone(&orders),
            config.app.source.clone(),
        ));
    }
    let limits = config.app.isolate_limits;
    let is_here = matches!(config.app.entry, Entry::Coroutine { .. }) && backend.has_isolates();
    if is_here && limits != IsolateLimits::default() {
        spawn_local(recycle::watch(
            limits,
            (seat.index, config.workers),
            Rc::clone(&backend),
            Rc::clone(&counted),
            Rc::clone(&orders),
        ));
    }
    let ended = Rc::new(Cell::new(None));
    let (ending, resting) = (Rc::clone(&ended), Rc::clone(&backend));
    // The master says when to accept: see `Order::Adopt`.
    let drained = surus_edge::serve(edge, Vec::new(), changes, async {
        terminate.recv().await;
        ending.set(Some(Instant::now()));
        pusher::rest();
        resting.stop_timers();
        surus_zend::leave_channels();
        surus_zend::end_event_streams();
        counted.leave();
        orders.close_spares();
    })
    .await?;
    if drained.aborted > 0 {
        surus_log::say!(
            "{} connections were closed before their requests ended",
            drained.aborted
        );
    }
    finish(&*backend, ended.get().map(|at| at + config.edge.drain)).await;
    pusher::settle().await;
    queue::settle().await;
    following.abort();
    wearing.abort();
    Ok(())
}

/// Reason for a replacement: files of an abandoned isolate stay open until the process exits.
pub(crate) const GIVEN_UP: &str = "an isolate of it was given up";

/// After the drain: lets PHP finish requests whose clients have disconnected; until `drained`, what no client waits for anyway.
async fn finish(backend: &impl Php, drained: Option<Instant>) {
    let soon = Instant::now() + PHP_GRACE;
    while backend.unfinished() > 0 {
        let owed = drained.filter(|_| surus_zend::owed() > 0);
        if Instant::now() > owed.map_or(soon, |drained| soon.max(drained)) {
            surus_log::say!("{} requests did not end in time", backend.unfinished());
            return;
        }
        // Polling is good enough in a worker that is about to exit.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
