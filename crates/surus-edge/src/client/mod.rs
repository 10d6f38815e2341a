//! Finds out who the client is: from the socket, a PROXY header, or a trusted proxy.
//!
//! - [`connection`]: the addresses of a connection
//! - [`network`], [`proxies`], [`forwarded`], [`claims`]: trusted proxies, their headers, and other headers with such
//!   claims
//! - [`proxy_protocol`]: the PROXY protocol
//! - [`hosts`]: the accepted host names

pub(crate) mod claims;
pub(crate) mod connection;
pub(crate) mod forwarded;
pub(crate) mod hosts;
pub(crate) mod network;
pub(crate) mod proxies;
pub(crate) mod proxy_protocol;
