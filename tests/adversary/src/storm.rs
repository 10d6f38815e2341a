//! Hundreds of overlapping requests to one server, and what happens beside them.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
    time::{Duration, Instant},
};

use nix::sys::signal::Signal;
use tokio::{net::TcpStream, task::JoinHandle, time::sleep};

use crate::{
    backends::Backends,
    exchange,
    interruption::Interruption,
    operation::{Operation, NOISE},
    plan::{Plan, Scene},
    server::Server,
    tally::Tally,
    verdict::{judge, Fault, Verdict},
};

/// After so many wrong answers nothing new is learned.
const ENOUGH: usize = 20;
const IDLE_CLIENTS: usize = 1100;
const NEIGHBOURS: u64 = 20;

pub(crate) struct Storm {
    pub(crate) scene: Scene,
    pub(crate) operations: Vec<&'static Operation>,
    pub(crate) server: Rc<Server>,
    pub(crate) backends: Rc<Backends>,
    pub(crate) concurrency: u64,
    pub(crate) limit: Limit,
}

/// When no more requests are started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit {
    pub(crate) first: u64,
    pub(crate) requests: u64,
    pub(crate) until: Instant,
}

/// What has gone wrong: the fault, and the exchange.
#[derive(Debug, Clone)]
pub(crate) struct Offence {
    pub(crate) fault: Fault,
    pub(crate) text: String,
}

struct Run {
    storm: Storm,
    next: Cell<u64>,
    tally: RefCell<Tally>,
    /// What an operation takes that nobody interrupts.
    usual: RefCell<HashMap<&'static str, Duration>>,
    offences: RefCell<Vec<Offence>>,
    over: Cell<bool>,
}

impl Storm {
    pub(crate) async fn run(self) -> (Tally, Vec<Offence>) {
        self.backends.set_weather(self.scene.interruption.weather());
        let run = Rc::new(Run {
            next: Cell::new(self.limit.first),
            storm: self,
            tally: RefCell::default(),
            usual: RefCell::default(),
            offences: RefCell::default(),
            over: Cell::new(false),
        });
        let beside = tokio::task::spawn_local(run.clone().beside());
        let clients: Vec<_> = (0..run.storm.concurrency)
            .map(|_| tokio::task::spawn_local(run.clone().client()))
            .collect();
        join(clients).await;
        run.over.set(true);
        join(vec![beside]).await;
        (run.tally.take(), run.offences.take())
    }
}

impl Run {
    fn is_over(&self) -> bool {
        let limit = &self.storm.limit;
        self.over.get()
            || self.next.get() >= limit.first + limit.requests
            || Instant::now() > limit.until
            || self.offences.borrow().len() >= ENOUGH
    }

    async fn client(self: Rc<Self>) {
        while !self.is_over() {
            let number = self.next.get();
            self.next.set(number + 1);
            let plan = self.storm.scene.plan(&self.storm.operations, number);
            let verdict = self.request(&plan).await;
            let refuses = self.storm.scene.interruption == Interruption::Stop;
            if refuses && verdict == Verdict::Declared {
                return;
            }
        }
    }

    async fn request(&self, plan: &Plan) -> Verdict {
        let name = plan.operation.name;
        let proxy = plan
            .operation
            .backend
            .map(|backend| self.storm.backends.proxy(backend));
        let usual = self.usual.borrow().get(name).copied();
        let usual = usual.unwrap_or(Duration::from_millis(30));
        let begun = Instant::now();
        let outcome = exchange::run(plan, self.storm.server.address(), proxy, usual).await;
        let verdict = judge(&self.storm.scene, plan, outcome);
        self.tally.borrow_mut().note(plan, &verdict);
        match &verdict {
            Verdict::Right => {
                let mean = (usual * 7 + begun.elapsed()) / 8;
                self.usual.borrow_mut().insert(name, mean);
            }
            Verdict::Wrong(fault, text) => {
                let text = format!("request {}: {}\n    {text}", plan.number, plan.target());
                let fault = *fault;
                self.offences.borrow_mut().push(Offence { fault, text });
            }
            _ => {}
        }
        verdict
    }

    /// What happens meanwhile.
    async fn beside(self: Rc<Self>) {
        let server = &self.storm.server;
        match self.storm.scene.interruption {
            Interruption::BackendKill => {
                while self.pause(150).await {
                    if let Err(error) = self.storm.backends.kill_connections().await {
                        eprintln!("surus-adversary: {error}");
                    }
                }
            }
            Interruption::ServerKill => {
                while self.pause(400).await {
                    self.storm.backends.restart().await;
                }
            }
            Interruption::Reload => {
                server.changing.set(true);
                while self.pause(400).await {
                    server.signal(Signal::SIGHUP);
                }
            }
            Interruption::Stop => {
                self.pause(300).await;
                server.stop();
                self.pause(300).await;
                self.over.set(true);
            }
            Interruption::HighDescriptors => {
                let mut idle = Vec::new();
                for _ in 0..IDLE_CLIENTS {
                    idle.extend(TcpStream::connect(server.address()).await);
                }
                while self.pause(100).await {}
            }
            Interruption::Neighbours => {
                let neighbours = (0..NEIGHBOURS)
                    .map(|number| tokio::task::spawn_local(self.clone().neighbour(number)))
                    .collect();
                join(neighbours).await;
            }
            _ => {}
        }
    }

    async fn neighbour(self: Rc<Self>, number: u64) {
        let scene = &self.storm.scene;
        let series = format!("n{}y{number}", scene.name());
        let mut count = 0;
        while !self.over.get() {
            let plan = Plan::calm(&NOISE, scene.seed, &series, count).with_delay(300);
            count += 1;
            self.request(&plan).await;
        }
    }

    /// Waits; false once the storm is over.
    async fn pause(&self, milliseconds: u64) -> bool {
        let end = Instant::now() + Duration::from_millis(milliseconds);
        while Instant::now() < end && !self.over.get() {
            sleep(Duration::from_millis(10)).await;
        }
        !self.over.get()
    }
}

async fn join(tasks: Vec<JoinHandle<()>>) {
    for task in tasks {
        if let Err(error) = task.await {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}
