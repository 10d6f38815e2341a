//! Networks in a configuration.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;

/// Where clients or proxies are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// Addresses that share their first bits: `10.0.0.0/8`, `::1`.
    Addresses(IpNet),
    /// All clients of a Unix socket: `unix:`.
    Unix,
}

impl Network {
    /// Whether the address is in the network; IPv4-mapped IPv6 addresses count as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        match self {
            Network::Addresses(network) => network.contains(&address.to_canonical()),
            Network::Unix => false,
        }
    }
}

impl FromStr for Network {
    type Err = String;

    /// The standard library parses the address: ipnet accepts `010.0.0.0`, which some programs read as octal.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "unix:" {
            return Ok(Network::Unix);
        }
        let network = || match text.split_once('/') {
            Some((address, bits)) => IpNet::new(address.parse().ok()?, bits.parse().ok()?).ok(),
            None => Some(text.parse::<IpAddr>().ok()?.into()),
        };
        network()
            .map(Network::Addresses)
            .ok_or_else(|| format!("{text:?} is no address and no network such as \"10.0.0.0/8\""))
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Network::Addresses(network) => network.fmt(f),
            Network::Unix => f.write_str("unix:"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks() {
        let network: Network = "10.1.0.0/16".parse().unwrap();
        assert!(network.contains("10.1.255.1".parse().unwrap()));
        assert!(network.contains("::ffff:10.1.2.3".parse().unwrap()));
        assert!(!network.contains("10.2.0.1".parse().unwrap()));
        let all: Network = "0.0.0.0/0".parse().unwrap();
        assert!(all.contains("1.2.3.4".parse().unwrap()) && !all.contains("::1".parse().unwrap()));
        let one: Network = "::1".parse().unwrap();
        assert!(one.contains("::1".parse().unwrap()) && !one.contains("::2".parse().unwrap()));
        assert_eq!(one.to_string(), "::1/128");
        let wrong = [
            "10.0.0.0/33",
            "10.0.0/8",
            "",
            "a",
            "::/129",
            "1.2.3.4/",
            "010.0.0.0/8",
            "1.2.3.4/24/24",
        ];
        for wrong in wrong {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }
}
