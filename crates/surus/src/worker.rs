//! A worker's life: one thread, one event loop, one application.

use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use surus_edge::{AccessLog, Edge};
use surus_master::Seat;
use surus_zend::Engine;
use tokio::signal::unix::{signal, SignalKind};
use tokio::task::LocalSet;

use crate::backend::{Classic, Coroutine, Php};
use crate::config::{Config, Entry};
use crate::BOOT_FAILED;

/// How long PHP may take for its `finally` blocks and destructors once the edge is drained. The master waits longer.
const PHP_GRACE: Duration = Duration::from_secs(3);

/// Runs in the child, after the fork. Returns its exit code.
pub(crate) fn run(config: &Config, engine: &Engine, mut seat: Seat) -> i32 {
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
    let result = LocalSet::new().block_on(&runtime, live(config, engine, &mut seat));
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
    seat: &mut Seat,
) -> Result<(), Box<dyn std::error::Error>> {
    engine.enter_worker(config.app.preempt_after);
    engine.self_test().await?;
    match &config.app.entry {
        Entry::Coroutine { script } => {
            serve(
                config,
                seat,
                Coroutine::boot(engine, script, &config.app).await?,
            )
            .await?;
        }
        Entry::Classic { root, front } => {
            serve(
                config,
                seat,
                Classic::start(engine, root, front, &config.app)?,
            )
            .await?;
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
