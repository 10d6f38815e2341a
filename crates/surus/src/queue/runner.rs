//! Runs the jobs of a coroutine application in this worker.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use surus_queue::{Client, Delivery};
use surus_zend::Coroutine;
use tokio::task::spawn_local;

use super::keeper::{back, client, described};
use super::policy::Declared;

type Queues = Rc<HashMap<String, Declared>>;

/// From now on this worker takes the jobs of the queues that the current version has declared.
pub(crate) fn follow(app: &Coroutine) {
    let Some(client) = client() else {
        return;
    };
    let declared = app
        .queues()
        .map_or_else(Vec::new, |json| Declared::all(&json));
    let subscriptions = declared.iter().map(Declared::subscription).collect();
    let queues = declared
        .into_iter()
        .map(|queue| (queue.name().to_owned(), queue));
    let queues: Queues = Rc::new(queues.collect());
    let (app, running) = (app.clone(), client.clone());
    client.subscribe(
        subscriptions,
        Rc::new(move |job| {
            spawn_local(run(app.clone(), running.clone(), Rc::clone(&queues), job));
        }),
    );
}

/// This worker takes no more jobs: it ends.
pub(crate) fn rest() {
    if let Some(client) = client() {
        let own = client.clone();
        let refuse = move |job: Delivery| own.end(job.id, back(Duration::ZERO));
        client.subscribe(Vec::new(), Rc::new(refuse));
    }
}

async fn run(app: Coroutine, client: Client, queues: Queues, job: Delivery) {
    let Some(queue) = queues.get(&job.queue) else {
        return client.end(job.id, back(Duration::ZERO));
    };
    let begun = Instant::now();
    let head = described(&job);
    let end = app
        .run_job(&job.queue, head, job.payload.clone(), queue.limit())
        .await;
    client.end(job.id, queue.ending(&job, end, begun.elapsed()));
}
