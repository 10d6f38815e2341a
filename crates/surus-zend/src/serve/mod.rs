//! The ways to serve: each turns a request into a response.
//!
//! `classic` and `coroutine` have what requests need: `line` lets them wait for a place, `turns` lets those that compute
//! give way, `watch` ends those that last too long, `refresh` and `coroutine` change versions, `inspect` looks into what
//! runs. `command_line` runs scripts, and `in_process` the applications that they talk to.

pub(crate) mod classic;
pub mod command_line;
pub(crate) mod coroutine;
pub(crate) mod in_process;
pub(crate) mod inspect;
mod line;
pub(crate) mod refresh;
pub(crate) mod self_test;
pub(crate) mod task;
mod turns;
mod watch;
