//! Stands in for php-cli in PHP's own tests: the same options, the same behaviour, but the script runs in an isolate
//! while another isolate is interleaved with it. What has nothing to do with running a script (`-S`, `--ri` …) is left
//! to the stock program.
#![forbid(unsafe_code)]

mod options;

use std::{
    ffi::CString,
    os::unix::{ffi::OsStringExt, process::CommandExt},
    process::{Command, ExitCode},
};

use surus_zend::{changes::Changes, command_line};

use options::{parse, Parsed};

/// Changes all that PHP code can change, over and over, and looks whether it stays so.
const NEIGHBOUR: &str = include_str!("../neighbour.php");

/// Names an environment variable with PHP code to run in its place: for the tests of this program.
const OTHER_NEIGHBOUR: &str = "SURUS_PHPT_NEIGHBOUR";

/// Names a file for what changes in PHP and its libraries though no isolate has its own.
const CHANGES: &str = "SURUS_PHPT_CHANGES";

/// The program to compare with.
const STOCK: &str = "php8.2";

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os()
        .map(|a| CString::new(a.into_vec()).unwrap_or_default())
        .collect();
    let invocation = match parse(&arguments) {
        Parsed::Run(invocation) => *invocation,
        Parsed::Stock => {
            let error = Command::new(STOCK).args(std::env::args_os().skip(1)).exec();
            eprintln!("surus-phpt: {STOCK}: {error}");
            return ExitCode::from(127);
        }
    };
    if let Err(error) = command_line::start(invocation.options) {
        // What PHP itself has said is all that php-cli says.
        if !error.0.starts_with("PHP did not start") {
            eprintln!("surus-phpt: {error}");
        }
        return ExitCode::FAILURE;
    }
    let changes = match std::env::var_os(CHANGES).map(|path| Changes::watch(path.into())) {
        Some(Err(error)) => {
            eprintln!("surus-phpt: {error}");
            return ExitCode::from(71);
        }
        Some(Ok(changes)) => Some(changes),
        None => None,
    };
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("surus-phpt: {error}");
            return ExitCode::from(71);
        }
    };
    let neighbour = match std::env::var_os(OTHER_NEIGHBOUR) {
        Some(code) => code.into_vec(),
        None => NEIGHBOUR.trim_start_matches("<?php").into(),
    };
    let neighbour = CString::new(neighbour).unwrap_or_default();
    let status = tokio::task::LocalSet::new().block_on(
        &runtime,
        command_line::run(invocation.script, neighbour, changes.as_ref()),
    );
    match status {
        // The kernel keeps the low eight bits.
        Ok(status) => std::process::exit(status & 0xff),
        Err(error) => {
            eprintln!("surus-phpt: {error}");
            ExitCode::from(71)
        }
    }
}
