//! How memory grows with each case: PHP's own in a coroutine isolate, the process's in both modes.

use std::{fs, io, rc::Rc, time::Duration};

use surus_zend::Engine;

use crate::{
    cases::{Answer, Case, CASES},
    client::{self, Application, World},
    plan::{Plan, Reading, Target},
    Options,
};

/// Growth, in bytes for each request, that is noise: pages of the allocators come and go.
const NOISE: f64 = 64.0;
/// What malloc keeps at the end of its heap until it is more (`M_TRIM_THRESHOLD`).
const KEPT: f64 = 128.0 * 1024.0;

/// Bytes that the process has for itself.
pub(crate) fn resident() -> io::Result<usize> {
    let rollup = fs::read_to_string("/proc/self/smaps_rollup")?;
    let line = rollup
        .lines()
        .find(|line| line.starts_with("Private_Dirty"));
    let size = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<usize>().ok());
    Ok(size.unwrap_or(0) * 1024)
}

fn php_memory(application: &Application) -> usize {
    match application {
        Application::Coroutine(coroutine) => coroutine.memory().0,
        Application::Classic(_) => 0,
    }
}

pub(crate) async fn find(
    engine: &Engine,
    options: &Options,
    world: &Rc<World>,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut leaking = Vec::new();
    for coroutine in [false, true] {
        let mode = if coroutine { "coroutine" } else { "classic" };
        if options.mode.as_deref().is_some_and(|only| only != mode) {
            continue;
        }
        for case in CASES {
            let chosen =
                options.only.is_empty() || options.only.iter().any(|name| name == case.name);
            if !chosen
                || matches!(case.answer, Answer::Never)
                || options.without.iter().any(|name| name == case.name)
            {
                continue;
            }
            let application = if coroutine {
                crate::coroutine(engine, options, world, false).await?
            } else {
                crate::classic(engine, options, false)?
            };
            let count = options.requests.min(if case.fatal {
                options.requests / 4
            } else {
                options.requests
            });
            let mut leaks = true;
            // What grows only once was the allocator's, or another isolate's.
            for _ in 0..2 {
                let (php, process) = growth(&application, case, count, coroutine, world).await?;
                println!("{mode:9} {:22} {php:9.1} bytes of PHP's, {process:9.1} of the process's for each request", case.name);
                leaks =
                    (php > NOISE && !case.fatal) || process > 20.0 * NOISE + KEPT / count as f64;
                if !leaks {
                    break;
                }
            }
            if leaks {
                leaking.push(format!("{mode} {}", case.name));
            }
        }
    }
    if leaking.is_empty() {
        return Ok(());
    }
    Err(format!("memory grows: {}", leaking.join(", ")).into())
}

/// Bytes of PHP's and of the process's for each of so many requests.
async fn growth(
    application: &Application,
    case: &'static Case,
    count: u64,
    coroutine: bool,
    world: &Rc<World>,
) -> Result<(f64, f64), Box<dyn std::error::Error>> {
    let mut sizes = Vec::new();
    // The first third warms up.
    for number in 0..count + count / 3 {
        if number == count / 3 || number + 1 == count + count / 3 {
            tokio::time::sleep(Duration::from_millis(250)).await;
            sizes.push((php_memory(application), resident()?));
        }
        let plan = Plan {
            number: 100_000 + number,
            case,
            target: Target {
                coroutine,
                hurried: false,
            },
            microseconds: 1,
            leaves_after: None,
            reading: Reading::All,
            pieces: 1 + number % 2,
            pause: Duration::ZERO,
            breaks_off: false,
        };
        client::run(&plan, application, world).await?;
        // After its answer a request may go on.
        while application.unfinished() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    let grown = |of: fn(&(usize, usize)) -> usize| {
        (of(&sizes[1]) as f64 - of(&sizes[0]) as f64) / count as f64
    };
    Ok((grown(|s| s.0), grown(|s| s.1)))
}
