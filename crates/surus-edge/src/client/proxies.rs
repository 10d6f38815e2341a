//! Who the client is behind proxies that are trusted. One header says so, the one that is configured: what a client puts into
//! another one would else come before what its proxy says.

use http::HeaderMap;

use crate::client::claims;
use crate::client::forwarded::{forwarded, x_forwarded};
use crate::client::network::Network;
use crate::{Connection, Peer};

/// The header that proxies say in who their client is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProxyHeader {
    /// `X-Forwarded-For`, `-Proto`, `-Host`, `-Port` and `-Prefix`.
    #[default]
    XForwarded,
    /// `Forwarded` (RFC 7239).
    Forwarded,
    /// None: nobody is believed, and all that claim to say it are removed.
    None,
}

/// The proxies whose word counts. Without any, headers are left as they are and mean nothing to the server.
#[derive(Clone, Debug, Default)]
pub struct Proxies {
    /// Where they are.
    pub networks: Vec<Network>,
    /// Where they say it.
    pub header: ProxyHeader,
}

impl Proxies {
    /// Nobody is trusted.
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

    /// The connection as the first proxy that is trusted saw it; `None` where the connection itself is the client's.
    /// What is left in `headers` says the same, or comes from nobody but a proxy that is trusted.
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
        // From the nearest proxy outwards, as long as who speaks is trusted. What nobody can make sense of ends it.
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
        // Where the client has connected to, which is not where its proxy has.
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
