//! The archives of all servers, as far as the log may be shortened because of them.

use std::collections::{BTreeMap, BTreeSet};

use forewarn_control::Stream;
use forewarn_ownership::{ServerName, Uptime};
use forewarn_realm::ArchivedNumbers;

/// Servers whose disks must have a batch before the log forgets it.
const HOLDERS_MIN: usize = 2;

/// Milliseconds for which the log waits for a server that is gone, if fewer than two others are left. It is long enough
/// for a restart of a computer; after that, a disk that may never return would let the log grow until etcd is full.
const RETURN_MILLIS_MAX: u64 = 10 * 60_000;

/// Numbers of the last batches on the disks of servers, and the servers that are gone.
#[derive(Debug, Default)]
pub(crate) struct Archives {
    numbers: BTreeMap<ServerName, ArchivedNumbers>,
    /// Servers that are not live, and since when.
    gone: BTreeMap<ServerName, Uptime>,
    live: BTreeSet<ServerName>,
}

impl Archives {
    /// Takes note of the archive of a server. None: it was removed from the realm.
    pub(crate) fn record(&mut self, name: ServerName, numbers: Option<ArchivedNumbers>, now: Uptime) {
        match numbers {
            Some(numbers) => {
                if !self.live.contains(&name) {
                    self.gone.entry(name.clone()).or_insert(now);
                }
                self.numbers.insert(name, numbers);
            }
            None => {
                self.numbers.remove(&name);
                self.gone.remove(&name);
            }
        }
    }

    pub(crate) fn is_live(&mut self, name: &ServerName) {
        self.gone.remove(name);
        self.live.insert(name.clone());
    }

    pub(crate) fn is_gone(&mut self, name: ServerName, now: Uptime) {
        self.live.remove(&name);
        self.gone.insert(name, now);
    }

    /// Returns true if a server other than this one is live, or may return soon.
    pub(crate) fn expects_others(&self, own: &ServerName, now: Uptime) -> bool {
        self.members(now).any(|name| name != own)
    }

    fn members(&self, now: Uptime) -> impl Iterator<Item = &ServerName> {
        let gone = self.gone.iter().filter(move |(_, since)| now.since(**since) < RETURN_MILLIS_MAX);
        self.live.iter().chain(gone.map(|(name, _)| name))
    }

    /// Number of the last batch of a stream that enough servers have: two live ones, or all if there are fewer. Their
    /// disks are known to work.
    pub(crate) fn held(&self, stream: Stream, now: Uptime) -> u64 {
        let needed = self.members(now).count().clamp(1, HOLDERS_MIN);
        let number = |name| self.numbers.get(name).and_then(|numbers| numbers.streams.get(&stream));
        let mut numbers: Vec<_> = self.live.iter().filter_map(number).copied().collect();
        numbers.sort_unstable_by(|one, other| other.cmp(one));
        numbers.get(needed - 1).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> ServerName {
        ServerName::new(text).unwrap()
    }

    fn at(number: u64) -> Option<ArchivedNumbers> {
        Some(ArchivedNumbers { streams: [(Stream::Shared, number)].into() })
    }

    #[test]
    fn two_live_servers_hold_a_batch_or_all_that_there_are() {
        let mut archives = Archives::default();
        let now = Uptime::from_millis;
        assert_eq!(archives.held(Stream::Shared, now(0)), 0);
        archives.is_live(&name("a"));
        archives.record(name("a"), at(9), now(0));
        assert_eq!(archives.held(Stream::Shared, now(0)), 9, "there is one server");
        archives.is_live(&name("b"));
        assert_eq!(archives.held(Stream::Shared, now(0)), 0, "the second one has nothing yet");
        archives.record(name("b"), at(5), now(0));
        assert_eq!(archives.held(Stream::Shared, now(0)), 5);
        archives.is_live(&name("c"));
        archives.record(name("c"), at(7), now(0));
        assert_eq!(archives.held(Stream::Shared, now(0)), 7);
        archives.is_gone(name("b"), now(1_000));
        assert_eq!(archives.held(Stream::Shared, now(1_000)), 7, "two are left");
        archives.is_gone(name("c"), now(2_000));
        assert_eq!(archives.held(Stream::Shared, now(2_000)), 0, "another one may return");
        assert!(archives.expects_others(&name("a"), now(2_000)));
        let late = now(2_000 + RETURN_MILLIS_MAX);
        assert_eq!(archives.held(Stream::Shared, late), 9, "a lost server is not waited for");
        assert!(!archives.expects_others(&name("a"), late));
        archives.is_live(&name("b"));
        assert_eq!(archives.held(Stream::Shared, late), 5);
        archives.record(name("b"), None, late);
        assert_eq!(archives.held(Stream::Shared, late), 0);
    }

    #[test]
    fn an_archive_of_a_server_that_was_never_seen_counts_from_the_start() {
        let mut archives = Archives::default();
        archives.is_live(&name("a"));
        archives.record(name("a"), at(9), Uptime::from_millis(0));
        archives.record(name("b"), at(3), Uptime::from_millis(0));
        assert_eq!(archives.held(Stream::Shared, Uptime::from_millis(1_000)), 0);
        assert_eq!(archives.held(Stream::Shared, Uptime::from_millis(RETURN_MILLIS_MAX)), 9);
    }
}
