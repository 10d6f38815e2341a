//! A worker's life: one thread, one event loop, one application.

use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use surus_edge::{AccessLog, Edge};
use surus_master::Seat;
use surus_zend::Engine;
use tokio::signal::unix::{signal, SignalKind};
use tokio::task::LocalSet;

use crate::backend::{self, Classic, Coroutine, Php, Remote};
use crate::config::{Config, Entry};
use crate::process::{self, Line, Processes};
use crate::BOOT_FAILED;

/// How long PHP may take for its `finally` blocks and destructors once the edge is drained. The master waits longer.
const PHP_GRACE: Duration = Duration::from_secs(3);

/// Runs in the child, after the fork. Returns its exit code. With a `line`, PHP has processes of its own: the seats behind
/// those of the workers.
pub(crate) fn run(config: &Config, engine: &Engine, line: Option<&Line>, mut seat: Seat) -> i32 {
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            seat.boot_failed(&format!("cannot start an event loop: {error}"));
            return i32::from(BOOT_FAILED);
        }
    };
    let result = LocalSet::new().block_on(&runtime, live(config, engine, line, &mut seat));
    // Helper threads may sit in a DNS lookup; nobody waits for its answer any more.
    runtime.shutdown_background();
    match result {
        Ok(()) => 0,
        Err(error) => {
            // Goes nowhere if the worker has already reported that it is ready.
            seat.boot_failed(&error.to_string());
            i32::from(BOOT_FAILED)
        }
    }
}

async fn live(
    config: &Config,
    engine: &Engine,
    line: Option<&Line>,
    seat: &mut Seat,
) -> Result<(), Box<dyn std::error::Error>> {
    let app = &config.app;
    let Some(line) = line else {
        engine.enter_worker(app.preempt_after);
        return match &app.entry {
            Entry::Coroutine { script } => {
                let backend = Coroutine::boot(engine, script, app).await?;
                Ok(serve(config, seat, backend).await?)
            }
            Entry::Classic { root, front } => {
                let backend = Classic::new(root, front, app, backend::isolates(engine, app)?)?;
                Ok(serve(config, seat, backend).await?)
            }
        };
    };
    if seat.index >= config.workers {
        return process(config, engine, line, seat).await;
    }
    let processes = Processes::new(line, &backend::limits(app));
    match &app.entry {
        Entry::Coroutine { .. } => serve(config, seat, Remote::new(processes, app)).await?,
        Entry::Classic { root, front } => {
            serve(config, seat, Classic::new(root, front, app, processes)?).await?;
        }
    }
    Ok(())
}

/// A process with one request at a time.
async fn process(
    config: &Config,
    engine: &Engine,
    line: &Line,
    seat: &mut Seat,
) -> Result<(), Box<dyn std::error::Error>> {
    // Held by workers only: when the last one has gone, there is nothing more to do.
    seat.held.clear();
    engine.enter_worker(config.app.preempt_after);
    let app = &config.app.alone();
    let (wait, drain) = (backend::limits(app).wait(), config.edge.drain + PHP_GRACE);
    match &app.entry {
        Entry::Coroutine { script } => {
            let app = backend::boot(engine, script, app).await?;
            process::serve(line, &app, wait, drain, || seat.ready()).await?;
        }
        Entry::Classic { .. } => {
            let isolates = backend::isolates(engine, app)?;
            process::serve(line, &isolates, wait, drain, || seat.ready()).await?;
        }
    }
    Ok(())
}

async fn serve<B: Php>(config: &Config, seat: &mut Seat, backend: B) -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    // Ctrl-C reaches the whole process group. It is the master's to act on, so here it is caught and dropped.
    let _interrupt = signal(SignalKind::interrupt())?;
    let access_log = config.access_log.then(AccessLog::stdout);
    let backend = Rc::new(backend);
    let edge = Edge::new(Rc::clone(&backend), config.edge.clone(), access_log);
    let listeners = std::mem::take(&mut seat.listeners);
    seat.ready();
    let drained = surus_edge::serve(edge, listeners, async {
        terminate.recv().await;
    })
    .await?;
    if drained.aborted > 0 {
        eprintln!(
            "surus: {} connections were cut off unfinished",
            drained.aborted
        );
    }
    finish(&*backend).await;
    Ok(())
}

/// After the drain: lets PHP end the requests whose clients have left.
async fn finish(backend: &impl Php) {
    let begun = Instant::now();
    while backend.unfinished() > 0 {
        if begun.elapsed() > PHP_GRACE {
            eprintln!("surus: {} requests did not end", backend.unfinished());
            return;
        }
        // A worker that is about to end may look once in a while.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
