//! The harness of the end-to-end tests: real servers in temporary folders, and small HTTP clients.
//!
//! ```text
//! surus, reference        the server under test; nginx + php-fpm serving the same folder
//! postgres, mariadb,      the services that PHP scripts wait for
//! redis, memcached,
//! ldap, slow
//! dam                     a proxy that holds packets back
//! wordpress, apps         Debian's WordPress, and applications of frameworks, laid out in folders of their own
//! http, browser, parallel clients: one exchange, a user with cookies, many at once
//! http2, websocket        clients that send the frames they are told to
//! pusher                  a client of the Pusher protocol, and a server that signs
//! process, watchdog,      child processes and folders that end with the test, however it ends
//! temp, ports, system_v
//! valgrind                what sees each access to freed memory
//! random                  numbers that depend on a seed only
//! waiting                 for what another process does
//! ```
//!
//! Nothing outlives a test binary: a value's `Drop` stops its server, and what lives in a `static`
//! (the shared databases) is stopped by the [`watchdog`], as is everything if the binary is killed.
#![forbid(unsafe_code)]

pub mod apps;
pub mod browser;
pub mod dam;
pub mod gate;
pub mod http;
pub mod http2;
pub mod ldap;
pub mod mariadb;
pub mod memcached;
pub mod nginx;
pub mod parallel;
pub mod ports;
pub mod postgres;
pub mod process;
pub mod pusher;
pub mod random;
pub mod redis;
pub mod reference;
pub mod repeater;
mod serving;
pub mod slow;
pub mod surus;
pub mod system_v;
pub mod temp;
pub mod valgrind;
pub mod waiting;
mod watchdog;
pub mod websocket;
pub mod wordpress;

use std::path::PathBuf;

/// A file or folder below `tests/fixtures`.
pub fn fixture(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures")
        .join(name);
    assert!(path.exists(), "no fixture {}", path.display());
    path
}
