//! Networks, as a configuration names them.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Where clients or proxies are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// Addresses that share their first `bits` bits: `10.0.0.0/8`, `::1`.
    Addresses {
        /// One of them.
        address: IpAddr,
        /// Bits that all have in common.
        bits: u8,
    },
    /// Whoever connects to a Unix socket: `unix:`.
    Unix,
}

impl Network {
    /// Whether the address is one of its; IPv4 in IPv6 is IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let Network::Addresses { address: own, bits } = *self else {
            return false;
        };
        match (own, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let shift = 32 - u32::from(bits);
                (own.to_bits() ^ other.to_bits())
                    .checked_shr(shift)
                    .unwrap_or(0)
                    == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let shift = 128 - u32::from(bits);
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
        if text == "unix:" {
            return Ok(Network::Unix);
        }
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
        Ok(Network::Addresses {
            address,
            bits: bits.ok_or_else(wrong)?,
        })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Network::Addresses { address, bits } => write!(f, "{address}/{bits}"),
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
        for wrong in ["10.0.0.0/33", "10.0.0/8", "", "a", "::/129", "1.2.3.4/"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }
}
