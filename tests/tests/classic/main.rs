//! Classic mode behaves like php-fpm: every request here goes to Surus and to nginx + php-fpm, which serve the
//! same folder, and the answers must be the same.
#![forbid(unsafe_code)]

mod clients;
mod compare;
mod endings;
mod files;
mod headers;
mod server;
mod sessions;
mod uploads;

use compare::{both, reference, same, surus};

const MODE: &str = "classic";
/// That serve the requests.
const PROCESSES: usize = 1;
