//! One storm after the other, in each mode, and what they have shown.

use std::{
    error::Error,
    rc::Rc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use surus_tests::surus::Mode;

use crate::{
    backends::Backends,
    calm::Calm,
    interruption::Interruption,
    operation::Operation,
    plan::Scene,
    server::{Server, PROCESSES},
    storm::{Limit, Offence, Storm},
    tally::Tally,
    verdict::Fault,
    Options,
};

/// How much larger the workers may be at the end, in bytes: what isolates, caches and pools have grown to.
const GROWTH: u64 = 128 << 20;

/// Of Surus\Postgres in each process: php/operations/postgres.php.
const NATIVE_CONNECTIONS: usize = 16;

pub(crate) struct Campaign<'a> {
    options: &'a Options,
    seed: u64,
    operations: Vec<&'static Operation>,
    interruptions: Vec<Interruption>,
    backends: Rc<Backends>,
    total: Tally,
    faults: usize,
}

impl<'a> Campaign<'a> {
    pub(crate) async fn start(
        options: &'a Options,
        operations: Vec<&'static Operation>,
        interruptions: Vec<Interruption>,
    ) -> Result<Campaign<'a>, Box<dyn Error>> {
        let clock = SystemTime::now().duration_since(UNIX_EPOCH)?;
        let seed = options.seed.unwrap_or(clock.as_nanos() as u64 % 1_000_007);
        println!("seed {seed}");
        Ok(Campaign {
            options,
            seed,
            operations,
            interruptions,
            backends: Backends::start(seed).await?,
            total: Tally::default(),
            faults: 0,
        })
    }

    pub(crate) fn faults(&self) -> usize {
        self.faults
    }

    /// Round after round, until there were enough cuts and time, or something was wrong.
    pub(crate) async fn run(&mut self, modes: &[Mode]) -> Result<(), Box<dyn Error>> {
        let begun = Instant::now();
        let least = Duration::from_secs(self.options.total_seconds);
        for round in 0.. {
            for mode in modes {
                self.mode(*mode, round).await?;
            }
            let enough = self.total.total().cut >= self.options.cuts && begun.elapsed() >= least;
            if enough || self.faults > 0 {
                break;
            }
        }
        println!("by operation");
        for (name, row) in self.total.operations() {
            println!("  {name:30} {row}");
        }
        println!("by extension");
        for (name, row) in self.total.extensions() {
            println!("  {name:30} {row}");
        }
        println!("  {:30} {}", "all", self.total.total());
        Ok(())
    }

    /// All storms in one mode: those that one server can have one after the other, then those with one of their own.
    async fn mode(&mut self, mode: Mode, round: u64) -> Result<(), Box<dyn Error>> {
        let all = self.interruptions.iter().copied();
        let (own, together): (Vec<_>, Vec<_>) = all.partition(|each| each.needs_its_own_server());
        if !together.is_empty() {
            self.server(mode, &together, round).await?;
        }
        for interruption in own {
            self.server(mode, &[interruption], round).await?;
        }
        Ok(())
    }

    async fn server(
        &mut self,
        mode: Mode,
        interruptions: &[Interruption],
        round: u64,
    ) -> Result<(), Box<dyn Error>> {
        let server = Server::start(mode, interruptions[0], &self.backends);
        let watch = tokio::task::spawn_local(server.clone().watch());
        let seed = self.seed + round;
        let scene = |interruption| Scene {
            seed,
            mode,
            interruption,
        };
        // Where nobody has time, nothing is calm.
        let calm = match interruptions {
            [Interruption::Deadline] => Interruption::Deadline,
            _ => Interruption::Nothing,
        };
        // What it has open once every path has been gone by many at a time.
        let warm = Scene {
            seed: seed + 1_000_000_000,
            ..scene(calm)
        };
        self.storm(&server, warm, 1.0).await;
        let (descriptors, memory) = (server.descriptors(), server.memory());
        for interruption in interruptions {
            if *interruption == Interruption::Stop {
                continue;
            }
            self.storm(&server, scene(*interruption), self.options.seconds)
                .await;
            if *interruption == Interruption::Reload {
                server.settled(Duration::from_secs(60)).await;
                server.changing.set(false);
            }
        }
        let mut tally = Tally::default();
        let mut calm = Calm {
            scene: scene(calm),
            server: &server,
            backends: &self.backends,
            tally: &mut tally,
        };
        let mut offences = calm.repeat(&self.operations, self.options.repeat).await;
        let persistent = self
            .operations
            .iter()
            .filter(|it| it.is_persistent())
            .count();
        let kept = match mode {
            Mode::Coroutine => persistent * self.options.concurrency as usize,
            // Clients of Surus\Postgres open connections up to their number, when requests of a process first need as many.
            Mode::Process => PROCESSES * NATIVE_CONNECTIONS,
            Mode::Classic | Mode::Snapshot => 0,
        };
        offences.extend(calm.descriptors(descriptors, kept).await);
        let grown = server.memory();
        println!(
            "{:28} {}, descriptors {descriptors} -> {}, memory {} -> {} MB",
            format!("{} afterwards", mode.name()),
            tally.total(),
            server.descriptors(),
            memory >> 20,
            grown >> 20,
        );
        if grown > memory + GROWTH {
            offences.push(Offence {
                fault: Fault::Left,
                text: format!(
                    "memory has grown from {} to {} MB",
                    memory >> 20,
                    grown >> 20
                ),
            });
        }
        self.total.add(&tally);
        // A second SIGTERM would cut off the requests that the first one lets end.
        if interruptions.contains(&Interruption::Stop) {
            self.storm(&server, scene(Interruption::Stop), 10.0).await;
        } else {
            server.stop();
        }
        offences.extend(end(&server).await);
        watch.abort();
        self.report(&format!("{} afterwards", mode.name()), &offences);
        Ok(())
    }

    async fn storm(&mut self, server: &Rc<Server>, scene: Scene, seconds: f64) {
        let begun = Instant::now();
        let storm = Storm {
            scene,
            operations: self.operations.clone(),
            server: server.clone(),
            backends: self.backends.clone(),
            concurrency: self.options.concurrency,
            limit: Limit {
                first: self.options.first,
                requests: self.options.requests,
                until: begun + Duration::from_secs_f64(seconds),
            },
        };
        let (tally, wrong) = storm.run().await;
        server.look();
        // A death explains what came of the requests.
        let mut offences: Vec<_> = deaths(server.deaths()).collect();
        offences.extend(wrong);
        let name = format!("{} {}", scene.mode.name(), scene.interruption.name());
        let seconds = begun.elapsed().as_secs_f64();
        println!("{name:28} {} in {seconds:.1} s", tally.total());
        self.total.add(&tally);
        self.report(&name, &offences);
    }

    /// The first ones in full, the others counted.
    fn report(&mut self, scene: &str, offences: &[Offence]) {
        for Offence { fault, text } in offences.iter().take(4) {
            println!("WRONG, seed {}, {scene}: {fault:?}, {text}", self.seed);
        }
        if offences.len() > 4 {
            println!("  and {} more", offences.len() - 4);
        }
        self.faults += offences.len();
    }
}

/// SIGTERM ends the server, with 0.
async fn end(server: &Rc<Server>) -> Vec<Offence> {
    let mut problems = server.deaths();
    match server.ended(Duration::from_secs(60)).await {
        Some(status) if status.success() => {}
        Some(status) => problems.push(format!("the master has ended: {status}")),
        None => problems.push("the server does not end after SIGTERM".to_owned()),
    }
    deaths(problems).collect()
}

fn deaths(problems: Vec<String>) -> impl Iterator<Item = Offence> {
    let fault = Fault::Death;
    problems
        .into_iter()
        .map(move |text| Offence { fault, text })
}
