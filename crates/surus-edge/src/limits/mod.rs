//! What clients may take.
//!
//! - [`allowance`]: how long one is waited for that is to send or to take something
//! - [`connections_per_address`]: how many connections one may have
//! - [`time_slice`]: how long one is served before others have their turn

pub(crate) mod allowance;
pub(crate) mod connections_per_address;
pub(crate) mod time_slice;

use std::time::Duration;

use crate::limits::allowance::Allowance;

/// The bounds of one edge. Reaching one is an answer (503, 413, 431, 408), never a silent stall.
///
/// The clock of the connections' timeouts ticks once a second, so they fire up to a second late.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Open client connections. One more takes the place of an idle one, or is answered 503 with `Retry-After` and closed.
    pub connections: usize,
    /// The same from one address, of IPv6 from one network of 64 bits; zero is no bound. An idle one gives way. Those of
    /// trusted proxies are not counted, but those of whom the PROXY protocol names.
    pub connections_per_address: usize,
    /// Whether this machine's own are counted: they are a proxy's, or a benchmark's.
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
    /// Bytes for which a client is given one more second to send or to take them: what is long may take long, but a
    /// drip is cut. Zero: only the timeouts count.
    pub min_rate: u64,
    /// How long a connection may stay open between requests.
    pub keep_alive: Duration,
    /// How long requests in flight may take to finish once a drain has begun.
    pub drain: Duration,
}

impl Limits {
    /// What a client is given to send a request's body.
    pub(crate) fn to_send(&self) -> Allowance {
        Allowance::new(self.body_timeout, self.min_rate)
    }

    /// What a client is given to take what was written to it.
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
