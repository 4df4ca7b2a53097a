//! Logs with several chains: the common log of older versions, and one chain per stream.

use std::collections::BTreeMap;

use forewarn_control::*;
use proptest::prelude::*;
use proptest::sample::Index;

const SHARED: Stream = Stream::Shared;

const fn cluster(number: u32) -> Stream {
    Stream::Cluster(ClusterId(number))
}

/// A log that is written.
#[derive(Default)]
struct Writer {
    ends: BTreeMap<Option<Stream>, Chain>,
    entries: Vec<AuditEntry>,
}

impl Writer {
    fn write(&mut self, stream: Option<Stream>) {
        let text = format!("thing {}", self.entries.len());
        let new = NewAuditEntry { text, stream, ..NewAuditEntry::default() };
        self.entries.push(self.ends.entry(stream).or_default().seal(new));
    }

    /// A log of these streams; none: the common log. Streams in `continued` continue the common log.
    fn log(streams: &[Option<Stream>], continued: &[Stream]) -> Vec<AuditEntry> {
        let mut writer = Self::default();
        let (common, later): (Vec<Option<Stream>>, Vec<_>) =
            streams.iter().partition(|stream| stream.is_none());
        common.into_iter().for_each(|stream| writer.write(stream));
        let end = writer.ends.get(&None).copied().unwrap_or_default();
        writer.ends.extend(continued.iter().map(|stream| (Some(*stream), end)));
        later.into_iter().for_each(|stream| writer.write(stream));
        writer.entries
    }
}

fn verify(mut verifier: AuditVerifier, entries: &[AuditEntry]) -> Result<AuditVerifier, BrokenChain> {
    entries.iter().try_for_each(|entry| verifier.verify(entry))?;
    verifier.finish()?;
    Ok(verifier)
}

fn ends(verifier: &AuditVerifier) -> Vec<(Option<Stream>, u64, u64)> {
    verifier.chains().map(|(stream, chain)| (stream, chain.entries, chain.end.number)).collect()
}

/// The migrated log of the tests: common 1 to 3, shared and cluster 0 from 4, cluster 1 from 1.
fn migrated() -> Vec<AuditEntry> {
    let (shared, zero, one) = (Some(SHARED), Some(cluster(0)), Some(cluster(1)));
    Writer::log(&[None, None, None, zero, shared, one, zero, one, shared, zero], &[SHARED, cluster(0)])
}

/// promise: C5
#[test]
fn a_stream_has_one_spelling_and_is_sealed_before_the_hash() {
    let mut chain = Chain::default();
    let entry = chain.seal(NewAuditEntry { stream: Some(cluster(3)), ..NewAuditEntry::default() });
    let line = entry.to_line();
    assert!(line.contains(r#","stream":"cluster-3","hash":""#), "{line}");
    assert_eq!(serde_json::from_str::<AuditEntry>(&line).unwrap(), entry);
    for wrong in ["cluster-03", "cluster-+3", "cluster-", "cluster-4294967296", "Shared", "common", ""] {
        let wrong = line.replace("cluster-3", wrong);
        assert!(serde_json::from_str::<AuditEntry>(&wrong).is_err(), "{wrong}");
    }
    let common = chain.seal(NewAuditEntry::default());
    assert!(!common.to_line().contains("stream"));
}

#[test]
fn an_entry_of_the_common_log_belongs_to_its_cluster() {
    let of = |stream, name: &str, cluster_number| {
        let cluster = name.to_owned();
        let new = NewAuditEntry { stream, cluster, cluster_number, ..NewAuditEntry::default() };
        Chain::default().seal(new).belongs_to()
    };
    assert_eq!(of(None, "", 0), SHARED);
    assert_eq!(of(None, "default", 0), cluster(0));
    assert_eq!(of(None, "west", 4), cluster(4));
    assert_eq!(of(Some(SHARED), "west", 4), SHARED);
    assert_eq!(of(Some(cluster(4)), "", 4), cluster(4));
}

/// Causes are found within a chain only: numbers of other chains are the same.
#[test]
fn a_cause_is_an_entry_of_the_same_chain() {
    let caused = |stream| {
        Chain::default().seal(NewAuditEntry { because: Some(7), stream, ..NewAuditEntry::default() })
    };
    let because = |stream| Subject::Because { stream, number: 7 };
    let all = [None, Some(SHARED), Some(cluster(0)), Some(cluster(7))];
    for (stream, other) in all.iter().flat_map(|stream| all.map(|other| (*stream, other))) {
        let is_same = stream == other;
        assert_eq!(caused(stream).concerns(&because(other)), is_same);
        assert_eq!(because(stream).to_string() == because(other).to_string(), is_same);
    }
    assert_eq!(because(None).to_string(), "because:7");
    assert_eq!(because(Some(cluster(3))).to_string(), "cluster-3/because:7");
}

/// promise: C5
#[test]
fn one_verifier_reads_logs_of_old_migrated_and_new_servers() {
    let old = verify(AuditVerifier::new(), &Writer::log(&[None; 4], &[])).unwrap();
    assert_eq!(ends(&old), [(None, 4, 4)]);
    let migrated = verify(AuditVerifier::new(), &migrated()).unwrap();
    let (shared, zero, one) = (Some(SHARED), Some(cluster(0)), Some(cluster(1)));
    assert_eq!(ends(&migrated), [(None, 3, 3), (shared, 2, 5), (zero, 3, 6), (one, 2, 2)]);
    assert_eq!(migrated.entries(), 10);
    assert_eq!(migrated.chain(zero).unwrap().start, migrated.chain(None).unwrap().end);
    let new = verify(AuditVerifier::new(), &Writer::log(&[shared, zero, zero, shared, one], &[])).unwrap();
    assert_eq!(ends(&new), [(shared, 2, 2), (zero, 2, 2), (one, 1, 1)]);
}

/// promise: C5
#[test]
fn the_broken_entry_is_named_with_its_stream() {
    let entries = migrated();
    let without = |gone: usize| {
        let mut left = entries.clone();
        left.remove(gone);
        verify(AuditVerifier::new(), &left).unwrap_err().to_string()
    };
    assert_eq!(without(1), "audit entry 2 is missing: entry 3 comes next");
    // Nothing of the common log itself follows, but streams continue it.
    assert_eq!(without(2), "audit entry 3 is missing: entry 4 comes next (in cluster-0)");
    assert_eq!(without(3), "audit entry 4 is missing: entry 5 comes next (in cluster-0)");
    assert_eq!(without(5), "audit entry 1 is missing: entry 2 comes next (in cluster-1)");
    let mut late = entries.clone();
    late[2..6].rotate_right(1);
    let late = verify(AuditVerifier::new(), &late).unwrap_err();
    assert_eq!(late.to_string(), "audit entry 3 of the common log comes after the end of that log");
    let mut other = entries.clone();
    other[4].stream = Some(cluster(7));
    let other = verify(AuditVerifier::new(), &other).unwrap_err();
    assert_eq!((other.stream, other.link), (Some(cluster(7)), BrokenLink::Hash(4)));
}

/// promise: C5
#[test]
fn the_rest_of_a_log_is_verified_from_what_is_trusted() {
    let entries = migrated();
    let zero = Some(cluster(0));
    // Without anything that is trusted, a part is not a log.
    let broken = verify(AuditVerifier::new(), &entries[6..]).unwrap_err();
    assert_eq!(broken.link, BrokenLink::Missing { expected: 1, found: 5 });
    let rest = verify(AuditVerifier::of_rest(), &entries[6..]).unwrap();
    assert!(rest.chain(zero).unwrap().is_part && rest.chain(zero).unwrap().start.number == 4);
    assert_eq!(ends(&rest), [(Some(SHARED), 1, 5), (zero, 2, 6), (Some(cluster(1)), 1, 2)]);
    // The common log is there: streams cannot begin after it.
    let gap = [&entries[1..3], &entries[6..]].concat();
    let broken = verify(AuditVerifier::of_rest(), &gap).unwrap_err();
    assert_eq!((broken.stream, broken.link), (zero, BrokenLink::Missing { expected: 4, found: 5 }));

    let trusted = || {
        let start = |at: usize| (entries[at].stream, Chain::at(&entries[at]).unwrap());
        let starts = [start(3), start(4), start(5)];
        starts.into_iter().fold(AuditVerifier::new(), |it, (stream, at)| it.starting(stream, at))
    };
    let part = verify(trusted(), &entries[6..]).unwrap();
    assert!(part.chains().all(|(_, chain)| !chain.is_part));
    assert_eq!(verify(trusted(), &entries[7..]).unwrap_err().stream, zero);
    let mut forged = entries[6].clone();
    forged.text.push('x');
    assert_eq!(verify(trusted(), &[forged]).unwrap_err().link, BrokenLink::Hash(5));
}

/// promise: C5
#[test]
fn the_newest_entries_of_a_chain_are_missed_if_its_end_is_known() {
    let entries = migrated();
    let zero = Some(cluster(0));
    let expecting =
        |at: usize| AuditVerifier::new().expecting(entries[at].stream, Chain::at(&entries[at]).unwrap());
    assert!(verify(AuditVerifier::new(), &entries[..9]).is_ok());
    let short = verify(expecting(9), &entries[..9]).unwrap_err();
    assert_eq!((short.stream, short.link), (zero, BrokenLink::Short { expected: 6, last: 5 }));
    let none = verify(expecting(5), &entries[..5]).unwrap_err();
    assert_eq!(none.to_string(), "audit entry 1 is missing: the last one is entry 0 (in cluster-1)");
    assert!(verify(expecting(3), &entries).is_ok(), "later entries are no harm");
    // A chain that was written again from there is another one.
    let (shared, one) = (Some(SHARED), Some(cluster(1)));
    let again = Writer::log(&[None, None, None, zero, zero, zero, shared, one, one], &[SHARED, cluster(0)]);
    assert!(verify(AuditVerifier::new(), &again).is_ok());
    assert_eq!(verify(expecting(9), &again).unwrap_err().link, BrokenLink::Hash(6));
    // An entry before the rest of a log cannot be compared.
    let rest =
        |at: usize| AuditVerifier::of_rest().expecting(entries[at].stream, Chain::at(&entries[at]).unwrap());
    assert!(verify(rest(6), &entries[6..]).is_ok());
    let begun = verify(rest(3), &entries[6..]).unwrap_err();
    assert_eq!((begun.stream, begun.link), (zero, BrokenLink::Begun { expected: 4, first: 5 }));
    // A stream that continues the common log may have no entries yet.
    let common = Chain::at(&entries[2]).unwrap();
    assert!(verify(AuditVerifier::new().expecting(shared, common), &entries[..4]).is_ok());
    assert!(verify(AuditVerifier::new().expecting(shared, common), &entries[..2]).is_err());
}

fn logs() -> impl Strategy<Value = Vec<AuditEntry>> {
    let stream =
        prop_oneof![Just(None), Just(Some(SHARED)), (0..3_u32).prop_map(|number| Some(cluster(number))),];
    (
        prop::collection::vec(stream, 1..20),
        prop::sample::subsequence(vec![SHARED, cluster(0), cluster(1)], 0..=3),
    )
        .prop_map(|(streams, continued)| Writer::log(&streams, &continued))
}

/// The entries of each chain, in their order.
fn by_chain(entries: &[AuditEntry]) -> BTreeMap<Option<Stream>, Vec<&AuditEntry>> {
    let mut chains = BTreeMap::<_, Vec<_>>::new();
    entries.iter().for_each(|entry| chains.entry(entry.stream).or_default().push(entry));
    chains
}

/// A verifier that knows the end of every chain.
fn knowing_ends(entries: &[AuditEntry]) -> AuditVerifier {
    let mut verifier = AuditVerifier::new();
    for (stream, chain) in by_chain(entries) {
        verifier = verifier.expecting(stream, Chain::at(chain[chain.len() - 1]).unwrap());
    }
    verifier
}

/// Returns true if streams come after the common log.
fn is_common_first(entries: &[AuditEntry]) -> bool {
    entries.is_sorted_by_key(|entry| entry.stream.is_some())
}

proptest! {
    /// promise: C5
    #[test]
    fn every_order_of_streams_verifies(entries in logs(), keys in prop::collection::vec(any::<u32>(), 5)) {
        let whole = verify(knowing_ends(&entries), &entries).unwrap();
        // All of one stream, then all of the next, in any order of streams.
        let place = |entry: &AuditEntry| entry.stream.map(|stream| match stream {
            Stream::Shared => keys[0],
            Stream::Cluster(ClusterId(number)) => keys[number as usize + 1],
        });
        let mut sorted = entries.clone();
        sorted.sort_by_key(place);
        let other = verify(knowing_ends(&entries), &sorted).unwrap();
        prop_assert!(whole.chains().eq(other.chains()));
        prop_assert_eq!(whole.entries(), entries.len() as u64);
    }

    /// promise: C5
    #[test]
    fn a_changed_entry_is_found(entries in logs(), at: Index, change in 0..4) {
        let mut changed = entries.clone();
        let entry = &mut changed[at.index(entries.len())];
        match change {
            0 => entry.text.push('x'),
            1 => entry.number += 1,
            2 => entry.stream = if entry.stream.is_none() { Some(cluster(2)) } else { None },
            _ => entry.hash.replace_range(..1, if entry.hash.starts_with('0') { "1" } else { "0" }),
        }
        prop_assert!(verify(AuditVerifier::new(), &changed).is_err());
    }

    /// promise: C5
    #[test]
    fn a_removed_entry_is_found(entries in logs(), at: Index) {
        let at = at.index(entries.len());
        let mut left = entries.clone();
        let gone = left.remove(at);
        prop_assert!(verify(knowing_ends(&entries), &left).is_err());
        // Without the ends, the next entry of the chain tells it, or one that continues the common log.
        let is_followed = left[at..].iter().any(|entry| entry.stream == gone.stream);
        if is_followed {
            prop_assert!(verify(AuditVerifier::new(), &left).is_err());
        }
    }

    /// promise: C5
    #[test]
    fn a_repeated_entry_is_found(entries in logs(), at: Index, to: Index) {
        let at = at.index(entries.len());
        let to = at + 1 + to.index(entries.len() - at);
        let mut more = entries.clone();
        more.insert(to, entries[at].clone());
        prop_assert!(verify(AuditVerifier::new(), &more).is_err());
    }

    /// Entries of different streams may be swapped, if each stream keeps its order.
    /// promise: C5
    #[test]
    fn swapped_entries_of_a_chain_are_found(entries in logs(), one: Index, other: Index) {
        let mut swapped = entries.clone();
        swapped.swap(one.index(entries.len()), other.index(entries.len()));
        let is_same = by_chain(&swapped) == by_chain(&entries) && is_common_first(&swapped);
        prop_assert_eq!(verify(AuditVerifier::new(), &swapped).is_ok(), is_same);
    }
}
