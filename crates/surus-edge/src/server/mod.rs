//! Connections from their first byte to their last.
//!
//! - [`listener`]: the accept loops, the bound on connections, the drain
//! - [`opening`]: what a connection speaks; [`lifecycle`]: its turns, and its end

pub(crate) mod lifecycle;
pub(crate) mod listener;
pub(crate) mod opening;
