//! Limits on what clients may use.
//!
//! - [`allowance`]: how long the edge waits for a client to send or to take something
//! - [`connections_per_address`]: how many connections a client may have
//! - [`time_slice`]: how long a client is served before others have their turn

pub(crate) mod allowance;
pub(crate) mod connections_per_address;
pub(crate) mod time_slice;

use std::time::Duration;

use crate::limits::allowance::Allowance;

/// The limits of one edge. When one is reached the client gets a response (503, 413, 431, 408), never a silent stall.
///
/// The clock of the connections' timeouts ticks once a second, so they fire up to a second late.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Open client connections. A further one replaces an idle one, or gets a 503 with `Retry-After` and is closed.
    pub connections: usize,
    /// The same for one IPv4 address, or one IPv6 network of 64 bits; zero means no limit. An idle connection makes
    /// room. Connections of trusted proxies are not counted; with the PROXY protocol, those of the clients that it
    /// names are.
    pub connections_per_address: usize,
    /// Whether connections from this machine are counted: usually they come from a proxy or a benchmark.
    pub counts_loopback: bool,
    /// Bytes of request line and headers together (431).
    pub header_bytes: usize,
    /// Headers of one request (431).
    pub header_count: usize,
    /// Bytes of a request body (413).
    pub body_bytes: u64,
    /// From the first byte of a request to the end of its headers (408), and from the connection to that first byte.
    pub header_timeout: Duration,
    /// How long the edge waits for a request's body in all (408); [`Limits::min_rate`] lengthens it.
    pub body_timeout: Duration,
    /// How long the edge waits in all for a client that does not read its response; [`Limits::min_rate`] lengthens it.
    /// Then the connection is cut.
    pub write_timeout: Duration,
    /// Bytes for which a client gets one more second to send or to take them: large bodies may take long, but very slow
    /// transfers are cut off. Zero: only the timeouts count.
    pub min_rate: u64,
    /// How long a connection may stay open between requests.
    pub keep_alive: Duration,
    /// How long requests in flight may take to finish once a drain has begun.
    pub drain: Duration,
}

impl Limits {
    /// The time for a client to send a request's body.
    pub(crate) fn to_send(&self) -> Allowance {
        Allowance::new(self.body_timeout, self.min_rate)
    }

    /// The time for a client to read what was written to it.
    pub(crate) fn to_take(&self) -> Allowance {
        Allowance::new(self.write_timeout, self.min_rate)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 16_384,
            connections_per_address: 2048,
            counts_loopback: false,
            header_bytes: 64 * 1024,
            header_count: 100,
            body_bytes: 8 * 1024 * 1024,
            header_timeout: Duration::from_secs(15),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
            min_rate: 1024,
            keep_alive: Duration::from_secs(75),
            drain: Duration::from_secs(30),
        }
    }
}
