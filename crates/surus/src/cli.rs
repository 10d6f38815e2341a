use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::config::{Mode, Workers};

/// A PHP application server: stock PHP, many requests at the same time in each process.
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
    /// Create a small application with tests
    #[command(after_help = NEW_HELP)]
    New(NewArgs),
    /// Print the routes of an application
    #[command(after_help = ROUTES_HELP)]
    Routes(ServeArgs),
    /// Print the OpenAPI document of an application
    #[command(after_help = OPENAPI_HELP)]
    Openapi(ServeArgs),
    /// Look for what requests of an application leave to each other in coroutine mode
    #[command(after_help = DOCTOR_HELP)]
    Doctor(DoctorArgs),
    /// Write the Surus classes as files, for editors and PHPStan
    #[command(after_help = STUBS_HELP)]
    Stubs(StubsArgs),
    /// Run a PHP script on the command line, with the engine that serves
    #[command(after_help = PHP_HELP)]
    Php(PhpArgs),
    /// Load new code without losing a request
    #[command(after_help = CONTROL_HELP)]
    Reload(ControlArgs),
    /// Replace binary and configuration without losing a request
    #[command(after_help = CONTROL_HELP)]
    Upgrade(ControlArgs),
    /// Finish the requests in flight and stop
    #[command(after_help = CONTROL_HELP)]
    Stop(ControlArgs),
    /// Show the status of a running server
    #[command(after_help = CONTROL_HELP)]
    Status(StatusArgs),
    /// Show the status of a running server, live
    #[command(after_help = CONTROL_HELP)]
    Top(TopArgs),
    /// Show the jobs of queues, and retry or forget those that have failed
    #[command(after_help = QUEUE_HELP)]
    Queue(QueueArgs),
    /// Measure what an isolate costs on this machine
    Internals(InternalsArgs),
}

#[derive(Args, Debug, Default)]
pub(crate) struct ServeArgs {
    /// A script or a folder. In a folder, the first of these is used: surus.toml, app.php (coroutine),
    /// public/index.php, index.php (classic; worker for Symfony and Laravel)
    #[arg(default_value = ".")]
    pub(crate) path: PathBuf,

    /// Where to listen: ADDRESS:PORT, a port on 127.0.0.1, or unix:PATH. May be given several times [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Vec<String>,

    /// Worker processes; "auto" is one per processor [default: auto]
    #[arg(long, value_name = "N|auto", allow_negative_numbers = true)]
    pub(crate) workers: Option<Workers>,

    /// How PHP runs. classic: one PHP request for each HTTP request, as under php-fpm. coroutine: the script boots
    /// once and serves many requests at the same time. process: as classic, one request at a time in each process, for
    /// extensions that cannot be isolated [default: by the content of the folder]
    #[arg(long, value_enum)]
    pub(crate) mode: Option<Mode>,

    /// The configuration file [default: surus.toml in the folder that is served]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Any key of surus.toml: max_requests=1000, isolates.max=8, php.memory_limit=64M. May be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,

    /// For development: show errors to the client, and reload when code changes
    #[arg(long)]
    pub(crate) dev: bool,
}

#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    /// A script or a folder, as for `surus serve`
    #[arg(default_value = ".")]
    pub(crate) path: PathBuf,

    /// Requests to try, as "GET /users/7" [default: each GET route without parameters]
    #[arg(value_name = "REQUEST")]
    pub(crate) requests: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct StubsArgs {
    /// The folder to write to; it is created if it does not exist
    pub(crate) folder: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct NewArgs {
    /// The folder to create; it must not exist, or be empty
    pub(crate) folder: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct PhpArgs {
    /// Switches, a script and its arguments, as php-cli takes them: `surus php -h`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) args: Vec<OsString>,
}

/// Selects one of the running servers.
#[derive(Args, Debug, Default)]
pub(crate) struct ControlArgs {
    /// The path that the server was started with, or its surus.toml [default: the only running server]
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

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct TopArgs {
    #[command(flatten)]
    pub(crate) server: ControlArgs,

    /// Seconds between two updates
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = pause, allow_negative_numbers = true)]
    pub(crate) every: Duration,

    /// Stop after this number of updates
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) count: Option<u64>,
}

#[derive(Args, Debug)]
pub(crate) struct QueueArgs {
    /// What to do [default: count the jobs of each queue]
    #[command(subcommand)]
    pub(crate) what: Option<QueueCommand>,

    /// The path that the server was started with [default: this folder]
    #[arg(long, value_name = "PATH", global = true)]
    pub(crate) path: Option<PathBuf>,

    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// List the jobs that wait or run, up to 1000
    List {
        /// Of this queue only
        queue: Option<String>,
    },
    /// List the jobs that have failed, up to 1000
    Failed {
        /// Of this queue only
        queue: Option<String>,
    },
    /// List the streams, and how much their groups have left to read
    Streams,
    /// List the batches that have not ended, up to 1000
    Batches,
    /// Run failed jobs again
    Retry {
        /// The id of a job, the name of a queue, or all
        which: String,
    },
    /// Forget failed jobs
    Forget {
        /// The id of a job, the name of a queue, or all
        which: String,
    },
}

fn pause(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!("{text:?} is not a number from 0.1 to 3600")),
    }
}

#[derive(Args, Debug)]
pub(crate) struct InternalsArgs {
    /// Print a JSON object of numbers
    #[arg(long)]
    pub(crate) json: bool,

    /// Number of isolates to measure with
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) isolates: u16,
}

const QUEUE_HELP: &str = "\
The jobs are found by the configuration, as `surus serve` finds it, or in the folder that SURUS_QUEUE_FOLDER names.

Exit codes: 0 done, 1 no process has the jobs, 2 wrong usage or configuration.";

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 the application failed to boot, 2 wrong usage or configuration.";

const SERVE_HELP: &str = "\
Examples:
  surus serve                                the application in this folder
  surus serve app.php --listen 0.0.0.0:80    one script, on all addresses
  surus serve /var/www/blog --workers 4      a classic site

Each key of surus.toml can be set with --set and in the environment: SURUS_LISTEN, SURUS_REQUEST_TIMEOUT, \
SURUS_ISOLATES_MAX, SURUS_PHP='{ memory_limit = \"64M\" }'. Flags override the environment, which overrides the file. \
`surus check` prints all keys. SURUS_LOG=warn logs less.

SIGTERM, SIGQUIT or Ctrl-C: finish the requests in flight and stop; a second one stops at once. SIGHUP: `surus reload`. \
SIGUSR2: `surus upgrade`. SIGUSR1: reopen the log files.

Exit codes: 0 done, 1 the application failed to boot, 2 wrong usage or configuration.";

const CONTROL_HELP: &str = "\
A server is found by its control socket, which only its own user may use: PID.sock in $RUNTIME_DIRECTORY, /run/surus (root), \
$XDG_RUNTIME_DIR/surus or /tmp/surus-UID, or the path that `control` in surus.toml names.

Exit codes: 0 done, 1 it failed (the old version keeps running), 2 there is no such server, or more than one.";

const CHECK_HELP: &str = "\
Takes the arguments of `surus serve` and starts nothing. The output is a complete surus.toml; the comment of each line names \
the source of the value. Passwords and keys are not shown.

Exit codes: 0 the configuration is valid, 2 it is not.";

const ROUTES_HELP: &str = "\
Takes the arguments of `surus serve`, boots the application once and serves nothing.

Exit codes: 0 done, 1 the application failed to boot or has no routes, 2 wrong usage or configuration.";

const DOCTOR_HELP: &str = "\
Boots the application and sends each request three times, as three clients. Reports what these leave in static properties, \
globals and shared services, connections that are kept there, and what grows. The requests are real: use a test database.

Exit codes: 0 nothing is wrong, 1 the application failed to boot, or requests would see each other's data or share \
connections, 2 wrong usage or configuration.";

const NEW_HELP: &str = "\
Then run it with `surus serve FOLDER --dev`.

Exit codes: 0 done, 2 wrong usage, or the folder cannot be written.";

const STUBS_HELP: &str = "\
The Surus\\ classes are in the binary: PHP does not need these files.

Exit codes: 0 done, 2 wrong usage, or the folder cannot be written.";

const OPENAPI_HELP: &str = "\
Takes the arguments of `surus serve`, boots the application once and serves nothing.

Exit codes: 0 done, 1 the application failed to boot or has no routes, 2 wrong usage or configuration.";

const PHP_HELP: &str = "\
Examples:
  surus php bin/console cache:clear --env=prod
  surus php -d memory_limit=1G import.php
  surus php -r 'echo PHP_VERSION;'

`surus php -h` shows PHP's own switches. Exit codes: the script's own, as php-cli's; 255 after a fatal error, 1 for wrong usage
and for a script that cannot be read.";
