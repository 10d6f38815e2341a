//! PHP in processes of its own: all that classic mode promises, and what is different.
#![forbid(unsafe_code)]

#[path = "../classic/clients.rs"]
mod clients;
#[path = "../classic/compare.rs"]
mod compare;
#[path = "../classic/endings.rs"]
mod endings;
mod extension;
#[path = "../classic/files.rs"]
mod files;
#[path = "../classic/headers.rs"]
mod headers;
mod own;
#[path = "../classic/server.rs"]
mod server;
#[path = "../classic/sessions.rs"]
mod sessions;
#[path = "../classic/uploads.rs"]
mod uploads;

use compare::{both, reference, same, surus};

const MODE: &str = "process";
/// That serve the requests.
const PROCESSES: usize = 8;
