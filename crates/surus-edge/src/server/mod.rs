//! Accepts connections and drives them to their end.
//!
//! - [`listener`]: the accept loops, the bound on connections, the drain
//! - [`opening`]: the protocol of a connection; [`lifecycle`]: its turns, and its end

pub(crate) mod lifecycle;
pub(crate) mod listener;
pub(crate) mod opening;
