//! Connections and input that are refused before there is a request: which client has sent it, and why. They are
//! counted, and written to the access log, where programs that lock such clients out (fail2ban) find them.

use http::StatusCode;

use crate::Peer;

/// Why something is refused without the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The input is not a request.
    Malformed,
    /// The input is the beginning of TLS.
    Tls,
    /// The input violates HTTP/2.
    Http2,
    /// The input is not a header of the PROXY protocol, or does not come from a trusted proxy.
    ProxyProtocol,
    /// The head was not received in time.
    Timeout,
    /// The target is too long.
    Target,
    /// The head is too large.
    Head,
    /// The announced length of the body is too large.
    Body,
    /// A method or a transfer coding that is not supported.
    Unknown,
    /// The request is for another host.
    Host,
    /// There are too many connections.
    Full,
    /// There are too many from one address.
    Crowd,
}

impl Refusal {
    /// The status of the response, or of the one that would be sent.
    pub fn status(self) -> StatusCode {
        match self {
            Refusal::Malformed | Refusal::Tls | Refusal::Http2 | Refusal::ProxyProtocol => {
                StatusCode::BAD_REQUEST
            }
            Refusal::Timeout => StatusCode::REQUEST_TIMEOUT,
            Refusal::Target => StatusCode::URI_TOO_LONG,
            Refusal::Head => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Refusal::Body => StatusCode::PAYLOAD_TOO_LARGE,
            Refusal::Unknown => StatusCode::NOT_IMPLEMENTED,
            Refusal::Host => StatusCode::MISDIRECTED_REQUEST,
            Refusal::Full | Refusal::Crowd => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// The name in logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Refusal::Malformed => "malformed",
            Refusal::Tls => "tls",
            Refusal::Http2 => "http2",
            Refusal::ProxyProtocol => "proxy_protocol",
            Refusal::Timeout => "timeout",
            Refusal::Target => "target_too_long",
            Refusal::Head => "head_too_large",
            Refusal::Body => "body_too_large",
            Refusal::Unknown => "not_implemented",
            Refusal::Host => "host",
            Refusal::Full => "too_many_connections",
            Refusal::Crowd => "too_many_of_one_address",
        }
    }

    /// The reason for a request that is answered with this status.
    pub(crate) fn of(status: StatusCode) -> Self {
        match status {
            StatusCode::PAYLOAD_TOO_LARGE => Refusal::Body,
            StatusCode::NOT_IMPLEMENTED | StatusCode::METHOD_NOT_ALLOWED => Refusal::Unknown,
            StatusCode::MISDIRECTED_REQUEST => Refusal::Host,
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => Refusal::Head,
            _ => Refusal::Malformed,
        }
    }
}

/// Bytes of the input that are kept for the log.
const FIRST: usize = 200;

/// The first line of the input, or its beginning.
pub(crate) fn first_line(bytes: &[u8]) -> &[u8] {
    let bytes = &bytes[..bytes.len().min(FIRST)];
    let end = bytes.iter().position(|&byte| byte == b'\n');
    let line = &bytes[..end.unwrap_or(bytes.len())];
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// A refused connection, or refused input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused<'a> {
    pub(crate) client: Peer,
    pub(crate) why: Refusal,
    /// The first line of the input; empty if it is not known.
    pub(crate) first: &'a [u8],
}
