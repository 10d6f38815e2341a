//! The master's side of `surus serve`.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use surus_master::Outcome;
use surus_zend::{Engine, EngineConfig};

use crate::config::Config;
use crate::{failed, misconfigured, worker, BOOT_FAILED};

/// What workers get on top of their own drain before they are killed: to end what PHP still has to do.
const GRACE: Duration = Duration::from_secs(5);

pub(crate) fn run(config: &Config) -> ExitCode {
    // Before the fork, so that extensions are loaded once and the OPcache is shared.
    let engine = match Engine::start(&EngineConfig {
        ini: config.ini.clone(),
        dev: config.dev,
    }) {
        Ok(engine) => engine,
        Err(error) => return failed(&error),
    };
    let listeners = match surus_master::bind(&config.listen, config.workers) {
        Ok(listeners) => listeners,
        Err(error) => return misconfigured(&error),
    };
    let ready = ready_line(config, listeners.addresses());
    let master = surus_master::Config {
        drain: config.edge.drain + GRACE,
    };
    let outcome = surus_master::run(
        &master,
        listeners,
        &|seat| worker::run(config, &engine, seat),
        &mut || announce(&ready),
    );
    match outcome {
        Ok(Outcome::Stopped) => ExitCode::SUCCESS,
        Ok(Outcome::BootFailed | Outcome::GaveUp) => ExitCode::from(BOOT_FAILED),
        Err(error) => failed(&format!("the master failed: {error}")),
    }
}

/// On standard output. That nobody reads it is no reason to end.
fn announce(ready: &str) {
    let _ = writeln!(std::io::stdout(), "{ready}");
}

fn ready_line(config: &Config, addresses: &[std::net::SocketAddr]) -> String {
    let addresses: Vec<String> = addresses
        .iter()
        .map(|address| format!("http://{address}"))
        .collect();
    let workers = match config.workers {
        1 => "1 worker".to_owned(),
        count => format!("{count} workers"),
    };
    let app = &config.app;
    format!(
        "surus ready on {} ({workers}, {} {})",
        addresses.join(", "),
        app.entry.mode(),
        app.label
    )
}
