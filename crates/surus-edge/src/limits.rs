use std::time::Duration;

/// The bounds of one edge. Reaching one is an answer (503, 413, 431, 408), never a silent stall.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Open client connections; one more is answered 503 with `Retry-After` and closed.
    pub connections: usize,
    /// Bytes of request line and headers together (431). hyper wants at least 8192.
    pub header_bytes: usize,
    /// Bytes of a request body (413).
    pub body_bytes: u64,
    /// From the first byte of a request to the end of its headers (408). Whole seconds, counted by a clock that ticks
    /// once a second, so it fires up to a second late.
    pub header_timeout: Duration,
    /// How long a connection may stay open between requests. Same clock.
    pub keep_alive: Duration,
    /// How long requests in flight may take to finish once a drain has begun.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 16_384,
            header_bytes: 64 * 1024,
            body_bytes: 8 * 1024 * 1024,
            header_timeout: Duration::from_secs(15),
            keep_alive: Duration::from_secs(75),
            drain: Duration::from_secs(30),
        }
    }
}
