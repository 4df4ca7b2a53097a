//! Addresses of peers: from the settings, from name resolution, and from authenticated requests.
//!
//! They only decide which connections are kept under load. Peers are authenticated by the shared key alone.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::discovery::PeerDiscovery;

/// Limit of learnt addresses. A new one replaces the one with the oldest use.
const LEARNT_MAX: usize = 512;

/// Time for which a learnt address is kept after its last use.
const LEARNT_FOR: Duration = Duration::from_mins(10);

/// Addresses of peers, shared by the listener and the peer poller.
#[derive(Clone, Debug, Default)]
pub(crate) struct PeerAddresses {
    /// Addresses from the settings.
    fixed: Arc<BTreeSet<IpAddr>>,
    learnt: Arc<Mutex<BTreeMap<IpAddr, Instant>>>,
}

impl PeerAddresses {
    /// The addresses in the settings. Host names are learnt when they are resolved.
    pub(crate) fn of(discovery: Option<&PeerDiscovery>) -> Self {
        let fixed = match discovery {
            Some(PeerDiscovery::List(list)) => list.values().filter_map(|text| ip_of(text)).collect(),
            Some(PeerDiscovery::Dns(_) | PeerDiscovery::Members { .. }) | None => BTreeSet::new(),
        };
        Self { fixed: Arc::new(fixed), learnt: Arc::default() }
    }

    /// True if the address belongs to a peer.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let is_fresh = |at: &Instant| at.elapsed() < LEARNT_FOR;
        self.fixed.contains(&address) || self.learnt().get(&address).is_some_and(is_fresh)
    }

    /// Adds the address of a peer.
    pub(crate) fn learn(&self, address: IpAddr) {
        let address = address.to_canonical();
        if self.fixed.contains(&address) {
            return;
        }
        let mut learnt = self.learnt();
        if learnt.len() >= LEARNT_MAX && !learnt.contains_key(&address) {
            let oldest = learnt.iter().min_by_key(|(_, at)| **at).map(|(address, _)| *address);
            oldest.and_then(|oldest| learnt.remove(&oldest));
        }
        learnt.insert(address, Instant::now());
    }

    fn learnt(&self) -> MutexGuard<'_, BTreeMap<IpAddr, Instant>> {
        self.learnt.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The IP address in `10.0.0.4:9911` or `[fd00::4]:9911`.
pub(super) fn ip_of(text: &str) -> Option<IpAddr> {
    text.parse::<SocketAddr>().ok().map(|text| text.ip().to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// promise: A5
    #[test]
    fn addresses_come_from_the_settings_and_from_proofs() {
        let list = [("a", "10.0.0.4:1"), ("b", "[fd00::4]:1"), ("c", "[::ffff:10.0.0.6]:1"), ("d", "host:1")];
        let list = list.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let addresses = PeerAddresses::of(Some(&PeerDiscovery::List(list.into())));
        for known in ["10.0.0.4", "::ffff:10.0.0.4", "fd00::4", "10.0.0.6"] {
            assert!(addresses.contains(ip(known)), "{known}");
        }
        assert!(!addresses.contains(ip("10.0.0.5")));
        addresses.clone().learn(ip("::ffff:10.0.0.5"));
        assert!(addresses.contains(ip("10.0.0.5")));
    }

    #[test]
    fn the_number_of_learnt_addresses_has_a_limit() {
        let addresses = PeerAddresses::default();
        (0..600_u32).for_each(|n| addresses.learn(IpAddr::V4(n.into())));
        assert_eq!(addresses.learnt().len(), LEARNT_MAX);
        assert!(addresses.contains(IpAddr::V4(599.into())) && !addresses.contains(IpAddr::V4(0.into())));
    }
}
