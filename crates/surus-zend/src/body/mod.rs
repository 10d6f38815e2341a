//! Bytes of bodies: responses on their way to the client, uploads on their way to PHP.
//!
//! `pipe` is between PHP and the client; `room` counts the bytes of all bodies and `spill` writes the excess to disk;
//! `relief` ends responses that hold up others; `websocket` has messages in both directions, its `subscriptions` those for many; `event_stream` sends what is
//! published to clients for which no PHP runs; `kept_body` and `hand_over` pass uploaded files to PHP.

pub(crate) mod event_stream;
pub(crate) mod hand_over;
pub(crate) mod kept_body;
pub(crate) mod pipe;
pub(crate) mod relief;
pub(crate) mod response_body;
pub(crate) mod room;
pub(crate) mod spill;
pub(crate) mod websocket;
