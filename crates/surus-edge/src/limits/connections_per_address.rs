//! Bounds the open connections from one address.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::rc::Rc;

use crate::log::throttled::Throttled;
use crate::{Limits, Peer, Proxies};

/// The number of connections of each address, if there is a bound.
#[derive(Debug, Default)]
pub(crate) struct ConnectionsPerAddress {
    open: RefCell<HashMap<IpAddr, usize>>,
    told: Throttled,
}

/// A connection that is counted until this is dropped.
#[derive(Debug)]
pub(crate) struct CountedConnection {
    counts: Rc<ConnectionsPerAddress>,
    network: IpAddr,
}

impl ConnectionsPerAddress {
    /// Admits a connection from this address; `Ok(None)`: it is not counted. `gives_way`: asks an idle one from the
    /// same network to close, and returns whether there is one.
    ///
    /// # Errors
    /// If there are too many.
    pub(crate) fn admit(
        self: &Rc<Self>,
        peer: Peer,
        limits: &Limits,
        proxies: &Proxies,
        gives_way: impl FnOnce(IpAddr) -> bool,
    ) -> Result<Option<CountedConnection>, ()> {
        let limit = limits.connections_per_address;
        // A client of a Unix socket has no address.
        let Some(address) = peer.ip() else {
            return Ok(None);
        };
        let is_local = address.to_canonical().is_loopback() && !limits.counts_loopback;
        if limit == 0 || is_local || proxies.trusts(peer) {
            return Ok(None);
        }
        let network = network(address);
        let open = self.open.borrow().get(&network).copied().unwrap_or(0);
        if open >= limit && !gives_way(network) {
            self.told.say(format_args!(
                "connections from {address} are refused (503): {open} are open in this worker \
                 (max_connections_per_address). The address of a proxy belongs into trusted_proxies"
            ));
            return Err(());
        }
        *self.open.borrow_mut().entry(network).or_default() += 1;
        Ok(Some(CountedConnection {
            counts: Rc::clone(self),
            network,
        }))
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        let mut open = self.counts.open.borrow_mut();
        if let Some(count) = open.get_mut(&self.network) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.network);
            }
        }
    }
}

/// The network that counts as one client: of an IPv6 address the first 64 bits, because a client can choose the others.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let bits = address.to_bits() >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from_bits(bits))
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn limits(count: usize, counts_loopback: bool) -> Limits {
        Limits {
            connections_per_address: count,
            counts_loopback,
            ..Limits::default()
        }
    }

    fn peer(address: &str) -> Peer {
        SocketAddr::new(address.parse().unwrap(), 1).into()
    }

    fn admit(
        counts: &Rc<ConnectionsPerAddress>,
        address: &str,
        limits: &Limits,
    ) -> Result<Option<CountedConnection>, ()> {
        let proxies = Proxies {
            networks: vec!["10.0.0.0/8".parse().unwrap()],
            ..Proxies::default()
        };
        counts.admit(peer(address), limits, &proxies, |_| false)
    }

    #[test]
    fn each_address_has_so_many() {
        let (counts, two) = (Rc::default(), limits(2, false));
        let held = [(); 2].map(|()| admit(&counts, "192.0.2.1", &two).unwrap().unwrap());
        assert!(admit(&counts, "192.0.2.1", &two).is_err());
        assert!(admit(&counts, "::ffff:192.0.2.1", &two).is_err());
        assert!(admit(&counts, "192.0.2.2", &two).unwrap().is_some());
        drop(held);
        assert!(admit(&counts, "192.0.2.1", &two).unwrap().is_some());
        assert!(counts.open.borrow().is_empty());
        // An idle one makes room.
        let one = limits(1, false);
        let _held = admit(&counts, "192.0.2.1", &one).unwrap().unwrap();
        let address: IpAddr = "192.0.2.1".parse().unwrap();
        let next = counts.admit(peer("192.0.2.1"), &one, &Proxies::default(), |network| {
            network == address
        });
        assert!(next.unwrap().is_some());
    }

    #[test]
    fn a_client_of_ipv6_has_many_addresses() {
        let (counts, one) = (Rc::default(), limits(1, false));
        let _held = admit(&counts, "2001:db8::1", &one).unwrap().unwrap();
        assert!(admit(&counts, "2001:db8::ffff:2", &one).is_err());
        assert!(admit(&counts, "2001:db8:0:1::1", &one).is_ok());
    }

    #[test]
    fn proxies_and_this_machine_are_not_counted() {
        let counts = Rc::default();
        for address in ["10.1.2.3", "127.0.0.1", "::1", "::ffff:127.0.0.1"] {
            let counted = admit(&counts, address, &limits(1, false)).unwrap();
            assert!(counted.is_none(), "{address}");
        }
        let counted = limits(1, true);
        let _held = admit(&counts, "127.0.0.1", &counted).unwrap().unwrap();
        assert!(admit(&counts, "127.0.0.1", &counted).is_err());
        assert!(admit(&counts, "10.1.2.3", &counted).unwrap().is_none());
        assert!(admit(&counts, "192.0.2.1", &limits(0, true))
            .unwrap()
            .is_none());
    }
}
