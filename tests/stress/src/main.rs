//! Random requests to the engine, without HTTP: four applications (classic and coroutine, each with much and with
//! little time for a request) serve them at once on one thread. Each answer is checked.
//!
//! Layout: `cases` — what scripts answer · `plan` — what one request does, from the seed alone · `client` — sends one
//! and checks it · `body`, `peer` — what PHP reads from · this file — runs them all, and looks for what is left over.
#![forbid(unsafe_code)]

mod body;
mod cases;
mod client;
mod leaks;
mod peer;
mod plan;

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    rc::Rc,
    time::{Duration, Instant},
};

use clap::Parser;
use surus_zend::{
    AppLimits, Classic, ClassicConfig, Coroutine, Engine, EngineConfig, IsolateLimits,
};
use tokio::task::LocalSet;

use client::{Application, Ended, World};
use plan::{Scope, Target};

/// Random requests to Surus's engine, from a seed.
#[derive(Debug, Parser)]
struct Options {
    /// What the requests are made from; without it the clock decides
    #[arg(long)]
    seed: Option<u64>,
    /// Ends after so many requests
    #[arg(long, default_value_t = 20_000)]
    requests: u64,
    /// The number of the first one: with --requests 1, one request of a longer run
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Starts no more requests after so many seconds
    #[arg(long)]
    seconds: Option<u64>,
    /// Requests at a time
    #[arg(long, default_value_t = 40)]
    concurrency: u64,
    /// Only classic or only coroutine
    #[arg(long)]
    mode: Option<String>,
    /// Only this case; may be given several times
    #[arg(long)]
    only: Vec<String>,
    /// Not this case; may be given several times
    #[arg(long)]
    without: Vec<String>,
    /// PHP's blocks of memory come from malloc, and each knows its isolate
    #[arg(long)]
    checked_heap: bool,
    /// How much slower everything is, under valgrind
    #[arg(long, default_value_t = 1)]
    slowness: u64,
    /// Instead of random requests: each case many times, and how PHP's memory grows with it
    #[arg(long)]
    leaks: bool,
    /// PHP's log to stderr
    #[arg(long)]
    log: bool,
}

/// Removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> std::io::Result<Folder> {
        let path = std::env::temp_dir().join(format!("surus-stress-{}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    if options.log {
        tracing_subscriber::fmt()
            .with_writer(std::io::stderr)
            .init();
    }
    if options.checked_heap {
        Engine::check_heaps();
    }
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("surus-stress: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    let folder = Folder::new()?;
    let ini = [
        ("zend.max_allowed_stack_size", "-1"),
        ("upload_tmp_dir", folder.0.to_str().unwrap_or("/tmp")),
    ];
    let engine = Engine::start(&EngineConfig {
        ini: ini.map(|(k, v)| (k.to_owned(), v.to_owned())).to_vec(),
        dev: false,
        server_name: None,
        store: 0,
        in_turn: false,
        environment: None,
    })?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    LocalSet::new().block_on(&runtime, async {
        engine.enter_worker(Duration::from_millis(10));
        let world = Rc::new(World {
            scripts: Path::new(env!("CARGO_MANIFEST_DIR")).join("php"),
            folder: folder.0.clone(),
            peer: peer::start().await?,
        });
        if options.leaks {
            return leaks::find(&engine, options, &world).await;
        }
        stress(&engine, options, world).await
    })
}

fn limits(options: &Options, hurried: bool) -> AppLimits {
    let time = if hurried { 100 } else { 30_000 };
    AppLimits {
        request_timeout: Some(Duration::from_millis(time * options.slowness)),
        memory_limit: Some("32M".to_owned()),
        ..AppLimits::default()
    }
}

fn classic(
    engine: &Engine,
    options: &Options,
    hurried: bool,
) -> Result<Application, surus_zend::BootError> {
    let config = ClassicConfig {
        limits: limits(options, hurried),
        min_isolates: 2,
        // Fewer than requests: some wait in line. Idle ones are freed at once: all are made and freed again and again.
        max_isolates: 24,
        memory: u64::MAX,
        idle: Duration::from_millis(100),
        recycle: IsolateLimits::default(),
    };
    Ok(Application::Classic(Classic::new(engine, config)?))
}

async fn coroutine(
    engine: &Engine,
    options: &Options,
    world: &World,
    hurried: bool,
) -> Result<Application, surus_zend::BootError> {
    let script = world.scripts.join("app.php");
    Ok(Application::Coroutine(
        Coroutine::boot(engine, &script, limits(options, hurried)).await?,
    ))
}

/// What all the clients share.
struct Run {
    seed: u64,
    scope: Scope,
    world: Rc<World>,
    applications: [Application; 4],
    next: Cell<u64>,
    end: u64,
    deadline: Option<Instant>,
    ended: RefCell<BTreeMap<&'static str, BTreeMap<&'static str, u64>>>,
    wrong: RefCell<Vec<String>>,
}

impl Run {
    fn application(&self, target: Target) -> &Application {
        &self.applications[usize::from(target.coroutine) * 2 + usize::from(target.hurried)]
    }

    /// One client after another takes the next request, until there are no more.
    async fn client(&self) {
        loop {
            let number = self.next.get();
            let late = self.deadline.is_some_and(|at| Instant::now() > at);
            if number >= self.end || late || self.wrong.borrow().len() >= 10 {
                return;
            }
            self.next.set(number + 1);
            let plan = self.scope.plan(self.seed, number);
            let result = client::run(&plan, self.application(plan.target), &self.world).await;
            let how = match result {
                Ok(Ended::Answered) => "answered",
                Ok(Ended::Failed) => "failed",
                Ok(Ended::TimedOut) => "timed out",
                Ok(Ended::Refused) => "refused",
                Ok(Ended::ClientLeft) => "left",
                Err(why) => {
                    eprintln!("WRONG: {why}\n  {plan:?}");
                    self.wrong.borrow_mut().push(why);
                    "wrong"
                }
            };
            *self
                .ended
                .borrow_mut()
                .entry(plan.case.name)
                .or_default()
                .entry(how)
                .or_default() += 1;
        }
    }
}

async fn stress(
    engine: &Engine,
    options: &Options,
    world: Rc<World>,
) -> Result<(), Box<dyn std::error::Error>> {
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let seed = options
        .seed
        .unwrap_or(clock.as_nanos() as u64 % 1_000_000_007);
    println!("seed {seed}");
    let applications = [
        classic(engine, options, false)?,
        classic(engine, options, true)?,
        coroutine(engine, options, &world, false).await?,
        coroutine(engine, options, &world, true).await?,
    ];
    let descriptors = open_descriptors()?;
    let mode = options.mode.as_deref();
    let run = Rc::new(Run {
        seed,
        scope: Scope {
            classic: mode != Some("coroutine"),
            coroutine: mode != Some("classic"),
            only: options.only.clone(),
            without: options.without.clone(),
            slowness: options.slowness,
        },
        world,
        applications,
        next: Cell::new(options.first),
        end: options.first + options.requests,
        deadline: options
            .seconds
            .map(|s| Instant::now() + Duration::from_secs(s)),
        ended: RefCell::default(),
        wrong: RefCell::default(),
    });
    let begun = Instant::now();
    let clients: Vec<_> = (0..options.concurrency)
        .map(|_| {
            let run = run.clone();
            tokio::task::spawn_local(async move { run.client().await })
        })
        .collect();
    for client in clients {
        client.await?;
    }
    settle(&run, options).await?;
    let done = run.next.get() - options.first;
    for (case, how) in run.ended.borrow().iter() {
        let counts: Vec<_> = how
            .iter()
            .map(|(how, count)| format!("{count} {how}"))
            .collect();
        println!("  {case:22} {}", counts.join(", "));
    }
    println!(
        "{done} requests in {:.1} s, RSS {:.1} MB",
        begun.elapsed().as_secs_f64(),
        leaks::resident()? as f64 / 1048576.0
    );
    let wrong = run.wrong.borrow().len();
    if wrong > 0 {
        return Err(format!("{wrong} wrong answers; seed {seed}").into());
    }
    // Those that are kept: a peer's connection may be closing.
    let left = open_descriptors()?;
    if left > descriptors + 4 {
        return Err(format!(
            "{descriptors} descriptors were open before, {left} after; seed {seed}"
        )
        .into());
    }
    Ok(())
}

/// Requests whose clients have left come to their ends, too.
async fn settle(run: &Run, options: &Options) -> Result<(), String> {
    let deadline = Instant::now() + Duration::from_secs(20 * options.slowness.min(5));
    loop {
        let unfinished: Vec<usize> = run
            .applications
            .iter()
            .map(Application::unfinished)
            .collect();
        if unfinished.iter().sum::<usize>() == 0 {
            // Isolates above the minimum are freed, and descriptors of peers closed.
            tokio::time::sleep(Duration::from_millis(400)).await;
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(format!(
                "{unfinished:?} requests never ended; seed {}",
                run.seed
            ));
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn open_descriptors() -> std::io::Result<usize> {
    Ok(fs::read_dir("/proc/self/fd")?.count())
}
