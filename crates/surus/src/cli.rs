use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::config::{Mode, Workers};

/// A PHP application server: stock PHP, many requests at a time in each process.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve an application
    #[command(after_help = SERVE_HELP)]
    Serve(ServeArgs),
    /// Print the resolved configuration, or what is wrong with it
    #[command(after_help = CHECK_HELP)]
    Check(ServeArgs),
    /// Make a folder with a small application that works, and its tests
    #[command(after_help = NEW_HELP)]
    New(NewArgs),
    /// Print the routes of an application
    #[command(after_help = ROUTES_HELP)]
    Routes(ServeArgs),
    /// Print the OpenAPI document of an application
    #[command(after_help = OPENAPI_HELP)]
    Openapi(ServeArgs),
    /// Write what Surus adds to PHP as files for editors and analysers
    #[command(after_help = STUBS_HELP)]
    Stubs(StubsArgs),
    /// Run a PHP script on the command line, with the engine that serves
    #[command(after_help = PHP_HELP)]
    Php(PhpArgs),
    /// Boot the code as it is now beside the running version, which finishes its requests
    #[command(after_help = CONTROL_HELP)]
    Reload(ControlArgs),
    /// Replace the running server, binary and configuration, without a lost request
    #[command(after_help = CONTROL_HELP)]
    Upgrade(ControlArgs),
    /// Finish the requests in flight and end
    #[command(after_help = CONTROL_HELP)]
    Stop(ControlArgs),
    /// Show what a running server does
    #[command(after_help = CONTROL_HELP)]
    Status(StatusArgs),
    /// Show what a running server does, live
    #[command(after_help = CONTROL_HELP)]
    Top(TopArgs),
    /// Measure what an isolate costs on this machine
    Internals(InternalsArgs),
}

#[derive(Args, Debug, Default)]
pub(crate) struct ServeArgs {
    /// A script or a folder. A folder is served by what is in it: surus.toml, else app.php (coroutine), else
    /// public/index.php or index.php (classic)
    #[arg(default_value = ".")]
    pub(crate) path: PathBuf,

    /// Where to listen: ADDRESS:PORT, a port on 127.0.0.1, or unix:PATH. May be given several times [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Vec<String>,

    /// Worker processes; "auto" is one per processor [default: auto]
    #[arg(long, value_name = "N|auto", allow_negative_numbers = true)]
    pub(crate) workers: Option<Workers>,

    /// How PHP runs. classic: a PHP request for each HTTP request, as under php-fpm. coroutine: the script boots once
    /// and serves requests concurrently. process: as classic, but each request has a process, for extensions that
    /// cannot share one [default: what the folder has]
    #[arg(long, value_enum)]
    pub(crate) mode: Option<Mode>,

    /// The configuration [default: surus.toml in the folder that is served]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Any key of surus.toml: max_requests=1000, isolates.max=8, php.memory_limit=64M. May be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,

    /// For development: errors are shown to the client, and changed code is loaded
    #[arg(long)]
    pub(crate) dev: bool,
}

#[derive(Args, Debug)]
pub(crate) struct StubsArgs {
    /// Where they go; it is made if it is not there
    pub(crate) folder: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct NewArgs {
    /// The folder: it must not be there, or be empty
    pub(crate) folder: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct PhpArgs {
    /// An ini setting, as with php -d
    #[arg(short = 'd', value_name = "NAME=VALUE")]
    pub(crate) define: Vec<String>,

    /// The script to run
    pub(crate) script: PathBuf,

    /// What the script gets in $argv
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) args: Vec<OsString>,
}

/// Which of the running servers is meant.
#[derive(Args, Debug, Default)]
pub(crate) struct ControlArgs {
    /// The path that the server was started with [default: the only server that runs]
    pub(crate) path: Option<PathBuf>,

    /// The server's process id
    #[arg(long)]
    pub(crate) pid: Option<u32>,

    /// The server's control socket
    #[arg(long, value_name = "SOCKET")]
    pub(crate) control: Option<PathBuf>,
}

#[derive(Args, Debug, Default)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) server: ControlArgs,

    /// As JSON, for programs
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct TopArgs {
    #[command(flatten)]
    pub(crate) server: ControlArgs,

    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = pause, allow_negative_numbers = true)]
    pub(crate) every: Duration,

    /// End after so many looks
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) looks: Option<u64>,
}

fn pause(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!("{text:?} is no number from 0.1 to 3600")),
    }
}

#[derive(Args, Debug)]
pub(crate) struct InternalsArgs {
    /// As a JSON object of numbers, for programs
    #[arg(long)]
    pub(crate) json: bool,

    /// How many isolates to measure with
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) isolates: u16,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 the application failed to boot, 2 wrong usage or configuration.";

const SERVE_HELP: &str = "\
Examples:
  surus serve                                the application in this folder
  surus serve app.php --listen 0.0.0.0:80    one script, to the world
  surus serve /var/www/blog --workers 4      a classic site

Each key of surus.toml can be given with --set, and in the environment: SURUS_LISTEN, SURUS_REQUEST_TIMEOUT, \
SURUS_ISOLATES_MAX and so on, SURUS_PHP='{ memory_limit = \"64M\" }'. Flags win over the environment, the environment over the \
file. SURUS_LOG=warn logs less.

SIGTERM, SIGQUIT or Ctrl-C finishes the requests in flight and ends; a second one ends at once. SIGHUP is `surus reload`, \
SIGUSR2 is `surus upgrade`. SIGUSR1 opens the files of logs anew.

Exit codes: 0 done, 1 the application failed to boot, 2 wrong usage or configuration.";

const CONTROL_HELP: &str = "\
A server is found by its control socket, which only its own user may use: PID.sock in $RUNTIME_DIRECTORY, /run/surus (root), \
$XDG_RUNTIME_DIR/surus or /tmp/surus-UID, or where `control` in surus.toml says.

Exit codes: 0 done, 1 it failed (the old version goes on), 2 there is no such server, or several.";

const CHECK_HELP: &str = "\
Takes what `surus serve` takes and starts nothing. The output is a complete surus.toml; each line says where its value \
comes from. Values of passwords and keys are not shown.

Exit codes: 0 the configuration is valid, 2 it is not.";

const ROUTES_HELP: &str = "\
Takes what `surus serve` takes, boots the application once and serves nothing.

Exit codes: 0 done, 1 the application failed to boot or has no routes, 2 wrong usage or configuration.";

const NEW_HELP: &str = "\
`surus serve FOLDER --dev` serves it then.

Exit codes: 0 done, 2 wrong usage, or the folder cannot be written.";

const STUBS_HELP: &str = "\
The Surus\\ classes are part of the binary: to run, PHP needs no such files.

Exit codes: 0 done, 2 wrong usage, or the folder cannot be written.";

const OPENAPI_HELP: &str = "\
Takes what `surus serve` takes, boots the application once and serves nothing.

Exit codes: 0 done, 1 the application failed to boot or has no routes, 2 wrong usage or configuration.";

const PHP_HELP: &str = "\
Examples:
  surus php bin/console cache:clear --env=prod
  surus php -d memory_limit=1G import.php

Exit codes: the script's own; 2 for wrong usage.";
