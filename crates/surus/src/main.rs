//! `surus`: a PHP application server.
//!
//! - `cli.rs`: the command line
//! - `config/`: flags, environment and surus.toml become one resolved configuration
//! - `serve.rs`: the master's side of `surus serve`; `preflight.rs`, `permitted.rs`: its checks before the start;
//!   `inspect.rs`: the same checks for `surus check`; `worker.rs`: a worker; `orders.rs`: the orders of its master;
//!   `alone.rs`: a process in process mode; `event_loop.rs`: the event loop of both
//! - `environment.rs`: the environment that PHP sees
//! - `dev.rs`: reloads for development; `broken.rs`: the response while the code does not boot; `recycle.rs`: replaces
//!   the isolate of an application when it has served for long enough
//! - `control.rs`: `surus status`, `reload`, `upgrade`, `stop`; `table.rs`: a status for people
//! - `backend/`: PHP as the edge's backend, one file per mode
//! - `queue/`: jobs that outlive processes; `sidecar.rs`: programs beside the workers
//! - `process/`: PHP in processes with one request at a time
//! - `log.rs`: the format of log lines; `levels.rs`: which of them are logged
//! - `describe.rs`: `surus routes` and `surus openapi`; `project.rs`: `surus new`; `stubs.rs`: `surus stubs`
//! - `php/`: `surus php`; `internals.rs`: `surus internals`

#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro)]

mod alone;
mod backend;
mod broken;
mod cli;
mod config;
mod control;
mod describe;
mod dev;
mod doctor;
mod environment;
mod event_loop;
mod inspect;
mod internals;
mod levels;
mod log;
mod nodes;
mod open_files;
mod orders;
mod permitted;
mod php;
mod preflight;
mod process;
mod project;
mod pusher;
mod queue;
mod recycle;
mod serve;
mod sidecar;
mod stubs;
mod table;
mod worker;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::Parser;
use surus_master::{Inherited, Predecessor};

use cli::{Cli, Command};
use config::Config;

/// The application failed to boot.
const BOOT_FAILED: u8 = 1;
/// Wrong usage, or a configuration that cannot be served.
const MISCONFIGURED: u8 = 2;

/// Exits with a usage error. If a path stands in place of a command, as for php or a web server of a framework, prints
/// the command to use.
fn exit(error: &clap::Error) -> ! {
    let first = std::env::args_os().nth(1).map(PathBuf::from);
    let first = first.filter(|path| error.kind() == ErrorKind::InvalidSubcommand && path.exists());
    let _ = error.print();
    if let Some(path) = first {
        let hint = format!("\n  tip: to serve it: surus serve {}\n", path.display());
        let _ = std::io::stderr().write_all(hint.as_bytes());
    }
    std::process::exit(error.exit_code())
}

fn main() -> ExitCode {
    // Before anything else opens a file.
    let mut inherited = Inherited::from_env();
    let predecessor = Predecessor::from_env(&mut inherited);
    // The switches of php-cli are parsed separately.
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == "php") {
        log::start(false);
        return php::run(words.collect());
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            if let Some(predecessor) = predecessor {
                predecessor.tell(&error.to_string());
            }
            exit(&error);
        }
    };
    if !matches!(cli.command, Command::Serve(_)) {
        log::start(false);
    }
    match cli.command {
        Command::Serve(arguments) => {
            let code = serve::run(&arguments, inherited, predecessor);
            surus_log::finish(surus_log::LAST_LINES);
            code
        }
        Command::Check(arguments) => inspect::run(&arguments),
        Command::New(arguments) => project::run(&arguments),
        Command::Routes(arguments) => match Config::resolve(&arguments) {
            Ok(config) => describe::routes(&config),
            Err(error) => misconfigured(&error),
        },
        Command::Openapi(arguments) => match Config::resolve(&arguments) {
            Ok(config) => describe::openapi(&config),
            Err(error) => misconfigured(&error),
        },
        Command::Doctor(arguments) => doctor::run(arguments),
        Command::Stubs(arguments) => stubs::run(&arguments),
        Command::Php(arguments) => php::run(arguments.args),
        Command::Reload(arguments) => control::reload(&arguments),
        Command::Upgrade(arguments) => control::upgrade(&arguments),
        Command::Stop(arguments) => control::stop(&arguments),
        Command::Status(arguments) => control::status(&arguments),
        Command::Top(arguments) => control::top(&arguments),
        Command::Queue(arguments) => queue::run(&arguments),
        Command::Internals(arguments) => internals::run(&arguments),
    }
}

/// The engine, or the application in it, did not start.
fn failed(error: &dyn std::fmt::Display) -> ExitCode {
    surus_log::complain(format_args!("{error}"));
    ExitCode::from(BOOT_FAILED)
}

/// Writes to standard output. If the reader has closed it, as `head` does, the command is done.
fn print(text: &str) {
    let mut output = std::io::stdout();
    if output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush())
        .is_err()
    {
        std::process::exit(0);
    }
}

fn misconfigured(error: &dyn std::fmt::Display) -> ExitCode {
    surus_log::complain(format_args!("{error}"));
    ExitCode::from(MISCONFIGURED)
}
