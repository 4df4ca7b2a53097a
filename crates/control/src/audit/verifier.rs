//! Verification of an audit log with several chains: the common log of older versions, and one chain per stream.
//!
//! ```text
//!   common log   1 ── 2 ── … ── N          written by older versions; never continued
//!                               ├── shared      N+1 ── N+2 ── …    streams that existed then continue it
//!                               └── cluster-0   N+1 ── N+2 ── …
//!   cluster-1    1 ── 2 ── …               created later
//! ```
//!
//! Entries of different streams may come in any order; those of one stream, and the common log before all others, may
//! not. The removal of the newest entries of a chain leaves no trace in the others: it is found only if the end of the
//! chain is known ([`AuditVerifier::expecting`]).

use std::collections::BTreeMap;
use std::fmt;

use crate::audit::log::{AuditEntry, BrokenLink, Chain};
use crate::stream::Stream;

/// Verifies entries, each against the chain of its stream.
#[derive(Clone, Debug, Default)]
pub struct AuditVerifier {
    /// No stream: the common log.
    chains: BTreeMap<Option<Stream>, VerifiedChain>,
    starts: BTreeMap<Option<Stream>, Chain>,
    heads: BTreeMap<Option<Stream>, Chain>,
    trusts_first: bool,
}

/// The verified part of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifiedChain {
    /// The entry before the first verified one: number 0 and zeros at the beginning of a log. If the first entry is
    /// trusted, its hash is not known, and is zeros.
    pub start: Chain,
    /// The last entry.
    pub end: Chain,
    /// Number of verified entries.
    pub entries: u64,
    /// True if the hash of the first entry was taken on trust: the entry before it is not known.
    pub is_part: bool,
}

/// The first entry that breaks a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub struct BrokenChain {
    /// The stream of the chain. None: the common log.
    pub stream: Option<Stream>,
    #[source]
    pub link: BrokenLink,
}

impl fmt::Display for BrokenChain {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.stream {
            Some(stream) => write!(out, "{} (in {stream})", self.link),
            None => write!(out, "{}", self.link),
        }
    }
}

impl AuditVerifier {
    /// A verifier of a complete log.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A verifier of the rest of a log, whose beginning may have been removed by retention: the first entry of a chain
    /// is trusted if the entry before it cannot be in the rest.
    #[must_use]
    pub fn of_rest() -> Self {
        Self { trusts_first: true, ..Self::default() }
    }

    /// Trusts the entry before the first one of a chain; no stream: of the common log.
    #[must_use]
    pub fn starting(mut self, stream: Option<Stream>, start: Chain) -> Self {
        self.starts.insert(stream, start);
        self
    }

    /// Requires an entry of a chain: it and all entries before it are there, and are not changed.
    #[must_use]
    pub fn expecting(mut self, stream: Option<Stream>, head: Chain) -> Self {
        self.heads.insert(stream, head);
        self
    }

    /// Verifies the next entry of its chain. After an error, the verifier is unchanged.
    ///
    /// # Errors
    /// Fails if the entry does not follow the entries of its chain.
    pub fn verify(&mut self, entry: &AuditEntry) -> Result<(), BrokenChain> {
        let stream = entry.stream;
        self.next(entry).map_err(|link| BrokenChain { stream, link })
    }

    fn next(&mut self, entry: &AuditEntry) -> Result<(), BrokenLink> {
        let stream = entry.stream;
        if stream.is_none() && self.chains.keys().any(Option::is_some) {
            return Err(BrokenLink::Late(entry.number));
        }
        let mut chain = match self.chains.get(&stream) {
            Some(chain) => *chain,
            None => self.begin(entry),
        };
        if chain.is_part && chain.entries == 0 {
            chain.end = Chain::at(entry)?;
        } else {
            chain.end.verify(entry)?;
        }
        chain.entries += 1;
        let is_other = |head: &&Chain| head.number == chain.end.number && **head != chain.end;
        if self.heads.get(&stream).filter(is_other).is_some() {
            return Err(BrokenLink::Hash(entry.number));
        }
        self.chains.insert(stream, chain);
        Ok(())
    }

    /// The chain before its first entry.
    fn begin(&self, entry: &AuditEntry) -> VerifiedChain {
        let at = |start| VerifiedChain { start, end: start, entries: 0, is_part: false };
        if let Some(start) = self.starts.get(&entry.stream) {
            return at(*start);
        }
        // Streams continue the common log, but for those that were created later and begin with 1.
        let before = entry.number.saturating_sub(1);
        match entry.stream.and_then(|_| self.common_end()) {
            Some(common) if before >= common.number => at(common),
            None if self.trusts_first && before > 0 => {
                let start = Chain { number: before, ..Chain::default() };
                VerifiedChain { is_part: true, ..at(start) }
            }
            Some(_) | None => at(Chain::default()),
        }
    }

    /// The end of the common log, if it is known.
    fn common_end(&self) -> Option<Chain> {
        let start = || self.starts.get(&None).copied();
        self.chains.get(&None).map(|common| common.end).or_else(start)
    }

    /// The chains so far. No stream: the common log, which comes first.
    pub fn chains(&self) -> impl Iterator<Item = (Option<Stream>, &VerifiedChain)> {
        self.chains.iter().map(|(stream, chain)| (*stream, chain))
    }

    /// The chain of a stream, or of the common log. None if it has no entries.
    #[must_use]
    pub fn chain(&self, stream: Option<Stream>) -> Option<&VerifiedChain> {
        self.chains.get(&stream)
    }

    /// Number of verified entries.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.chains.values().map(|chain| chain.entries).sum()
    }

    /// Checks that every expected entry was there.
    ///
    /// # Errors
    /// Fails if a chain ends before, or begins after it.
    pub fn finish(&self) -> Result<(), BrokenChain> {
        for (stream, head) in &self.heads {
            let broken = |link| BrokenChain { stream: *stream, link };
            let end = match self.chains.get(stream) {
                Some(chain) => chain.end,
                None => self.end_without_entries(*stream, head),
            };
            if let Some(VerifiedChain { start, is_part, .. }) = self.chains.get(stream)
                && (head.number < start.number || head.number == start.number && *is_part)
            {
                let (expected, first) = (head.number, start.number + 1);
                return Err(broken(BrokenLink::Begun { expected, first }));
            }
            if end.number < head.number {
                return Err(broken(BrokenLink::Short { expected: head.number, last: end.number }));
            }
            let start = self.chains.get(stream).map(|chain| chain.start);
            let same_number = start.into_iter().chain([end]).find(|known| known.number == head.number);
            if same_number.is_some_and(|known| known != *head) {
                return Err(broken(BrokenLink::Hash(head.number)));
            }
        }
        Ok(())
    }

    /// The end of a chain that has no entries here. It may continue the common log, and have none yet.
    fn end_without_entries(&self, stream: Option<Stream>, head: &Chain) -> Chain {
        let start = self.starts.get(&stream).copied();
        let common = || stream.and_then(|_| self.common_end()).filter(|common| common.number == head.number);
        start.or_else(common).unwrap_or_default()
    }
}
