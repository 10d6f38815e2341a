//! The Zend engine, embedded. The only crate with C and with unsafe code.
//!
//! Layout
//!  - `csrc/bridge.h` — the whole contract between C and Rust; `ffi` is what Rust calls, `callbacks` what C does
//!  - `engine` — PHP of this process: started once, before any fork
//!  - `isolate` — a whole PHP: its memory, tables and settings
//!  - `task` — a stack that runs PHP in an isolate, driven as a future
//!  - `exchange` — one HTTP request and its response, as PHP sees them
//!  - `line` — requests that wait for a place; `turns` — those that compute give way to others
//!  - `pipe`, `room`, `spill`, `body` — response bytes on their way to the client; `relief` — those that hold up others
//!  - `blocking` — libc calls that would block, as futures
//!  - `classic`, `coroutine` — the ways to serve: each turns a [`Request`] into a response
//!  - `refresh` — before a reload: files that have changed are forgotten
//!  - `router` — from a request to a route of an application; `php_classes` — the PHP that is part of the binary
//!  - `shared` — memory of a master and its workers; in it `rate` has token buckets and `shared_cache` texts
//!  - `high` — files of Surus's own keep out of PHP's way
//!  - `inspect` — looking into a running server
//!  - `command_line` — scripts as php-cli runs them; `in_process` — applications that they talk to; `changes` — for tests
//!
//! A suspended request is finished, never dropped: when the future that waits for a response is dropped, a task of the
//! event loop goes on with the PHP code and tells it that the client has left.

#![warn(missing_docs)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro)]

mod answers;
mod blocking;
mod body;
mod callbacks;
pub mod changes;
mod classic;
pub mod command_line;
mod coroutine;
mod engine;
mod exchange;
mod ffi;
mod fields;
mod high;
mod in_process;
mod inputs;
mod inspect;
mod isolate;
mod kept_body;
mod line;
mod php_classes;
mod pipe;
mod queue;
mod rate;
mod refresh;
mod relief;
mod request;
mod room;
mod router;
mod self_test;
mod server_variables;
mod shared;
mod shared_cache;
mod spill;
mod task;
mod turns;
mod watch;

pub use body::{BoxError, ResponseBody};
pub use classic::{Classic, ClassicConfig};
pub use coroutine::{Answer, Coroutine, Prepared, RouteInfo};
pub use engine::{BootError, Engine, EngineConfig, StartError};
pub use inspect::{in_flight, watched, InFlight};
pub use isolate::{measure, Internals, IsolateLimits, Swaps};
pub use kept_body::{KeptBody, KeptFile, KeptPiece};
pub use php_classes::{php_sources, NATIVE_STUBS};
pub use pipe::{Pace, Pipe};
pub use relief::Wanted;
pub use request::{Interim, Limits, Request, RequestBody, Script};
pub use room::{bodies_on_disk, give_back_memory, Room};
pub use self_test::SelfTest;
pub use shared::shared_counters;
pub use task::{giving_up, has_given_up};
