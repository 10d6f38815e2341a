//! Queues: jobs that outlive processes.
//!
//! ```text
//!   PHP ── push ──► keeper ──► surus_queue::Client ──► the process that has the jobs
//!   PHP ◄─ fiber ── runner ◄── surus_queue::Client ◄──┘
//! ```
//!
//! - [`place`]: the folder of the jobs, and the process that has them
//! - [`keeper`]: what PHP asks, in every mode and in `surus php`
//! - [`runner`]: runs the jobs of a coroutine application; [`policy`]: what follows from how one has ended
//! - [`command`]: `surus queue`

mod command;
mod keeper;
mod place;
mod policy;
mod runner;

pub(crate) use command::{counts, run};
pub(crate) use keeper::{in_command, in_server, settle};
pub(crate) use place::{companion, folder_of};
pub(crate) use runner::{follow, rest};
