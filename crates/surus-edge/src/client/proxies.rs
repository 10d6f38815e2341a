//! Finds the client behind trusted proxies. Only the configured header is read: otherwise a value that a client puts
//! into another header could override that of its proxy.

use http::HeaderMap;

use crate::client::claims;
use crate::client::forwarded::{forwarded, x_forwarded};
use crate::client::network::Network;
use crate::{Connection, Peer};

/// The header in which proxies name their client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProxyHeader {
    /// `X-Forwarded-For`, `-Proto`, `-Host`, `-Port` and `-Prefix`.
    #[default]
    XForwarded,
    /// `Forwarded` (RFC 7239).
    Forwarded,
    /// None: no header is trusted, and all that claim to name the client are removed.
    None,
}

/// The trusted proxies. Without any, the server leaves headers as they are and ignores them.
#[derive(Clone, Debug, Default)]
pub struct Proxies {
    /// The networks of the proxies.
    pub networks: Vec<Network>,
    /// The header that they use.
    pub header: ProxyHeader,
}

impl Proxies {
    /// True if no proxy is trusted.
    pub fn is_empty(&self) -> bool {
        self.networks.is_empty()
    }

    pub(crate) fn trusts(&self, peer: Peer) -> bool {
        let is_one = |network: &Network| match peer.ip() {
            Some(address) => network.contains(address),
            None => *network == Network::Unix,
        };
        self.networks.iter().any(is_one)
    }

    /// The connection as the outermost trusted proxy sees it; `None` if the peer itself is the client. The claims left
    /// in `headers` agree with it, or come only from a trusted proxy.
    pub(crate) fn client(
        &self,
        connection: &Connection,
        headers: &mut HeaderMap,
    ) -> Option<Connection> {
        if self.is_empty() && self.header != ProxyHeader::None {
            return None;
        }
        let is_trusted = self.trusts(connection.peer);
        if self.header == ProxyHeader::None || !is_trusted {
            claims::remove(headers);
            return None;
        }
        let hops = match self.header {
            ProxyHeader::Forwarded => forwarded(headers),
            ProxyHeader::XForwarded | ProxyHeader::None => x_forwarded(headers),
        };
        let mut client = connection.clone();
        let mut scheme_port = None;
        // From the nearest proxy outwards, as long as the speaker is trusted. An address that cannot be parsed ends the
        // search.
        for hop in &hops {
            if let Some(https) = hop.https {
                client.https = https;
                scheme_port = Some(if https { 443 } else { 80 });
            }
            let Some(peer) = hop.client else { break };
            client.peer = Peer::Tcp(peer);
            if !self.trusts(client.peer) {
                break;
            }
        }
        let host = hops.first().and_then(|hop| hop.host.clone());
        claims::correct(headers, self.header, &client, host.as_deref());
        // The port that the client has connected to, which differs from that of its proxy.
        let said = claims::port(headers, self.header, host.as_deref());
        if let Some(port) = said.or(scheme_port) {
            client.local.set_port(port);
        }
        Some(client)
    }
}

#[cfg(test)]
#[path = "proxies_tests.rs"]
mod tests;
