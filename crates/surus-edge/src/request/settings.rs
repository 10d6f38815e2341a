use crate::{AccessLog, HostName, Proxies};

/// What an edge does in addition to passing requests to the backend. By default: nothing.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The access log: one line for each request.
    pub access_log: Option<AccessLog>,
    /// Whether responses are compressed for clients that accept it.
    pub compression: bool,
    /// Proxies whose headers about clients are trusted.
    pub proxies: Proxies,
    /// Host names that requests may be for; if empty, any.
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

/// The paths of health checks.
#[derive(Clone, Debug, Default)]
pub struct Health {
    /// 200 as long as the worker's event loop runs.
    pub live: Option<String>,
    /// 200 as long as new requests are accepted, 503 once the worker drains.
    pub ready: Option<String>,
}

impl Health {
    pub(crate) fn is_off(&self) -> bool {
        self.live.is_none() && self.ready.is_none()
    }
}
