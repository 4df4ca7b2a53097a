//! Origin of a connection: the unit that a limit per address counts.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Origin of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// An IPv4 address, also where it came as an IPv4-mapped IPv6 address.
    V4(Ipv4Addr),
    /// A /64 network of IPv6: one client can take any address in it. Link-local networks differ by their interface.
    V6 {
        /// The first 64 bits.
        network: u64,
        /// The number of the interface; 0 for addresses that are not link-local.
        scope: u32,
    },
    /// A local user, on a Unix socket. None if the kernel does not report it.
    User(Option<u32>),
}

impl Origin {
    /// The origin of a TCP peer.
    pub(crate) fn of(peer: SocketAddr) -> Self {
        let scope = match peer {
            SocketAddr::V4(_) => 0,
            SocketAddr::V6(peer) => peer.scope_id(),
        };
        match peer.ip().to_canonical() {
            IpAddr::V4(address) => Self::V4(address),
            IpAddr::V6(address) => {
                let network = u64::try_from(u128::from(address) >> 64).unwrap_or_default();
                Self::V6 { network, scope: if address.is_unicast_link_local() { scope } else { 0 } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(peer: &str) -> Origin {
        Origin::of(peer.parse().expect("an address"))
    }

    /// promise: S5
    #[test]
    fn an_ipv4_mapped_address_counts_as_the_ipv4_address() {
        assert_eq!(origin("[::ffff:10.0.0.1]:1"), origin("10.0.0.1:2"));
        assert_ne!(origin("[::ffff:10.0.0.1]:1"), origin("10.0.0.2:1"));
    }

    /// promise: S5
    #[test]
    fn addresses_of_one_network_count_together() {
        assert_eq!(origin("[2001:db8::1]:1"), origin("[2001:db8::ffff:1]:9"));
        assert_ne!(origin("[2001:db8::1]:1"), origin("[2001:db8:0:1::1]:1"));
        assert_ne!(origin("[::1]:1"), origin("127.0.0.1:1"));
    }

    /// promise: S5
    #[test]
    fn link_local_networks_differ_by_interface() {
        assert_eq!(origin("[fe80::1%2]:1"), origin("[fe80::2%2]:1"));
        assert_ne!(origin("[fe80::1%2]:1"), origin("[fe80::1%3]:1"));
    }
}
