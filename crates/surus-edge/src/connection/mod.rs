//! A client connection, as its task, its bodies, its flusher and the sweep share it: one enum for each thing that goes on.
//!
//! | machine | states |
//! |---|---|
//! | [`Phase`]: what the client is in the midst of | nothing yet, idle, asked to go, a head, a late head, a request, its answer |
//! | [`Protocol`](phase::Progress) | HTTP/1, HTTP/2 with its streams |
//! | [`Reading`](reading::Reading): whose the next byte is | a head's, a body's, nobody's |
//! | [`Sending`](writing::Sending): what becomes of the output | nothing, it waits for the end of the turn, for the socket |
//! | [`KeepAlive`](state::State): whether another request may follow | yes, no, no and none is waited for |
//! | [`Command`]: what its task is asked to do | finish, retire, abort |
//! | [`RefusedInput`](refused_input::RefusedInput): what the log will say of what was no request | nothing, its first line, that it was refused |
//!
//! No phase is known by two of them together.
//!
//! What it works with:
//!
//! - [`transport`]: its bytes; [`socket`]: what has come and is nobody's yet
//! - [`buffers`], [`output`], [`flusher`]: what is read, and what is written, gathered
//! - [`timeouts`], [`slow_reader`]: what is judged of all connections once a second

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
