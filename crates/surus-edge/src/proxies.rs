//! Who the client is behind proxies that are trusted: `Forwarded` (RFC 7239) and `X-Forwarded-*`.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use http::header::{HeaderMap, HeaderName, FORWARDED};

use crate::Connection;

const FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// What a client that is no proxy must not make an application believe.
const CLAIMS: [HeaderName; 7] = [
    FORWARDED,
    FOR,
    PROTO,
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-forwarded-port"),
    HeaderName::from_static("x-forwarded-prefix"),
    HeaderName::from_static("x-real-ip"),
];

/// Addresses that share their first `bits` bits: `10.0.0.0/8`, `::1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    /// Whether the address is one of its; IPv4 in IPv6 is IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let shift = 32 - u32::from(self.bits);
                (own.to_bits() ^ other.to_bits())
                    .checked_shr(shift)
                    .unwrap_or(0)
                    == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let shift = 128 - u32::from(self.bits);
                (own.to_bits() ^ other.to_bits())
                    .checked_shr(shift)
                    .unwrap_or(0)
                    == 0
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no address and no network such as \"10.0.0.0/8\"");
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            Some(bits) => bits.parse().ok().filter(|bits| *bits <= most),
            None => Some(most),
        };
        Ok(Network {
            address,
            bits: bits.ok_or_else(wrong)?,
        })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// The proxies whose word counts. Without any, headers are left as they are and mean nothing.
#[derive(Clone, Debug, Default)]
pub struct Proxies(pub Vec<Network>);

/// One hop as a proxy describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hop {
    /// `None`: the proxy does not say.
    client: Option<SocketAddr>,
    https: Option<bool>,
}

impl Proxies {
    /// Nobody is trusted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }

    /// The connection as the first proxy that is trusted saw it; `None` where the connection itself is the client's.
    /// Removes from `headers` what somebody who is not trusted says.
    pub(crate) fn client(
        &self,
        connection: &Connection,
        headers: &mut HeaderMap,
    ) -> Option<Connection> {
        if self.is_empty() {
            return None;
        }
        if !self.trusts(connection.peer.ip()) {
            for claim in &CLAIMS {
                headers.remove(claim);
            }
            return None;
        }
        let hops = if headers.contains_key(FORWARDED) {
            forwarded(headers)
        } else {
            x_forwarded(headers)
        };
        let mut client = connection.clone();
        // From the nearest proxy outwards, as long as who speaks is trusted.
        for hop in hops.iter().rev() {
            if let Some(https) = hop.https {
                client.https = https;
            }
            let Some(peer) = hop.client else { break };
            client.peer = peer;
            if !self.trusts(peer.ip()) {
                break;
            }
        }
        Some(client)
    }
}

fn values(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
}

fn x_forwarded(headers: &HeaderMap) -> Vec<Hop> {
    let list = |name: HeaderName| -> Vec<&str> {
        values(headers, name)
            .flat_map(|value| value.split(','))
            .map(str::trim)
            .collect()
    };
    let protocols = list(PROTO);
    let clients = list(FOR);
    let hops = clients.len().max(protocols.len().min(1));
    (0..hops)
        .map(|hop| {
            // Proxies that append to both lists, or one that speaks for all of them.
            let protocol = match protocols.len() {
                count if count == hops => protocols.get(hop),
                _ => protocols.last(),
            };
            Hop {
                client: clients.get(hop).and_then(|text| address(text)),
                https: protocol.map(|text| text.eq_ignore_ascii_case("https")),
            }
        })
        .collect()
}

fn forwarded(headers: &HeaderMap) -> Vec<Hop> {
    values(headers, FORWARDED)
        .flat_map(|value| split(value, ','))
        .map(|element| {
            let mut hop = Hop {
                client: None,
                https: None,
            };
            for pair in split(element, ';') {
                let Some((name, value)) = pair.split_once('=') else {
                    continue;
                };
                let value = value.trim().trim_matches('"');
                match name.trim().to_ascii_lowercase().as_str() {
                    "for" => hop.client = address(value),
                    "proto" => hop.https = Some(value.eq_ignore_ascii_case("https")),
                    _ => {}
                }
            }
            hop
        })
        .collect()
}

/// Splits outside of quoted strings.
fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    text.split(move |each| {
        quoted ^= each == '"';
        each == separator && !quoted
    })
}

/// `192.0.2.1`, `192.0.2.1:80`, `[2001:db8::1]:80`, `[2001:db8::1]`, `2001:db8::1`. Port 0 where none is given.
fn address(text: &str) -> Option<SocketAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
        .unwrap_or(text);
    bare.parse().ok().map(|ip: IpAddr| SocketAddr::new(ip, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn seen(peer: &str, headers: &[(&'static str, &str)]) -> (String, bool, usize) {
        let proxies = Proxies(
            ["10.0.0.0/8", "::1"]
                .iter()
                .map(|text| text.parse().unwrap())
                .collect(),
        );
        let connection = Connection::new(
            SocketAddr::new(peer.parse().unwrap(), 9),
            "127.0.0.1:80".parse().unwrap(),
        );
        let given = headers;
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        let client = proxies
            .client(&connection, &mut headers)
            .unwrap_or(connection);
        (client.peer.ip().to_string(), client.https, headers.len())
    }

    #[test]
    fn networks() {
        let network: Network = "10.1.0.0/16".parse().unwrap();
        assert!(network.contains("10.1.255.1".parse().unwrap()));
        assert!(network.contains("::ffff:10.1.2.3".parse().unwrap()));
        assert!(!network.contains("10.2.0.1".parse().unwrap()));
        let all: Network = "0.0.0.0/0".parse().unwrap();
        assert!(all.contains("1.2.3.4".parse().unwrap()) && !all.contains("::1".parse().unwrap()));
        for wrong in ["10.0.0.0/33", "10.0.0/8", "", "a", "::/129", "1.2.3.4/"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_proxies_are_believed() {
        let claim = [
            ("x-forwarded-for", "192.0.2.1"),
            ("x-forwarded-proto", "https"),
        ];
        assert_eq!(seen("10.1.1.1", &claim), ("192.0.2.1".into(), true, 2));
        assert_eq!(
            seen("203.0.113.9", &claim),
            ("203.0.113.9".into(), false, 0)
        );
    }

    #[test]
    fn what_a_client_puts_in_front_is_not_believed() {
        let list = [("x-forwarded-for", "1.1.1.1, 192.0.2.1, 10.2.2.2")];
        assert_eq!(seen("10.1.1.1", &list).0, "192.0.2.1");
        let junk = [("x-forwarded-for", "1.1.1.1, unknown, 10.2.2.2")];
        assert_eq!(seen("10.1.1.1", &junk).0, "10.2.2.2");
        let protocols = [
            ("x-forwarded-for", "192.0.2.1, 10.2.2.2"),
            ("x-forwarded-proto", "https, http"),
        ];
        assert_eq!(seen("10.1.1.1", &protocols), ("192.0.2.1".into(), true, 2));
    }

    /// Whatever a client writes, the address that the nearest proxy has added is the one that counts.
    #[test]
    fn nothing_in_front_changes_the_outcome() {
        const ALPHABET: &[u8] = b"for=proto;,\"[]:._ 10.9https";
        let mut state = 3u64;
        let mut random = |bound: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize % bound
        };
        for _ in 0..20_000 {
            let mut claim = String::new();
            for _ in 0..random(40) {
                claim.push(char::from(ALPHABET[random(ALPHABET.len())]));
            }
            let list = format!("{claim}, 192.0.2.1");
            assert_eq!(
                seen("10.1.1.1", &[("x-forwarded-for", &list)]).0,
                "192.0.2.1",
                "{list}"
            );
            // A proxy adds a line of its own where it cannot know that the quotes before are closed.
            let lines = [
                ("forwarded", claim.as_str()),
                ("forwarded", "for=192.0.2.1"),
            ];
            assert_eq!(seen("10.1.1.1", &lines).0, "192.0.2.1", "{claim}");
        }
    }

    #[test]
    fn forwarded_as_in_the_rfc() {
        for (value, client, https) in [
            (
                "for=192.0.2.60;proto=https;by=203.0.113.43",
                "192.0.2.60",
                true,
            ),
            (
                "For=\"[2001:db8:cafe::17]:4711\"",
                "2001:db8:cafe::17",
                false,
            ),
            (
                "for=1.1.1.1, for=192.0.2.43;proto=http, for=10.9.9.9;proto=https",
                "192.0.2.43",
                false,
            ),
            ("for=unknown;proto=https", "10.1.1.1", true),
            ("for=\"_a,b;c\", for=192.0.2.1", "192.0.2.1", false),
            ("nonsense", "10.1.1.1", false),
        ] {
            let got = seen("10.1.1.1", &[("forwarded", value)]);
            assert_eq!((got.0.as_str(), got.1), (client, https), "{value}");
        }
    }
}
