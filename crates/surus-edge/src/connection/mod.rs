//! A client connection, as its task, its bodies, the flusher and the sweep share it: one state machine, an enum, for
//! each independent aspect.
//!
//! | machine | states |
//! |---|---|
//! | [`Phase`]: what the client does | new, idle, dismissed, sends a head, late with it, has a request, its response |
//! | [`Protocol`](phase::Progress) | HTTP/1, HTTP/2 with its streams |
//! | [`Reading`](reading::Reading): where the next byte belongs | to a head, to a body, nowhere |
//! | [`Sending`](writing::Sending): what happens to the output | nothing, waits for the turn's end, for the socket |
//! | [`KeepAlive`](state::State): whether another request may follow | yes, a last one, a promised one, no |
//! | [`Command`]: what its task is asked to do | finish, retire, abort |
//! | [`RefusedInput`](refused_input::RefusedInput): what is logged of bad input | nothing, its first line, refused |
//!
//! No state is a combination of two machines.
//!
//! The other modules:
//!
//! - [`transport`]: reads and writes bytes; [`socket`]: received bytes that nobody has taken yet
//! - [`buffers`]: the buffer pool; [`output`], [`flusher`]: gather what is written
//! - [`timeouts`], [`slow_reader`]: checks of all connections, once a second

pub(crate) mod buffers;
mod closing;
mod commands;
pub(crate) mod flusher;
pub(crate) mod output;
mod phase;
mod reading;
mod refused_input;
mod slow_reader;
pub(crate) mod socket;
mod state;
pub(crate) mod timeouts;
pub(crate) mod transport;
mod writing;

pub(crate) use commands::Command;
pub(crate) use phase::Phase;
pub(crate) use state::State;
