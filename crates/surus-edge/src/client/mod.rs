//! Who the client is: as the socket says, a PROXY header, or a proxy that is trusted.
//!
//! - [`connection`]: who is at the other end, and where it has connected to
//! - [`network`], [`proxies`], [`forwarded`], [`claims`]: proxies that are trusted, what they say, and headers that say the same
//! - [`proxy_protocol`]: the PROXY protocol
//! - [`hosts`]: which name it means

pub(crate) mod claims;
pub(crate) mod connection;
pub(crate) mod forwarded;
pub(crate) mod hosts;
pub(crate) mod network;
pub(crate) mod proxies;
pub(crate) mod proxy_protocol;
