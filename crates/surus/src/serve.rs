//! The master's side of `surus serve`.

use std::process::ExitCode;
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};
use serde_json::{json, Value};
use surus_edge::LogFormat;
use surus_log::{Format, Log, Writer};
use surus_master::{
    Address, Board, Failure, Inherited, JobCounts, Listeners, Outcome, Predecessor, Program,
};
use surus_zend::{Engine, EngineConfig, SelfTest};

use crate::cli::ServeArgs;
use crate::config::{Config, Entry, PROCESSES};
use crate::process::{Purpose, Queue, SLEEP};
use crate::pusher;
use crate::{
    control, dev, environment, event_loop, inspect, log, open_files, preflight, queue, sidecar,
    worker, BOOT_FAILED, MISCONFIGURED,
};

/// Time that workers get in addition to their own drain before they are killed, so that PHP can finish.
const GRACE: Duration = Duration::from_secs(5);

/// Why the server does not start.
pub(crate) struct Refusal {
    code: u8,
    why: String,
}

impl Refusal {
    /// An error that the operator can fix.
    pub(crate) fn misconfigured(why: impl ToString) -> Self {
        Refusal {
            code: MISCONFIGURED,
            why: why.to_string(),
        }
    }

    fn failed(why: impl ToString) -> Self {
        Refusal {
            code: BOOT_FAILED,
            why: why.to_string(),
        }
    }
}

/// `inherited` must be taken before anything else opens a file.
pub(crate) fn run(
    arguments: &ServeArgs,
    inherited: Inherited,
    predecessor: Option<Predecessor>,
) -> ExitCode {
    let teller = predecessor.clone();
    let served = Config::resolve(arguments)
        .map_err(Refusal::misconfigured)
        .and_then(|config| serve(&config, inherited, predecessor));
    match served {
        Ok(code) => code,
        Err(refusal) => {
            if let Some(predecessor) = teller {
                predecessor.tell(&refusal.why);
            }
            surus_log::complain(format_args!("{}", refusal.why));
            ExitCode::from(refusal.code)
        }
    }
}

fn serve(
    config: &Config,
    inherited: Inherited,
    predecessor: Option<Predecessor>,
) -> Result<ExitCode, Refusal> {
    // The signal of a script that rotates logs must not kill a starting server. The master reads it later.
    let _ = SigSet::from(Signal::SIGUSR1).thread_block();
    logs(config).map_err(Refusal::misconfigured)?;
    open_files::raise();
    let ini = preflight::check(config)
        .map_err(|wrong| Refusal::misconfigured(wrong.join("\nsurus: ")))?;
    let program = Program::this()
        .map_err(|error| Refusal::failed(format!("cannot tell which program this is: {error}")))?;
    // Before the fork, so that extensions are loaded once and the OPcache is shared.
    let engine = Engine::start(&EngineConfig {
        ini,
        dev: config.dev,
        in_turn: matches!(config.app.entry, Entry::Worker { .. }),
        server_name: config.app.server_name.clone(),
        store: usize::try_from(config.app.shared_memory).unwrap_or(usize::MAX),
        environment: Some(environment::of(config)),
    })
    .map_err(Refusal::failed)?;
    preflight::misspelt_settings(config, &engine);
    let processes = processes(config, &engine).map_err(Refusal::failed)?;
    let mut listeners = surus_master::bind(
        &config.listen,
        config.workers,
        inherited,
        predecessor.is_some(),
    )
    .map_err(Refusal::misconfigured)?;
    let queue = match processes {
        None => queue_of_jobs(config, &mut listeners),
        Some(count) => {
            let time = if config.dev { dev::LOOK } else { SLEEP };
            let (queue, held) = Queue::new(Purpose::Requests, time).map_err(|error| {
                Refusal::failed(format!("no socket for PHP's processes: {error}"))
            })?;
            listeners.add_silent(count);
            listeners.hold(held);
            Some(queue)
        }
    };
    let ready = ready_line(config, processes, listeners.addresses());
    let counters = Board::cells(config.workers);
    let (cells, rest) = surus_zend::shared_counters(counters + surus_log::CELLS + JobCounts::CELLS)
        .map_err(|error| Refusal::failed(format!("no memory to share with workers: {error}")))?
        .split_at(counters);
    let (dropped, jobs) = rest.split_at(surus_log::CELLS);
    let jobs = JobCounts::new(jobs);
    surus_log::share(dropped);
    let is_shared = config.app.channels_redis.is_some();
    surus_zend::channels_between(config.workers, pusher::rules(config), is_shared)
        .map_err(|error| Refusal::failed(format!("no letterboxes for workers: {error}")))?;
    let master = surus_master::Config {
        identity: config.master.identity.clone(),
        admin: config.master.admin.clone(),
        board: Board::new(cells),
        jobs,
        on_demand: processes.is_none(),
        drain: config.edge.drain + GRACE,
        boot: config.master.boot_timeout,
        watchdog: config.master.watchdog,
        recycle: config.master.recycle,
        control: Some(control::door(config.master.control.as_deref())),
        program,
        predecessor,
        shows_errors: config.dev,
        about: about(config, listeners.addresses()),
        shared_memory,
    };
    let mut companions = vec![queue::companion(config, jobs)];
    companions.extend(sidecar::companions(config));
    let outcome = surus_master::run(
        &master,
        listeners,
        &|seat| worker::run(config, &engine, queue.as_ref(), seat),
        companions,
        &mut || announce(config, &ready),
    );
    match outcome {
        Ok(Outcome::Stopped) => Ok(ExitCode::SUCCESS),
        Ok(Outcome::BootFailed | Outcome::GaveUp) => Ok(ExitCode::from(BOOT_FAILED)),
        Err(Failure::System(error)) => Err(Refusal::failed(format!("the master failed: {error}"))),
        Err(error) => Err(Refusal::misconfigured(error)),
    }
}

/// For the status; null if there is none.
fn shared_memory() -> Value {
    let figures = surus_zend::store_figures();
    figures.map_or(Value::Null, |figures| {
        json!({
            "bytes": figures.size,
            "used_bytes": figures.used,
            "kept_bytes": figures.kept,
            "entries": figures.entries,
            "hits": figures.hits,
            "misses": figures.misses,
            "evictions": figures.evictions,
        })
    })
}

/// The queue of the processes for `Surus\offload()`, which start with the first job.
fn queue_of_jobs(config: &Config, listeners: &mut Listeners) -> Option<Queue> {
    let count = config.app.offload_processes;
    if count == 0 {
        return None;
    }
    match Queue::new(Purpose::Jobs, SLEEP) {
        Ok((queue, held)) => {
            listeners.add_silent(count);
            listeners.hold(held);
            Some(queue)
        }
        Err(error) => {
            tracing::warn!(
                "no socket for the processes of Surus\\offload(), which is refused: {error}"
            );
            None
        }
    }
}

/// How many processes to run PHP in: as configured, or the default number if this PHP fails the self-test. `None`: PHP
/// runs in the workers.
fn processes(config: &Config, engine: &Engine) -> Result<Option<usize>, String> {
    let app = &config.app;
    if app.processes.is_some() {
        return Ok(app.processes);
    }
    let suspects = engine.extensions_for_processes();
    for (name, why) in &suspects {
        tracing::warn!(
            "the extension {name} needs a process for each request, where requests here share one: {why}; \
             see --mode process"
        );
    }
    let found = surus_master::in_child(&|| match self_test(engine) {
        Ok(SelfTest::Isolated) => String::new(),
        Ok(SelfTest::Shares(what)) => format!("two requests at once share {what}"),
        Err(error) => format!("!{error}"),
    });
    let shared = match found {
        Ok(Ok(text)) if text.is_empty() => return Ok(None),
        Ok(Ok(text)) => match text.strip_prefix('!') {
            Some(error) => return Err(error.to_owned()),
            None => text,
        },
        Ok(Err(death)) => format!("the process of the self-test {death}"),
        Err(error) => return Err(format!("the self-test cannot be run: {error}")),
    };
    let names: Vec<&str> = suspects.iter().map(|(name, _)| name.as_str()).collect();
    let because = match names.as_slice() {
        [] => String::new(),
        names => format!(", perhaps because of {}", names.join(", ")),
    };
    if matches!(app.entry, Entry::Worker { .. }) {
        return Err(format!(
            "this PHP cannot be isolated: {shared}{because}. Worker mode needs that; --mode process does not"
        ));
    }
    tracing::error!(
        "this PHP cannot be isolated: {shared}{because}. \
         Serving with {PROCESSES} processes of one request at a time, as with --mode process"
    );
    Ok(Some(PROCESSES))
}

/// Runs in a child.
fn self_test(engine: &Engine) -> Result<SelfTest, String> {
    engine.enter_worker(Duration::from_millis(10));
    event_loop::run(engine.self_test())
        .map_err(|error| format!("cannot start an event loop: {error}"))?
        .map_err(|error| error.to_string())
}

fn about(config: &Config, addresses: &[Address]) -> Value {
    let listen: Vec<String> = addresses.iter().map(Address::to_string).collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "mode": config.app.entry.mode().to_string(),
        "path": config.app.source,
        "config": config.file,
        "listen": listen,
        "queue_folder": queue::folder_of(&config.app),
        "admin": config.master.admin.as_ref().map(|desk| desk.address.to_string()),
    })
}

/// Sets where log lines go, and how they are written.
fn logs(config: &Config) -> Result<(), String> {
    for (log, key, path) in [
        (Log::Error, "error_log", &config.error_log),
        (Log::Access, "access_log_file", &config.access_log_file),
    ] {
        if let Some(path) = path {
            inspect::named(path)
                .and_then(|()| surus_log::open(log, path))
                .map_err(|error| {
                    let why = inspect::cannot_open(key, path, &error);
                    config.say(&format!("server.{key}"), &why)
                })?;
        }
    }
    log::start(config.error_log.is_some());
    log::of_panics();
    surus_log::set_writer(Writer::Loop);
    Ok(())
}

/// Prints that the server is ready on standard output, where lines of the access log may follow.
fn announce(config: &Config, ready: &str) {
    let access_log = config.settings.access_log.as_ref();
    let is_json = access_log.is_some_and(|log| log.format() == LogFormat::Json);
    let format = match log::format() {
        Format::Text if is_json && config.access_log_file.is_none() => Format::Json,
        format => format,
    };
    surus_log::announce(format_args!("{ready}"), format);
}

fn ready_line(config: &Config, processes: Option<usize>, addresses: &[Address]) -> String {
    let addresses: Vec<String> = addresses
        .iter()
        .map(|address| match address {
            Address::Tcp(address) => format!("http://{address}"),
            Address::Unix(_) => address.to_string(),
        })
        .collect();
    let workers = match config.workers {
        1 => "1 worker".to_owned(),
        count => format!("{count} workers"),
    };
    let processes = match processes {
        None => String::new(),
        Some(1) => ", 1 process".to_owned(),
        Some(count) => format!(", {count} processes"),
    };
    let app = &config.app;
    format!(
        "surus ready on {} ({workers}{processes}, {} {})",
        addresses.join(", "),
        app.entry.mode(),
        app.label
    )
}
