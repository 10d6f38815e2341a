//! The Zend engine, embedded. The only crate with C and with unsafe code.
//!
//! Layout: dependencies between folders point one way, from the first row to the last
//!  - `ffi` — what Rust calls of `csrc/bridge.h`, which is the whole contract with C
//!  - `high` — gives Surus's own files descriptors above those of PHP
//!  - `shared` — shared by the master and its workers: token buckets, the store of applications, which worker leads,
//!    letters between workers
//!  - `engine` — PHP of this process: started once, before any fork; isolates, which are complete PHPs; the PHP classes
//!    in the binary
//!  - `blocking` — libc calls that would block, as futures
//!  - `body` — response bytes on their way to the client, uploads on their way to PHP
//!  - `router` — from a request to a route of an application
//!  - `exchange` — one HTTP request and its response, as PHP sees them
//!  - `serve` — tasks, which are stacks that run PHP in an isolate, and the ways to serve with them: each turns a
//!    [`Request`] into a response
//!  - `callbacks` — what C calls of `csrc/bridge.h`
//!
//! A suspended request is finished, never dropped: when the future that waits for a response is dropped, a task of the
//! event loop continues the PHP code and tells it that the client has disconnected.

#![warn(missing_docs)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro)]

mod blocking;
mod body;
mod callbacks;
mod engine;
mod exchange;
mod ffi;
mod high;
mod router;
mod serve;
mod shared;

pub use body::event_stream::{
    beat_event_streams, end_event_streams, event_streams, EventStream, Opening, Since,
    Wanted as WantedChannel,
};
pub use body::kept_body::{KeptBody, KeptFile, KeptPiece};
pub use body::pipe::{Pace, Pipe};
pub use body::relief::Wanted;
pub use body::response_body::{BoxError, ResponseBody};
pub use body::room::{bodies_on_disk, give_back_memory, Room};
pub use body::websocket::extension::{
    agree as agree_on_compression, window as compression_window, without_websocket_compression,
};
pub use body::websocket::{
    socket_counts, without_websockets, SocketClose, SocketCounts, SocketMessage, SocketOutput,
    WebSocket,
};
pub use callbacks::pools::{pools, Pool};
pub use engine::changes;
pub use engine::isolate::{measure, Internals, IsolateLimits};
pub use engine::php_classes::{php_sources, NATIVE_STUBS};
pub use engine::process::{BootError, Connections, Engine, EngineConfig, StartError};
pub use exchange::owed::owed;
pub use exchange::request::{AppLimits, Interim, Request, RequestBody, Script};
pub use ffi::Swaps;
pub use serve::classic::{Classic, ClassicConfig};
pub use serve::command_line;
pub use serve::coroutine::{Answer, Coroutine, JobEnd, Prepared, RouteInfo, TimerInfo};
pub use serve::inspect::{in_flight, watched, InFlight};
pub use serve::offload::{offload_to, NoAnswer, Offload, Offloading};
pub use serve::queue::{queue_with, Keeper, QueueAnswer};
pub use serve::self_test::SelfTest;
pub use serve::stalls::{detect_stalls, stalls, Stall, Stalls};
pub use serve::task::{giving_up, has_given_up};
pub use serve::worker::{BootScript, PreparedIsolates, WorkerMode};
pub use shared::channels::{
    channels, channels_between, enter_channels, leave_channels, reach_channels,
};
pub use shared::lead::{leave as lead_no_more, leave_webhooks, take_webhooks};
pub use shared::memory::shared_counters;
pub use shared::post::is_alone;
pub use shared::store::{figures as store_figures, StoreFigures};
