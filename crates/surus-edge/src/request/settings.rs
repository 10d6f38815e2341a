use crate::{AccessLog, HostName, Proxies};

/// What an edge does beside passing requests on. By default: nothing.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Where a line is written for each request.
    pub access_log: Option<AccessLog>,
    /// Whether responses are compressed for clients that take it.
    pub compression: bool,
    /// Whose word about clients counts.
    pub proxies: Proxies,
    /// The names that requests may be for; none: any.
    pub allowed_hosts: Vec<HostName>,
    /// Each connection begins with a header of the PROXY protocol.
    pub proxy_protocol: bool,
    /// Long static files are sent with sendfile(2).
    pub zero_copy: bool,
    /// Requests and responses have an `X-Request-Id`, requests a `traceparent` as well.
    pub request_ids: bool,
    /// Paths that are answered without the backend.
    pub health: Health,
}

/// Paths at which orchestrators ask how a worker is.
#[derive(Clone, Debug, Default)]
pub struct Health {
    /// 200 as long as the worker's event loop turns.
    pub live: Option<String>,
    /// 200 as long as new requests are welcome, 503 once the worker is about to end.
    pub ready: Option<String>,
}

impl Health {
    pub(crate) fn is_off(&self) -> bool {
        self.live.is_none() && self.ready.is_none()
    }
}
