//! The master's side of `surus serve`.

use std::io::Write;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{json, Value};
use surus_master::{Board, Inherited, Outcome, Predecessor, Program};
use surus_zend::{Engine, EngineConfig, SelfTest};

use crate::config::{Config, PROCESSES};
use crate::process::{Line, SLEEP};
use crate::{control, dev, event_loop, failed, misconfigured, open_files, worker, BOOT_FAILED};

/// What workers get on top of their own drain before they are killed: to end what PHP still has to do.
const GRACE: Duration = Duration::from_secs(5);

pub(crate) fn run(config: &Config) -> ExitCode {
    // Before anything else opens a file.
    let inherited = Inherited::from_env();
    open_files::raise();
    warn_of_few_files(config.edge.connections);
    let predecessor = Predecessor::from_env();
    let program = match Program::this() {
        Ok(program) => program,
        Err(error) => return failed(&format!("cannot tell which program this is: {error}")),
    };
    // Before the fork, so that extensions are loaded once and the OPcache is shared.
    let engine = match Engine::start(&EngineConfig {
        ini: config.ini.clone(),
        dev: config.dev,
        cache: usize::try_from(config.app.shared_cache).unwrap_or(usize::MAX),
    }) {
        Ok(engine) => engine,
        Err(error) => return failed(&error),
    };
    let processes = match processes(config, &engine) {
        Ok(processes) => processes,
        Err(error) => return failed(&error),
    };
    let listeners = surus_master::bind(
        &config.listen,
        config.workers,
        inherited,
        predecessor.is_some(),
    );
    let mut listeners = match listeners {
        Ok(listeners) => listeners,
        Err(error) => return misconfigured(&error),
    };
    let line = match processes {
        None => None,
        Some(count) => match Line::new(if config.dev { dev::LOOK } else { SLEEP }) {
            Ok((line, held)) => {
                listeners.add_silent(count);
                listeners.hold(held);
                Some(line)
            }
            Err(error) => return failed(&format!("no socket for PHP's processes: {error}")),
        },
    };
    let ready = ready_line(config, processes, listeners.addresses());
    let cells = match surus_zend::shared_counters(Board::cells(config.workers)) {
        Ok(cells) => cells,
        Err(error) => return failed(&format!("no memory to share with workers: {error}")),
    };
    let master = surus_master::Config {
        identity: config.master.identity.clone(),
        admin: config.master.admin,
        board: Board::new(cells),
        drain: config.edge.drain + GRACE,
        boot: config.master.boot_timeout,
        watchdog: config.master.watchdog,
        recycle: config.master.recycle,
        control: Some(
            config
                .master
                .control
                .clone()
                .unwrap_or_else(control::default_socket),
        ),
        program,
        predecessor,
        about: about(config, listeners.addresses()),
    };
    let outcome = surus_master::run(
        &master,
        listeners,
        &|seat| worker::run(config, &engine, line.as_ref(), seat),
        &mut || announce(&ready),
    );
    match outcome {
        Ok(Outcome::Stopped) => ExitCode::SUCCESS,
        Ok(Outcome::BootFailed | Outcome::GaveUp) => ExitCode::from(BOOT_FAILED),
        Err(error) => failed(&format!("the master failed: {error}")),
    }
}

/// Fewer connections than the default are no matter for a warning as long as they are many.
fn warn_of_few_files(wanted: usize) {
    const MANY: usize = 1024;
    let allowed = open_files::connections(wanted);
    let is_asked_for = wanted != surus_edge::Limits::default().connections;
    if allowed < wanted && (is_asked_for || allowed < MANY) {
        tracing::warn!(
            "max_connections is {wanted}, but the limit of open files allows {allowed} for each worker: raise it \
             (ulimit -Hn, LimitNOFILE= of systemd) or lower max_connections"
        );
    }
}

/// How many processes of its own PHP gets: as configured, or because this PHP fails the self-test.
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
    tracing::error!(
        "this PHP cannot be isolated: {shared}{because}. \
         Serving with {PROCESSES} processes of one request at a time, as with --mode process"
    );
    Ok(Some(PROCESSES))
}

/// In a child.
fn self_test(engine: &Engine) -> Result<SelfTest, String> {
    engine.enter_worker(Duration::from_millis(10));
    event_loop::run(engine.self_test())
        .map_err(|error| format!("cannot start an event loop: {error}"))?
        .map_err(|error| error.to_string())
}

fn about(config: &Config, addresses: &[SocketAddr]) -> Value {
    let listen: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "mode": config.app.entry.mode().to_string(),
        "path": config.app.source,
        "listen": listen,
    })
}

/// On standard output. That nobody reads it is no reason to end.
fn announce(ready: &str) {
    let _ = writeln!(std::io::stdout(), "{ready}");
}

fn ready_line(config: &Config, processes: Option<usize>, addresses: &[SocketAddr]) -> String {
    let addresses: Vec<String> = addresses
        .iter()
        .map(|address| format!("http://{address}"))
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
