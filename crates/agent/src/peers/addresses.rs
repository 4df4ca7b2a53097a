//! The addresses of peers: those in the settings, those that a name led to, and those from which a proof came.
//!
//! They only decide who keeps a connection when there are too many. What a peer says is believed for its proof alone.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::places::PeerPlaces;

/// Learnt addresses at a time. A new one replaces the one that was seen longest ago.
const LEARNT_MAX: usize = 512;

/// Time for which an address stays known after it was seen last.
const LEARNT_FOR: Duration = Duration::from_mins(10);

/// Addresses of peers, shared by the listener and by the part of the agent that asks peers.
#[derive(Clone, Debug, Default)]
pub(crate) struct PeerAddresses {
    /// From the settings.
    fixed: Arc<BTreeSet<IpAddr>>,
    learnt: Arc<Mutex<BTreeMap<IpAddr, Instant>>>,
}

impl PeerAddresses {
    /// The addresses that the settings name. Names of hosts are learnt as they are used.
    pub(crate) fn of(places: Option<&PeerPlaces>) -> Self {
        let fixed = match places {
            Some(PeerPlaces::List(list)) => list.values().filter_map(|place| address(place)).collect(),
            Some(PeerPlaces::Dns(_) | PeerPlaces::Members { .. }) | None => BTreeSet::new(),
        };
        Self { fixed: Arc::new(fixed), learnt: Arc::default() }
    }

    /// Whether a peer has this address.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let is_fresh = |at: &Instant| at.elapsed() < LEARNT_FOR;
        self.fixed.contains(&address) || self.learnt().get(&address).is_some_and(is_fresh)
    }

    /// Notes that a peer has this address.
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

/// The address in `10.0.0.4:9911` or `[fd00::4]:9911`.
pub(super) fn address(place: &str) -> Option<IpAddr> {
    place.parse::<SocketAddr>().ok().map(|place| place.ip().to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn addresses_come_from_the_settings_and_from_proofs() {
        let list = [("a", "10.0.0.4:1"), ("b", "[fd00::4]:1"), ("c", "[::ffff:10.0.0.6]:1"), ("d", "host:1")];
        let list = list.map(|(name, place)| (name.to_owned(), place.to_owned()));
        let addresses = PeerAddresses::of(Some(&PeerPlaces::List(list.into())));
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
