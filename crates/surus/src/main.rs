//! `surus`: a PHP application server.
//!
//! - `cli.rs`: the command line
//! - `config/`: flags, environment and surus.toml become one resolved configuration
//! - `serve.rs`: the master's side of `surus serve`; `worker.rs`: a worker's life
//! - `backend/`: PHP as the edge's backend, one file per mode
//! - `process/`: PHP in processes with one request at a time
//! - `log.rs`: where log lines go
//! - `php.rs`: `surus php`; `internals.rs`: `surus internals`

#![forbid(unsafe_code)]

mod backend;
mod cli;
mod config;
mod internals;
mod log;
mod php;
mod process;
mod serve;
mod worker;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};
use config::Config;

/// The application failed to boot.
const BOOT_FAILED: u8 = 1;
/// Wrong usage, or a configuration that cannot be served.
const MISCONFIGURED: u8 = 2;

fn main() -> ExitCode {
    let cli = Cli::parse();
    log::start();
    match cli.command {
        Command::Serve(arguments) => match Config::resolve(&arguments) {
            Ok(config) => serve::run(&config),
            Err(error) => misconfigured(&error),
        },
        Command::Check(arguments) => match Config::resolve(&arguments) {
            Ok(config) => {
                print!("{}", config.to_toml());
                ExitCode::SUCCESS
            }
            Err(error) => misconfigured(&error),
        },
        Command::Php(arguments) => php::run(&arguments),
        Command::Internals(arguments) => internals::run(&arguments),
    }
}

/// The engine, or the application in it, did not start.
fn failed(error: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("surus: {error}");
    ExitCode::from(BOOT_FAILED)
}

fn misconfigured(error: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("surus: {error}");
    ExitCode::from(MISCONFIGURED)
}
