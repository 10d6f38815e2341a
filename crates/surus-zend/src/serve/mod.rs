//! The ways to serve: each turns a request into a response.
//!
//! `classic`, `coroutine` and `worker` run requests: `admission` is the queue in front of them, `turns` shares the thread among
//! tasks that compute, `watch` ends requests that take too long, `stalls` finds calls that block the event loop, `refresh`
//! and `coroutine` change versions, `inspect` reports what runs, `jobs` are pieces of a request's work, `offload` is for work in other processes. `command_line` runs scripts, and `in_process` the
//! applications that they talk to.

mod admission;
pub(crate) mod classic;
pub mod command_line;
pub(crate) mod coroutine;
mod growth;
pub(crate) mod in_process;
pub(crate) mod inspect;
mod jobs;
pub(crate) mod offload;
pub(crate) mod queue;
pub(crate) mod refresh;
pub(crate) mod self_test;
pub(crate) mod stalls;
pub(crate) mod task;
mod turns;
mod watch;
pub(crate) mod worker;
