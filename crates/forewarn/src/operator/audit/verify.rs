//! Verifies an audit log as a stream: only one line is in memory, and the end of each chain.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};
use forewarn_control::{AuditEntry, AuditVerifier, ENTRY_BYTES_MAX, Stream};
use serde::Serialize;

use super::super::visible::one_line;
use super::expectation::ChainEntry;

/// Bytes of a line: an entry, its hash, and the newline.
const LINE_BYTES_MAX: usize = ENTRY_BYTES_MAX + 1_024;

/// Checks that each line is an entry whose hash follows from the previous entry of its chain.
#[derive(Debug)]
pub(super) struct Verifier {
    rest: Vec<u8>,
    /// Number of complete lines.
    lines: u64,
    chains: AuditVerifier,
    expected: Vec<ChainEntry>,
    /// The latest name of each cluster.
    names: BTreeMap<Stream, String>,
    only: Option<ClusterChoice>,
}

/// A cluster of which the chain is shown.
#[derive(Debug)]
struct ClusterChoice {
    name: String,
    /// The clusters that have, or have had, this name.
    streams: BTreeSet<Stream>,
}

/// The result of a verification.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct VerifiedLog {
    pub(super) entries: u64,
    pub(super) chains: Vec<ChainSummary>,
    /// True if entries were expected: then each chain says which.
    #[serde(skip)]
    is_compared: bool,
}

/// A verified chain.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct ChainSummary {
    /// None: the common log of older versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stream: Option<Stream>,
    /// The latest name of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cluster: Option<String>,
    pub(super) entries: u64,
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) hash: String,
    /// The last entry, as `--expect` takes it.
    pub(super) expect: String,
    /// Number of the entry that was expected and found. None: the end of the chain was not compared.
    pub(super) compared: Option<u64>,
    /// False if the entries before the first are missing.
    pub(super) is_complete: bool,
}

impl Verifier {
    /// A verifier that requires these entries.
    pub(super) fn expecting(expected: Vec<ChainEntry>) -> Self {
        let require = |chains: AuditVerifier, one: &ChainEntry| chains.expecting(one.stream, one.entry);
        Self {
            rest: Vec::new(),
            lines: 0,
            chains: expected.iter().fold(AuditVerifier::of_rest(), require),
            expected,
            names: BTreeMap::new(),
            only: None,
        }
    }

    /// Shows the chain of one cluster only, under any name that it has had, with the common log, which it continues.
    pub(super) fn only_of(mut self, cluster: Option<&str>) -> Self {
        self.only = cluster.map(|name| ClusterChoice { name: name.to_owned(), streams: BTreeSet::new() });
        self
    }

    pub(super) fn take(&mut self, piece: &[u8]) -> Result<()> {
        let mut lines = piece.split_inclusive(|byte| *byte == b'\n');
        for part in &mut lines {
            self.rest.extend_from_slice(part);
            if self.rest.len() > LINE_BYTES_MAX {
                bail!("line {} is too long for an entry: more than {LINE_BYTES_MAX} bytes", self.lines + 1);
            }
            if self.rest.ends_with(b"\n") {
                self.rest.pop();
                let line = std::mem::take(&mut self.rest);
                self.line(&line)?;
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8]) -> Result<()> {
        self.lines += 1;
        let number = self.lines;
        let entry: AuditEntry = match serde_json::from_slice(line) {
            Ok(entry) => entry,
            Err(error) => bail!("line {number} is not an audit log entry: {error}"),
        };
        if entry.to_line().as_bytes() != line {
            bail!("line {number}: audit log entry {} has been reformatted", entry.number);
        }
        if let Err(broken) = self.chains.verify(&entry) {
            bail!("line {number}: {broken}");
        }
        let stream = entry.belongs_to();
        if let Some(only) = self.only.as_mut().filter(|only| only.name == entry.cluster) {
            only.streams.insert(stream);
        }
        if stream != Stream::Shared && self.names.get(&stream) != Some(&entry.cluster) {
            self.names.insert(stream, entry.cluster);
        }
        Ok(())
    }

    /// Checks that the log does not end within a line, and that expected entries were there.
    pub(super) fn finish(self) -> Result<VerifiedLog> {
        if !self.rest.is_empty() {
            bail!("line {} is incomplete: the export was interrupted", self.lines + 1);
        }
        if let Err(broken) = self.chains.finish() {
            bail!("{broken}\n  hint: entries have been removed, or it is another audit log");
        }
        let chains = self.chains.chains().map(|(stream, chain)| ChainSummary {
            stream,
            cluster: stream.and_then(|stream| self.names.get(&stream).cloned()),
            entries: chain.entries,
            first: chain.start.number + 1,
            last: chain.end.number,
            hash: chain.end.hash_in_hex(),
            expect: ChainEntry { stream, entry: chain.end }.to_string(),
            compared: self.expected.iter().find(|one| one.stream == stream).map(|one| one.entry.number),
            is_complete: !chain.is_part,
        });
        let is_compared = !self.expected.is_empty();
        let verified = VerifiedLog { entries: self.lines, chains: chains.collect(), is_compared };
        match &self.only {
            Some(only) => verified.of_cluster(only),
            None => Ok(verified),
        }
    }
}

impl VerifiedLog {
    /// The chains of one cluster: its own, and the common log, which it continues.
    fn of_cluster(mut self, only: &ClusterChoice) -> Result<Self> {
        let has_common_only =
            !self.chains.is_empty() && self.chains.iter().all(|chain| chain.stream.is_none());
        if only.streams.is_empty() && has_common_only {
            bail!(
                "no entries of the cluster {}: there is only the common log of all clusters\n  \
                 hint: without --cluster, it is verified as a whole",
                only.name
            );
        }
        if only.streams.is_empty() {
            bail!("no entries of the cluster {}\n  hint: without --cluster, all chains are shown", only.name);
        }
        self.chains.retain(|chain| chain.stream.is_none_or(|stream| only.streams.contains(&stream)));
        self.entries = self.chains.iter().map(|chain| chain.entries).sum();
        Ok(self)
    }

    /// Requires that a chain ends with this hash.
    pub(super) fn expect_last(&mut self, hash: &str) -> Result<()> {
        self.is_compared = true;
        let Some(chain) = self.chains.iter_mut().find(|chain| chain.hash == hash) else {
            bail!(
                "unexpected last hash: no chain ends with {hash}\n  hint: there are later entries, or it is another \
                 audit log; --expect STREAM:NUMBER:HASH, as `audit verify` prints it, allows later entries"
            );
        };
        chain.compared = Some(chain.last);
        Ok(())
    }

    pub(super) fn sentences(&self) -> String {
        if self.entries == 0 {
            return "Nothing to verify: the audit log is empty.\n".to_owned();
        }
        let mut text = format!("Verified: {}.\n", counted(self.entries));
        for chain in &self.chains {
            let ChainSummary { entries, first, last, expect, is_complete, .. } = chain;
            let (name, entries) = (one_line(&chain.name()), counted(*entries));
            let missing = if *is_complete {
                String::new()
            } else {
                format!("; entries before {first} are missing and not verified")
            };
            let compared = match chain.compared {
                Some(number) => format!("; entry {number} is as expected"),
                None if self.is_compared => "; not compared with an expected entry".to_owned(),
                None => String::new(),
            };
            let range = format!("{entries}, from {first} to {last}{missing}{compared}");
            text.push_str(&format!("  {name}: {range}. The last entry is {expect}\n"));
        }
        text
    }
}

impl ChainSummary {
    fn name(&self) -> String {
        match (self.stream, &self.cluster) {
            (None, _) => "common log of all clusters".to_owned(),
            (Some(stream), Some(name)) => format!("{name} ({stream})"),
            (Some(stream), None) => stream.to_string(),
        }
    }
}

fn counted(entries: u64) -> String {
    if entries == 1 { "1 entry".to_owned() } else { format!("{entries} entries") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forewarn_control::{Chain, ClusterId, NewAuditEntry};

    const ZERO: Stream = Stream::Cluster(ClusterId(0));
    const ONE: Stream = Stream::Cluster(ClusterId(1));

    /// Entries of these streams; none: the common log, which `ZERO` and the shared stream continue.
    fn log(streams: &[Option<Stream>]) -> Vec<String> {
        let mut ends = BTreeMap::<Option<Stream>, Chain>::new();
        let write = |(at, stream): (usize, &Option<Stream>)| {
            let common = ends.get(&None).copied().unwrap_or_default();
            let begin = if *stream == Some(ONE) { Chain::default() } else { common };
            let cluster = match stream {
                Some(Stream::Shared) => "",
                Some(ONE) => "west",
                Some(_) | None => "default",
            };
            let cluster_number = u32::from(*stream == Some(ONE));
            let (cluster, text) = (cluster.to_owned(), format!("thing {at}"));
            let new =
                NewAuditEntry { text, cluster, cluster_number, stream: *stream, ..NewAuditEntry::default() };
            ends.entry(*stream).or_insert(begin).seal(new).to_line() + "\n"
        };
        streams.iter().enumerate().map(write).collect()
    }

    fn verified(text: &str) -> Result<VerifiedLog> {
        verified_by(Verifier::expecting(Vec::new()), text)
    }

    fn verified_by(mut verifier: Verifier, text: &str) -> Result<VerifiedLog> {
        // The pieces do not match the lines.
        text.as_bytes().chunks(7).try_for_each(|piece| verifier.take(piece))?;
        verifier.finish()
    }

    /// promise: C5
    #[test]
    fn a_complete_log_and_a_part_of_one_are_verified() {
        let lines = log(&[None; 5]);
        let whole = verified(&lines.concat()).unwrap();
        let [chain] = &whole.chains[..] else { panic!("{whole:?}") };
        assert_eq!((whole.entries, chain.first, chain.last, chain.is_complete), (5, 1, 5, true));
        let rest = verified(&lines[2..].concat()).unwrap();
        let [part] = &rest.chains[..] else { panic!("{rest:?}") };
        assert_eq!((rest.entries, part.first, part.last, part.is_complete), (3, 3, 5, false));
        assert_eq!(part.hash, chain.hash);
        assert!(
            rest.sentences().contains("from 3 to 5; entries before 3 are missing and not verified. The last")
        );
        assert_eq!(verified("").unwrap().sentences(), "Nothing to verify: the audit log is empty.\n");
    }

    /// promise: C5
    #[test]
    fn logs_of_migrated_and_of_new_servers_are_verified_by_stream() {
        let (shared, zero, one) = (Some(Stream::Shared), Some(ZERO), Some(ONE));
        let migrated = verified(&log(&[None, None, zero, shared, one, zero]).concat()).unwrap();
        let text = migrated.sentences();
        let shown: Vec<_> = text.lines().map(|line| line.split(". The").next().unwrap()).collect();
        let expected = [
            "Verified: 6 entries.",
            "  common log of all clusters: 2 entries, from 1 to 2",
            "  shared: 1 entry, from 3 to 3",
            "  default (cluster-0): 2 entries, from 3 to 4",
            "  west (cluster-1): 1 entry, from 1 to 1",
        ];
        assert_eq!(shown, expected);
        let new = verified(&log(&[shared, one, one]).concat()).unwrap();
        let json = serde_json::to_value(new).unwrap();
        let [shared, west] = [&json["chains"][0], &json["chains"][1]];
        assert_eq!((&shared["stream"], &west["cluster"]), (&"shared".into(), &"west".into()));
        let end = format!("cluster-1:2:{}", west["hash"].as_str().unwrap());
        assert_eq!((&west["expect"], &west["compared"]), (&end.into(), &serde_json::Value::Null));
    }

    /// The chains of a cluster of a log.
    fn only(cluster: &str, text: &str) -> Result<Vec<Option<Stream>>> {
        let verifier = Verifier::expecting(Vec::new()).only_of(Some(cluster));
        Ok(verified_by(verifier, text)?.chains.iter().map(|chain| chain.stream).collect())
    }

    /// promise: C5
    #[test]
    fn a_cluster_is_found_by_each_name_that_it_has_had() {
        let (shared, zero, one) = (Some(Stream::Shared), Some(ZERO), Some(ONE));
        let mut end = Chain::default();
        let renamed: String = ["west", "west2"]
            .map(|cluster| {
                let (cluster, cluster_number) = (cluster.to_owned(), 1);
                let new = NewAuditEntry { cluster, cluster_number, stream: one, ..NewAuditEntry::default() };
                end.seal(new).to_line() + "\n"
            })
            .concat();
        let text = log(&[None, zero, shared]).concat() + &renamed;
        for name in ["west", "west2"] {
            assert_eq!(only(name, &text).unwrap(), [None, one], "{name}, with the common log");
        }
        assert_eq!(only("default", &text).unwrap(), [None, zero]);
        let unknown = only("east", &text).unwrap_err().to_string();
        assert!(unknown.starts_with("no entries of the cluster east\n  hint: "), "{unknown}");
        let common = log(&[None, None]).concat();
        assert_eq!(only("default", &common).unwrap(), [None]);
        let unknown = only("east", &common).unwrap_err().to_string();
        assert!(unknown.contains("there is only the common log of all clusters\n  hint: "), "{unknown}");
    }

    /// An expected entry of a chain.
    fn expected(stream: Option<Stream>, line: &str) -> ChainEntry {
        let entry = serde_json::from_str(line).unwrap();
        ChainEntry { stream, entry: Chain::at(&entry).unwrap() }
    }

    /// promise: C5
    #[test]
    fn an_expected_entry_is_required_in_its_chain_and_later_ones_are_allowed() {
        let (zero, one) = (Some(ZERO), Some(ONE));
        let lines = log(&[zero, one, zero, one]);
        let noted = [expected(zero, &lines[2]), expected(one, &lines[1])];
        let compare = |text: &str| verified_by(Verifier::expecting(noted.to_vec()), text);
        let whole = compare(&lines.concat()).unwrap();
        assert_eq!(whole.chains.iter().map(|chain| chain.compared).collect::<Vec<_>>(), [Some(2), Some(1)]);
        let text = whole.sentences();
        assert!(
            text.contains("from 1 to 2; entry 1 is as expected. The last entry is cluster-1:2:"),
            "{text}"
        );
        let short = compare(&lines[..2].concat()).unwrap_err().to_string();
        assert!(short.starts_with("audit entry 2 is missing: the last one is entry 1 (in cluster-0)"));
        let mut other = log(&[one, one]);
        other.extend(log(&[zero, zero]));
        let changed = compare(&other.concat()).unwrap_err().to_string();
        assert!(changed.contains("its hash is wrong (in cluster-1)"), "{changed}");
    }

    /// promise: C5
    #[test]
    fn a_last_hash_compares_one_chain_and_the_others_say_so() {
        let lines = log(&[None, Some(ZERO), Some(ONE)]);
        let mut whole = verified(&lines.concat()).unwrap();
        assert!(!whole.sentences().contains("compared"));
        // It was noted before the upgrade.
        let common = whole.chains[0].hash.clone();
        whole.expect_last(&common).unwrap();
        let text = whole.sentences();
        assert_eq!(text.matches("; not compared with an expected entry. ").count(), 2, "{text}");
        assert!(text.contains("from 1 to 1; entry 1 is as expected. The last entry is common:1:"), "{text}");
        assert!(whole.expect_last(&"0".repeat(64)).unwrap_err().to_string().contains("hint: "));
    }

    /// promise: C5
    #[test]
    fn the_first_broken_link_is_named_with_its_line() {
        let lines = log(&[None; 5]);
        let wrong = |text: &str| verified(text).unwrap_err().to_string();
        let changed = lines.concat().replace("thing 2", "thing 9");
        assert!(wrong(&changed).starts_with("line 3: audit entry 3, or the one before it"));
        let gap = [&lines[..2], &lines[3..]].concat().concat();
        assert!(wrong(&gap).starts_with("line 3: audit entry 3 is missing"));
        let first = lines.concat().replace("thing 0", "thing 9");
        assert!(wrong(&first).starts_with("line 1: audit entry 1"));
        let spaced = lines.concat().replacen("\"text\":\"thing 1\"", "\"text\": \"thing 1\"", 1);
        assert_eq!(wrong(&spaced), "line 2: audit log entry 2 has been reformatted");
        assert!(wrong("{}\n").starts_with("line 1 is not an audit log entry"));
        let cut = lines.concat();
        assert!(wrong(&cut[..cut.len() - 9]).starts_with("line 5 is incomplete"));
        let streams = log(&[None, Some(ZERO), Some(ONE), Some(ZERO), Some(ONE)]);
        let gap = [&streams[..1], &streams[2..]].concat().concat();
        assert_eq!(wrong(&gap), "line 3: audit entry 2 is missing: entry 3 comes next (in cluster-0)");
    }
}
