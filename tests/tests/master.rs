//! The master: reloads, upgrades and deaths under load, and what an operator sees of them.
#![forbid(unsafe_code)]

#[path = "master/admin.rs"]
mod admin;
#[path = "master/commands.rs"]
mod commands;
#[path = "master/dev.rs"]
mod dev;
#[path = "master/doors.rs"]
mod doors;
#[path = "master/ends.rs"]
mod ends;
#[path = "master/failures.rs"]
mod failures;
#[path = "master/hardening.rs"]
mod hardening;
#[path = "master/late.rs"]
mod late;
#[path = "master/load.rs"]
mod load;
#[path = "master/logs.rs"]
mod logs;
#[path = "master/permitted.rs"]
mod permitted;
#[path = "master/recycle.rs"]
mod recycle;
#[path = "master/reload.rs"]
mod reload;
#[path = "master/signals.rs"]
mod signals;
#[path = "master/soak.rs"]
mod soak;
#[path = "master/start.rs"]
mod start;
#[path = "master/system.rs"]
mod system;
