//! `surus`: a PHP application server.
//!
//! - `cli.rs`: the command line
//! - `config/`: flags, environment and surus.toml become one resolved configuration
//! - `serve.rs`: the master's side of `surus serve`; `preflight.rs`, `permitted.rs`: what it looks at first; `inspect.rs`: the same for `surus check`; `worker.rs`: a worker's life; `orders.rs`: what its master asks of it;
//!   `alone.rs`: the life of a process of PHP's own; `event_loop.rs`: what they all run on
//! - `environment.rs`: the environment that PHP sees
//! - `dev.rs`: reloads for developers; `broken.rs`: what they see of code that does not boot; `recycle.rs`: an isolate that has served for long enough is replaced
//! - `control.rs`: `surus status`, `reload`, `upgrade`, `stop`; `table.rs`: a status for people
//! - `backend/`: PHP as the edge's backend, one file per mode
//! - `process/`: PHP in processes with one request at a time
//! - `log.rs`: where log lines go; `levels.rs`: which of them
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
mod environment;
mod event_loop;
mod inspect;
mod internals;
mod levels;
mod log;
mod open_files;
mod orders;
mod permitted;
mod php;
mod preflight;
mod process;
mod project;
mod recycle;
mod serve;
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

/// With the command that is meant where a path stands in its place, as behind php or a web server of a framework.
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
    // php-cli's switches are its own.
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
        Command::Stubs(arguments) => stubs::run(&arguments),
        Command::Php(arguments) => php::run(arguments.args),
        Command::Reload(arguments) => control::reload(&arguments),
        Command::Upgrade(arguments) => control::upgrade(&arguments),
        Command::Stop(arguments) => control::stop(&arguments),
        Command::Status(arguments) => control::status(&arguments),
        Command::Top(arguments) => control::top(&arguments),
        Command::Internals(arguments) => internals::run(&arguments),
    }
}

/// The engine, or the application in it, did not start.
fn failed(error: &dyn std::fmt::Display) -> ExitCode {
    surus_log::complain(format_args!("{error}"));
    ExitCode::from(BOOT_FAILED)
}

/// Writes to standard output. A reader that has left, such as `head`, has what it wants: then the command is done.
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
