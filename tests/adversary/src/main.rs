//! An adversary of the server: overlapping requests over real drivers, cut off wherever they can be. Each has a token
//! that only its own answer may show.
//!
//! Layout: `operation` — the rows, what requests do · `interruption` — the columns, what happens to them · `plan` — one
//! request, from the seed alone · `exchange`, `verdict`, `tally` — its answer, and what to think of it · `proxy`, `echo`,
//! `backends` — whom PHP talks to · `server` — the one under test · `storm`, `calm` — many at once, and what is left ·
//! `campaign` — one after the other · this file — the command line.
#![forbid(unsafe_code)]

mod backends;
mod calm;
mod campaign;
mod echo;
mod exchange;
mod interruption;
mod operation;
mod plan;
mod proxy;
mod server;
mod storm;
mod tally;
mod verdict;

use std::{error::Error, process::ExitCode};

use clap::Parser;
use surus_tests::surus::Mode;
use tokio::task::LocalSet;

use campaign::Campaign;
use interruption::Interruption;
use operation::{Operation, OPERATIONS};

/// Interrupted requests over real drivers, from a seed: whose answer is this?
#[derive(Debug, Parser)]
struct Options {
    /// What the requests are made from; without it the clock decides
    #[arg(long)]
    seed: Option<u64>,
    /// Only this mode (classic, coroutine, process, snapshot); may be given several times
    #[arg(long)]
    mode: Vec<String>,
    /// Only this extension (pdo_pgsql) or operation (pdo_pgsql.state); may be given several times
    #[arg(long)]
    only: Vec<String>,
    /// Not this extension or operation; may be given several times
    #[arg(long)]
    without: Vec<String>,
    /// Only this interruption (client, deadline, reset …); may be given several times
    #[arg(long)]
    interruption: Vec<String>,
    /// Not this interruption; may be given several times
    #[arg(long)]
    without_interruption: Vec<String>,
    /// Seconds of each storm: one interruption in one mode
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// At most so many requests in each storm
    #[arg(long, default_value_t = u64::MAX / 2)]
    requests: u64,
    /// The number of the first one
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Requests at a time
    #[arg(long, default_value_t = 120)]
    concurrency: u64,
    /// Goes round again until so many requests have been cut off
    #[arg(long, default_value_t = 0)]
    cuts: u64,
    /// Goes round again until so many seconds are over
    #[arg(long, default_value_t = 0)]
    total_seconds: u64,
    /// How often each operation must be right in a row, afterwards
    #[arg(long, default_value_t = 50)]
    repeat: u64,
    /// Lists the operations and interruptions
    #[arg(long)]
    list: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    match LocalSet::new().block_on(&runtime, run(&options)) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(faults) => {
            println!("{faults} faults");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("surus-adversary: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: &Options) -> Result<usize, Box<dyn Error>> {
    let (modes, operations, interruptions) = selection(options)?;
    if options.list {
        for operation in operations {
            println!("--only {}", operation.name);
        }
        for interruption in interruptions {
            println!("--interruption {}", interruption.name());
        }
        return Ok(0);
    }
    let mut campaign = Campaign::start(options, operations, interruptions).await?;
    campaign.run(&modes).await?;
    Ok(campaign.faults())
}

/// All of them.
const MODES: [Mode; 4] = [
    Mode::Classic,
    Mode::Coroutine,
    Mode::Process,
    Mode::Snapshot,
];

type Selection = (Vec<Mode>, Vec<&'static Operation>, Vec<Interruption>);

/// What the options choose; a name that does not exist is an error.
fn selection(options: &Options) -> Result<Selection, String> {
    for name in options.only.iter().chain(&options.without) {
        if !OPERATIONS.iter().any(|operation| operation.is(name)) {
            return Err(format!(
                "no extension or operation {name:?}; --list has them"
            ));
        }
    }
    let names = options.interruption.iter();
    for name in names.chain(&options.without_interruption) {
        if !Interruption::ALL.iter().any(|each| each.name() == name) {
            return Err(format!("no interruption {name:?}; --list has them"));
        }
    }
    for name in &options.mode {
        if !MODES.iter().any(|mode| mode.name() == name) {
            return Err(format!(
                "no mode {name:?}: classic, coroutine, process or snapshot"
            ));
        }
    }
    let has = |list: &[String], name: &str| list.iter().any(|each| each == name);
    let modes = MODES
        .into_iter()
        .filter(|mode| options.mode.is_empty() || has(&options.mode, mode.name()));
    let operations = OPERATIONS.iter().filter(|operation| {
        let is = |list: &[String]| list.iter().any(|name| operation.is(name));
        (options.only.is_empty() || is(&options.only)) && !is(&options.without)
    });
    let interruptions = Interruption::ALL.into_iter().filter(|each| {
        (options.interruption.is_empty() || has(&options.interruption, each.name()))
            && !has(&options.without_interruption, each.name())
    });
    Ok((
        modes.collect(),
        operations.collect(),
        interruptions.collect(),
    ))
}
