//! Bytes of bodies: responses on their way to the client, uploads on their way to PHP.
//!
//! `pipe` is between PHP and the client; `room` counts what all bodies hold and `spill` writes to disk what is over;
//! `relief` ends those that hold up others; `kept_body` and `hand_over` make files that came with a form PHP's.

pub(crate) mod hand_over;
pub(crate) mod kept_body;
pub(crate) mod pipe;
pub(crate) mod relief;
pub(crate) mod response_body;
pub(crate) mod room;
pub(crate) mod spill;
