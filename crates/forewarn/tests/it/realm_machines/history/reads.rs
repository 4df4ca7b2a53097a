//! Reads: each is a prefix of the log, not older than answers before it and not newer than requests after it.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::{History, LogEntry, Since, Write};

pub(super) fn check(history: &History, log: &[LogEntry]) -> Vec<String> {
    let bounds = Bounds::of(&history.writes);
    let mut found = check_log_reads(history, log, &bounds);
    found.extend(check_host_reads(history, log, &bounds));
    found.extend(check_incarnations(history));
    found
}

/// The entries of acknowledged writes, by the time of their answer and by the time at which they were sent.
struct Bounds {
    /// The highest entry that was answered up to this time.
    answered: Vec<(Since, u64)>,
    /// The lowest entry that was sent from this time on.
    sent: Vec<(Since, u64)>,
}

impl Bounds {
    fn of(writes: &[Write]) -> Self {
        let entry = |write: &Write| write.answer.and_then(|answer| Some((answer.at, answer.entry?)));
        let mut answered: Vec<_> = writes.iter().filter_map(entry).collect();
        answered.sort_unstable();
        let mut highest = 0;
        for (_, number) in &mut answered {
            highest = highest.max(*number);
            *number = highest;
        }
        let mut sent: Vec<_> =
            writes.iter().filter_map(|write| Some((write.sent, entry(write)?.1))).collect();
        sent.sort_unstable();
        let mut lowest = u64::MAX;
        for (_, number) in sent.iter_mut().rev() {
            lowest = lowest.min(*number);
            *number = lowest;
        }
        Self { answered, sent }
    }

    /// The entry that a read contains at least, if it was sent at that time.
    fn least(&self, sent: Since) -> u64 {
        let count = self.answered.partition_point(|(at, _)| *at < sent);
        count.checked_sub(1).map_or(0, |last| self.answered[last].1)
    }

    /// The entry that a read does not reach, if it was answered at that time.
    fn limit(&self, answered: Since) -> u64 {
        let first = self.sent.partition_point(|(at, _)| *at <= answered);
        self.sent.get(first).map_or(u64::MAX, |(_, number)| *number)
    }
}

fn check_log_reads(history: &History, log: &[LogEntry], bounds: &Bounds) -> Vec<String> {
    let mut found = Vec::new();
    for read in &history.log_reads {
        let newest = read.entries.first().map_or(0, |(number, _)| *number);
        let (least, limit) = (bounds.least(read.sent), bounds.limit(read.answered));
        if newest < least || newest >= limit {
            found.push(format!(
                "s{} has shown the log up to {newest}, not from {least} to before {limit}: sent {:?}",
                read.server, read.sent
            ));
        }
        for ((number, hash), expected) in read.entries.iter().zip((0..=newest).rev()) {
            let entry = usize::try_from(*number).ok().and_then(|number| log.get(number.checked_sub(1)?));
            if *number != expected || entry.is_none_or(|entry| entry.hash != *hash) {
                found.push(format!(
                    "s{} has shown an entry that is not in the log: {number} {hash}",
                    read.server
                ));
            }
        }
    }
    found
}

/// The hosts of a read are those of some prefix of the log between its bounds.
fn check_host_reads(history: &History, log: &[LogEntry], bounds: &Bounds) -> Vec<String> {
    let prefixes = prefixes(log);
    let mut found = Vec::new();
    for read in &history.host_reads {
        let (least, limit) = (bounds.least(read.sent), bounds.limit(read.answered));
        let fingerprint = read.hosts.iter().fold(0, |sum, host| sum ^ fingerprint(host));
        let spans = prefixes.get(&fingerprint).map(Vec::as_slice).unwrap_or_default();
        let is_prefix = spans.iter().any(|(from, to)| *to >= least && *from < limit);
        if !is_prefix {
            let count = read.hosts.len();
            found.push(format!(
                "s{} has shown {count} hosts that were there at no time from entry {least} to before {limit}: sent {:?}",
                read.server, read.sent
            ));
        }
    }
    found
}

/// The set of hosts as a fingerprint, with the first and the last entry at which it was that.
fn prefixes(log: &[LogEntry]) -> BTreeMap<u64, Vec<(u64, u64)>> {
    let mut hosts = BTreeSet::new();
    let (mut current, mut since) = (0, 0);
    let mut spans = BTreeMap::<_, Vec<_>>::new();
    for entry in log {
        let before = current;
        for host in &entry.hosts {
            let is_changed = match entry.kind.as_str() {
                "admitted" if entry.machines.is_empty() => hosts.insert(host),
                "removed" if entry.machines.is_empty() => hosts.remove(host),
                _ => false,
            };
            current ^= if is_changed { fingerprint(host) } else { 0 };
        }
        if current != before {
            // The change belongs to the batch of its command.
            let number = entry.because.unwrap_or(entry.number);
            spans.entry(before).or_default().push((since, number.saturating_sub(1)));
            since = number;
        }
    }
    spans.entry(current).or_default().push((since, u64::MAX));
    spans
}

fn fingerprint(host: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    host.hash(&mut hasher);
    hasher.finish()
}

/// No server shows a guest a lower incarnation than before.
fn check_incarnations(history: &History) -> Vec<String> {
    let mut last = BTreeMap::new();
    let mut found = Vec::new();
    for sighting in &history.sightings {
        let before = last.insert((sighting.server, &sighting.guest), sighting.incarnation);
        if before.is_some_and(|before| before > sighting.incarnation) {
            let (server, guest) = (sighting.server, &sighting.guest);
            found.push(format!(
                "s{server} has shown {guest} incarnation {before:?}, then {}",
                sighting.incarnation
            ));
        }
    }
    found
}
