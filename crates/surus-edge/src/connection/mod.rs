//! A client connection, as its task, its bodies, its flusher and the sweep share it: one enum for each thing that goes on.
//!
//! | machine | states |
//! |---|---|
//! | [`Phase`](phase::Phase): what the client is in the midst of | nothing yet, idle, asked to go, a head, a late head, a request, its answer |
//! | [`Protocol`](phase::Progress) | HTTP/1, HTTP/2 with its streams |
//! | [`Reading`](reading::Reading): whose the next byte is | a head's, a body's, nobody's |
//! | [`Sending`](writing::Sending): what becomes of the output | nothing, it waits for the end of the turn, for the socket |
//! | [`KeepAlive`](state::State): whether another request may follow | yes, no, no and none is waited for |
//! | [`Command`]: what its task is asked to do | finish, retire, abort |
//! | [`Refusals`](refusals::Refusals): what the log will say of what was no request | nothing, its first line, that it was refused |
//!
//! No phase is known by two of them together.

mod commands;
mod phase;
mod reading;
mod refusals;
mod state;
mod writing;

pub(crate) use commands::Command;
pub(crate) use phase::Phase;
pub(crate) use state::State;
