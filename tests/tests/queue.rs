//! Queues: jobs that outlive requests, processes and the server.
#![forbid(unsafe_code)]

#[path = "queue/batches.rs"]
mod batches;
#[path = "queue/disk.rs"]
mod disk;
#[path = "queue/example.rs"]
mod example;
#[path = "queue/jobs.rs"]
mod jobs;
#[path = "queue/kills.rs"]
mod kills;
#[path = "queue/laravel.rs"]
mod laravel;
#[path = "queue/messenger.rs"]
mod messenger;
#[path = "queue/proof.rs"]
mod proof;
#[path = "queue/reloads.rs"]
mod reloads;
#[path = "queue/sidecars.rs"]
mod sidecars;
#[path = "queue/streams.rs"]
mod streams;
#[path = "queue/support.rs"]
mod support;
#[path = "queue/taken.rs"]
mod taken;
