//! The hosts of a rollout that have not been announced yet. Copies share memory, and a group that leaves the list or
//! returns to it costs the same in a long list as in a short one.

use std::fmt;

use forewarn_types::HostId;

use crate::paged::PagedMap;

/// Hosts in an order, each once.
#[derive(Clone, Default)]
pub struct WaitingHosts {
    by_place: PagedMap<i64, HostId>,
    places: PagedMap<HostId, i64>,
}

impl WaitingHosts {
    /// The number of hosts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns true if no host waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns true if the host waits.
    #[must_use]
    pub fn contains(&self, host: HostId) -> bool {
        self.places.contains_key(&host)
    }

    /// Every host, the next one first.
    pub fn iter(&self) -> impl Iterator<Item = HostId> + '_ {
        self.by_place.values().copied()
    }

    pub(crate) fn remove(&mut self, host: HostId) {
        if let Some(place) = self.places.remove(&host) {
            self.by_place.remove(&place);
        }
    }

    /// Puts a host behind the others.
    pub(crate) fn push(&mut self, host: HostId) {
        self.remove(host);
        let place = self.by_place.last().map_or(0, |(last, _)| last + 1);
        self.put(host, place);
    }

    /// Puts hosts before the others, in their order.
    pub(crate) fn put_first(&mut self, hosts: &[HostId]) {
        for host in hosts.iter().rev() {
            self.remove(*host);
            let place = self.by_place.first().map_or(0, |(first, _)| first - 1);
            self.put(*host, place);
        }
    }

    fn put(&mut self, host: HostId, place: i64) {
        self.by_place.insert(place, host);
        self.places.insert(host, place);
    }
}

/// Builds the list at once. Of several places of one host, the last one counts.
impl FromIterator<HostId> for WaitingHosts {
    fn from_iter<T: IntoIterator<Item = HostId>>(hosts: T) -> Self {
        let hosts: Vec<_> = (0i64..).zip(hosts).collect();
        let places: PagedMap<_, _> = hosts.iter().map(|(place, host)| (*host, *place)).collect();
        let by_place = hosts.into_iter().filter(|(place, host)| places.get(host) == Some(place)).collect();
        Self { by_place, places }
    }
}

/// Equal lists have the same order; their places may differ.
impl PartialEq for WaitingHosts {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for WaitingHosts {}

impl fmt::Debug for WaitingHosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(waiting: &WaitingHosts) -> Vec<u32> {
        waiting.iter().map(|host| host.0).collect()
    }

    #[test]
    fn hosts_keep_their_order_and_wait_once() {
        let mut waiting: WaitingHosts = [5, 1, 9].into_iter().map(HostId).collect();
        let copy = waiting.clone();
        waiting.remove(HostId(1));
        waiting.remove(HostId(7));
        waiting.push(HostId(3));
        waiting.put_first(&[HostId(9), HostId(2)]);
        assert_eq!((listed(&waiting), listed(&copy)), (vec![9, 2, 5, 3], vec![5, 1, 9]));
        assert!(waiting.contains(HostId(2)) && !waiting.contains(HostId(1)));
        assert_eq!(waiting, [9, 2, 5, 3].into_iter().map(HostId).collect());
        assert_eq!((waiting.len(), copy.is_empty()), (4, false));
        let twice: WaitingHosts = [9, 5, 2, 5, 3].into_iter().map(HostId).collect();
        assert_eq!((listed(&twice), twice.len()), (vec![9, 2, 5, 3], 4));
    }
}
