//! Decides which connections stay open under load.
//!
//! Every connection is accepted at once. A connection that needs a slot takes it from an unauthenticated one: from the
//! oldest of the same source if that source has too many, else from the source that has the most. Addresses of peers
//! have slots of their own, and an authenticated connection keeps its slot. So unknown callers compete with each other
//! only.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::peers::PeerAddresses;

/// Limits of the slots that one kind of caller shares.
#[derive(Clone, Copy, Debug)]
struct Slots {
    all: usize,
    per_source: usize,
}

const STRANGERS: Slots = Slots { all: 96, per_source: 16 };
const PEERS: Slots = Slots { all: 128, per_source: 8 };
const PROVEN: Slots = Slots { all: 128, per_source: 8 };

/// Limit of open connections, including those that have lost their slot and are closing.
pub(super) const OPEN_MAX: usize = 512;

/// The kind of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caller {
    /// The address does not belong to a peer.
    Stranger,
    /// The address belongs to a peer; any program there may be the caller.
    PeerAddress,
    /// The caller has the key.
    Proven,
}

impl Caller {
    const fn slots(self) -> Slots {
        match self {
            Self::Stranger => STRANGERS,
            Self::PeerAddress => PEERS,
            Self::Proven => PROVEN,
        }
    }
}

/// The unit by which connections are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Address(IpAddr),
    /// The first half of an IPv6 address: one host may have all addresses of that network.
    Network([u16; 4]),
}

impl Source {
    /// The source of an unknown caller.
    fn of_stranger(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::Address(address),
            IpAddr::V6(v6) => {
                let [a, b, c, d, ..] = v6.segments();
                Self::Network([a, b, c, d])
            }
        }
    }
}

#[derive(Debug)]
struct Connection {
    source: Source,
    caller: Caller,
    drop_it: Option<oneshot::Sender<()>>,
}

#[derive(Clone, Debug)]
pub(super) struct Admission {
    peers: PeerAddresses,
    open: Arc<Mutex<OpenConnections>>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    next: u64,
    /// Connections by number: the oldest has the lowest.
    connections: BTreeMap<u64, Connection>,
}

/// The slot of one connection. Dropping it frees the slot.
#[derive(Debug)]
pub(super) struct Slot {
    number: u64,
    address: IpAddr,
    admission: Admission,
}

impl Admission {
    pub(super) fn new(peers: PeerAddresses) -> Self {
        Self { peers, open: Arc::default() }
    }

    /// Gives a connection a slot. The receiver fires when another connection takes the slot.
    pub(super) fn admit(&self, address: IpAddr) -> (Slot, oneshot::Receiver<()>) {
        let address = address.to_canonical();
        let (caller, source) = if self.peers.contains(address) {
            (Caller::PeerAddress, Source::Address(address))
        } else {
            (Caller::Stranger, Source::of_stranger(address))
        };
        let (drop_it, dropped) = oneshot::channel();
        let mut open = self.open();
        if let Some(victim) = open.victim(caller, source)
            && let Some(victim) = open.connections.remove(&victim)
            && let Some(drop_it) = victim.drop_it
        {
            // An error means that the connection has ended by itself.
            drop_it.send(()).ok();
        }
        let number = open.next;
        open.next += 1;
        open.connections.insert(number, Connection { source, caller, drop_it: Some(drop_it) });
        (Slot { number, address, admission: self.clone() }, dropped)
    }

    fn open(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenConnections {
    fn count(&self, is_meant: impl Fn(&Connection) -> bool) -> usize {
        self.connections.values().filter(|connection| is_meant(connection)).count()
    }

    /// The connection that loses its slot to a new one of that kind, if all slots are taken.
    fn victim(&self, caller: Caller, source: Source) -> Option<u64> {
        let Slots { all, per_source } = caller.slots();
        let of_kind = || self.connections.iter().filter(move |(_, connection)| connection.caller == caller);
        let mut of_source = of_kind().filter(|(_, connection)| connection.source == source).map(|(n, _)| *n);
        let oldest = of_source.next();
        if oldest.is_some() && of_source.count() + 1 >= per_source {
            return oldest;
        }
        if of_kind().count() < all {
            return None;
        }
        let mut sources = BTreeMap::<Source, (usize, u64)>::new();
        for (number, connection) in of_kind() {
            sources.entry(connection.source).or_insert((0, *number)).0 += 1;
        }
        // The source with the most connections; among equals, the oldest connection.
        sources
            .into_values()
            .max_by_key(|(count, oldest)| (*count, std::cmp::Reverse(*oldest)))
            .map(|(_, n)| n)
    }
}

impl Slot {
    /// Marks the connection as authenticated: its address gets slots of its own, and no other connection takes this
    /// slot, unless this peer holds too many of them.
    pub(super) fn prove(&self) {
        self.admission.peers.learn(self.address);
        let source = Source::Address(self.address);
        let mut open = self.admission.open();
        let proven = |connection: &Connection| connection.caller == Caller::Proven;
        let is_full = open.count(proven) >= PROVEN.all
            || open.count(|connection| proven(connection) && connection.source == source)
                >= PROVEN.per_source;
        if !is_full && let Some(connection) = open.connections.get_mut(&self.number) {
            (connection.caller, connection.source) = (Caller::Proven, source);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.admission.open().connections.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Admitted = (Slot, oneshot::Receiver<()>);

    fn admission(peers: &[&str]) -> Admission {
        let addresses = PeerAddresses::default();
        peers.iter().for_each(|peer| addresses.learn(peer.parse().unwrap()));
        Admission::new(addresses)
    }

    fn admit(admission: &Admission, address: &str) -> Admitted {
        admission.admit(address.parse().unwrap())
    }

    fn is_open((_, dropped): &mut Admitted) -> bool {
        matches!(dropped.try_recv(), Err(oneshot::error::TryRecvError::Empty))
    }

    /// promise: A5
    #[test]
    fn one_source_takes_slots_from_itself_only() {
        let admission = admission(&[]);
        let mut other = admit(&admission, "10.0.0.9");
        let mut many: Vec<_> = (0..40).map(|_| admit(&admission, "10.0.0.1")).collect();
        let open: Vec<_> = many.iter_mut().map(is_open).collect();
        assert_eq!(open, [vec![false; 24], vec![true; 16]].concat(), "the newest stay");
        assert!(is_open(&mut other));
    }

    /// promise: A5
    #[test]
    fn a_mapped_address_is_the_address_and_an_ipv6_network_is_one_source() {
        let admission = admission(&["10.0.0.7"]);
        let _mapped: Vec<_> = (0..8).map(|_| admit(&admission, "::ffff:10.0.0.1")).collect();
        let mut plain: Vec<_> = (0..9).map(|_| admit(&admission, "10.0.0.1")).collect();
        assert!(plain.iter_mut().all(is_open));
        assert_eq!(admission.open().connections.len(), 16);
        let _network: Vec<_> = (0..99).map(|n| admit(&admission, &format!("fd00:0:0:1::{n:x}"))).collect();
        assert_eq!(admission.open().connections.len(), 32);
        let peer = admit(&admission, "::ffff:10.0.0.7");
        assert_eq!(admission.open().connections[&peer.0.number].caller, Caller::PeerAddress);
    }

    /// promise: A5
    #[test]
    fn strangers_from_everywhere_take_no_slot_of_a_peer() {
        let admission = admission(&["10.0.0.7"]);
        let mut peers: Vec<_> = (0..8).map(|_| admit(&admission, "10.0.0.7")).collect();
        let mut proven = admit(&admission, "10.0.0.8");
        proven.0.prove();
        let mut strangers: Vec<_> =
            (0..2_000).map(|n| admit(&admission, &format!("10.1.{}.{}", n / 250, n % 250))).collect();
        assert!(peers.iter_mut().all(is_open) && is_open(&mut proven));
        assert_eq!(strangers.iter_mut().map(is_open).filter(|open| *open).count(), 96);
        assert!(is_open(strangers.last_mut().unwrap()), "the newest is served");
        // Its address is known from now on.
        let mut again = admit(&admission, "10.0.0.8");
        assert_eq!(admission.open().connections[&again.0.number].caller, Caller::PeerAddress);
        assert!(is_open(&mut again));
    }

    /// promise: A5
    #[test]
    fn the_source_with_the_most_connections_gives_first() {
        let admission = admission(&[]);
        let mut single: Vec<_> = (0..80).map(|n| admit(&admission, &format!("10.0.1.{n}"))).collect();
        let mut many: Vec<_> = (0..16).map(|_| admit(&admission, "10.0.0.1")).collect();
        let mut last = admit(&admission, "10.0.0.2");
        assert!(single.iter_mut().all(is_open) && is_open(&mut last));
        assert!(!is_open(&mut many[0]) && many[1..].iter_mut().all(is_open));
    }

    /// promise: A5
    #[test]
    fn a_peer_that_proves_itself_again_and_again_has_a_limit_too() {
        let admission = admission(&[]);
        let many: Vec<_> = (0..50).map(|_| admit(&admission, "10.0.0.7")).collect();
        many.iter().for_each(|(slot, _)| slot.prove());
        assert_eq!(admission.open().count(|connection| connection.caller == Caller::Proven), 8);
        drop(many);
        assert!(admission.open().connections.is_empty());
    }
}
