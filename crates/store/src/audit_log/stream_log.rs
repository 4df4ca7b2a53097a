//! The audit log of one stream, by number: entries of the common log that concern it, then its own.
//!
//! ```text
//!   position   1 … N (common log)   N+1  N+2  N+3  N+4 …
//!   stream     –                    a    b    a    a
//!   number     1 … N                of a: N+1, N+2, N+3
//! ```
//!
//! Numbers and positions of a stream grow together, so a position is translated to a number by bisection.

use forewarn_control::{ClusterId, Stream, Subject, cluster_key};
use rusqlite::Connection;

use super::search::{Candidate, SearchStep, StoredRange, range, search};
use super::subject_finder::SubjectFinder;
use super::table::{AuditRow, ROWS_PER_QUERY_MAX, candidate, hours, position_of, read_present};
use super::{AuditBatch, AuditQuery, Direction, ReadError};
use crate::audit_gap::AuditGap;
use crate::heading::Headings;
use crate::stream_key::StreamKey;

/// Name of the default cluster, which never changes.
const DEFAULT_NAME: &str = "default";

/// The log of a stream, as far as it is visible.
pub(super) struct StreamLog<'a> {
    connection: &'a Connection,
    stream: Stream,
    /// Last number of the common log; positions are the same up to it.
    begin: u64,
    stored: StoredRange,
    /// Entries that are missing.
    gaps: &'a [AuditGap],
}

impl<'a> StreamLog<'a> {
    /// `shown_to` is the last number that readers see, if entries after it are hidden.
    pub(super) fn open(
        connection: &'a Connection,
        headings: &'a Headings,
        stream: Stream,
        shown_to: Option<u64>,
    ) -> Self {
        let Some(heading) = headings.get(stream.into()) else {
            return Self { connection, stream, begin: 0, stored: StoredRange::new(0, 0, 0), gaps: &[] };
        };
        let begin = heading.begin.number;
        let swept = if heading.swept.number > begin {
            heading.swept.number
        } else {
            headings.get(StreamKey::COMMON).map_or(begin, |common| common.swept.number.min(begin))
        };
        let last = heading.audit_chain.number;
        let stored = StoredRange::new(swept, last, shown_to.unwrap_or(u64::MAX));
        Self { connection, stream, begin, stored, gaps: &heading.gaps }
    }

    pub(super) fn read_page(&self, query: &AuditQuery) -> Result<AuditBatch, ReadError> {
        let mut range = range(query, self.stored);
        if query.since.is_some() || query.until.is_some() {
            let (first, last) = hours(self.connection, query)?;
            let first = self.number_to(first.saturating_sub(1))?.saturating_add(1);
            range = first.max(*range.start())..=self.number_to(last)?.min(*range.end());
        }
        let mut groups = query.groups.clone();
        groups.extend(self.cluster_subject().map(|subject| vec![subject]));
        let mut finder = SubjectFinder::new(self.connection, query.direction, &groups);
        let step = |number| self.step(query, &mut finder, number);
        search(query, self.stored, range, ROWS_PER_QUERY_MAX, step, |number| self.look(query, number))
    }

    /// The subject that all entries of a cluster have.
    fn cluster_subject(&self) -> Option<Subject> {
        match self.stream {
            Stream::Shared => None,
            Stream::Cluster(ClusterId(id)) => Some(Subject::Cluster(cluster_key(id, DEFAULT_NAME))),
        }
    }

    /// The position of an entry; the log has all numbers between its ends.
    fn position(&self, number: u64) -> Result<u64, ReadError> {
        if number <= self.begin {
            return Ok(number);
        }
        let position = position_of(self.connection, self.stream.into(), number)?;
        let reserved = || self.gaps.iter().find_map(|gap| gap.run.position(number));
        position
            .or_else(reserved)
            .ok_or_else(|| ReadError::Damaged(format!("audit entry {number} of a stream is missing")))
    }

    /// The number of the last entry at or before a position.
    fn number_to(&self, position: u64) -> Result<u64, ReadError> {
        if position <= self.begin {
            return Ok(position);
        }
        // The entry at `below` is at or before the position, the one at `above` is not.
        let (mut below, mut above) = (self.begin.max(self.stored.swept), self.stored.head.saturating_add(1));
        while above.saturating_sub(below) > 1 {
            let middle = below + (above - below) / 2;
            if self.position(middle)? <= position {
                below = middle;
            } else {
                above = middle;
            }
        }
        Ok(below)
    }

    fn step(
        &self,
        query: &AuditQuery,
        finder: &mut SubjectFinder<'_>,
        number: u64,
    ) -> Result<SearchStep, ReadError> {
        if query.groups.is_empty() && (number > self.begin || self.stream == Stream::Shared) {
            return Ok(self.past_missing(query.direction, number));
        }
        let mut position = self.position(number)?;
        loop {
            position = match finder.next(position)? {
                SearchStep::At(found) if query.groups.is_empty() && found > self.begin => {
                    return Ok(SearchStep::At(self.begin + 1));
                }
                SearchStep::At(found) => {
                    let row = read_present(self.connection, found)?;
                    if row.stream == StreamKey::COMMON || row.stream == self.stream.into() {
                        return Ok(SearchStep::At(row.number));
                    }
                    match query.direction {
                        Direction::OldestFirst => found + 1,
                        Direction::NewestFirst => found.saturating_sub(1),
                    }
                }
                SearchStep::LimitReached(at) => return Ok(SearchStep::LimitReached(self.resume(query, at)?)),
                SearchStep::End if query.groups.is_empty() && query.direction == Direction::OldestFirst => {
                    return Ok(SearchStep::At(self.begin + 1));
                }
                SearchStep::End => return Ok(SearchStep::End),
            };
        }
    }

    /// The next number of an entry that is there.
    fn past_missing(&self, direction: Direction, mut number: u64) -> SearchStep {
        while let Some(gap) = self.gaps.iter().find(|gap| gap.has_number(number)) {
            number = match direction {
                Direction::OldestFirst => gap.last().saturating_add(1),
                Direction::NewestFirst if gap.first() <= 1 => return SearchStep::End,
                Direction::NewestFirst => gap.first() - 1,
            };
        }
        SearchStep::At(number)
    }

    /// The number with which a search resumes that was interrupted at a position.
    fn resume(&self, query: &AuditQuery, position: u64) -> Result<u64, ReadError> {
        match query.direction {
            Direction::OldestFirst => Ok(self.number_to(position.saturating_sub(1))?.saturating_add(1)),
            Direction::NewestFirst => self.number_to(position),
        }
    }

    fn look(&self, query: &AuditQuery, number: u64) -> Result<Candidate, ReadError> {
        let row: AuditRow = read_present(self.connection, self.position(number)?)?;
        let is_common = row.stream == StreamKey::COMMON;
        Ok(match candidate(query, &row)? {
            Candidate::Entry { entry, .. } if is_common && !self.is_concerned(&entry.entry) => {
                Candidate::Other
            }
            found @ (Candidate::Entry { .. } | Candidate::Other) => found,
        })
    }

    /// Returns true if an entry of the common log concerns the stream.
    fn is_concerned(&self, entry: &forewarn_control::AuditEntry) -> bool {
        self.cluster_subject().map_or(entry.cluster.is_empty(), |subject| entry.concerns(&subject))
    }
}
