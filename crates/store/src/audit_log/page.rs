//! Pages of the audit log of a journal in a directory.

use std::collections::BTreeMap;

use rusqlite::Connection;

use super::search::{SearchStep, StoredRange, range, search};
use super::stream_log::StreamLog;
use super::subject_finder::SubjectFinder;
use super::table::{ROWS_PER_QUERY_MAX, candidate, hours, read_present};
use super::{AuditBatch, AuditQuery, Direction, ReadError};
use crate::heading::Headings;
use crate::stream_key::StreamKey;

/// Runs a query on the audit file, which has every visible entry. `hidden` has the last number that readers see, by
/// stream. A reader of all streams sees nothing from the first hidden position on, so that it misses no entry that
/// appears later. A reader of one stream misses none anyway, as its numbers have no gaps: only hidden entries of that
/// stream, and of the common log before it, are invisible to it. `shown_to` is the last position before all hidden
/// entries.
pub(crate) fn read_page(
    connection: &Connection,
    headings: &Headings,
    query: &AuditQuery,
    (hidden, shown_to): (&BTreeMap<StreamKey, u64>, u64),
) -> Result<AuditBatch, ReadError> {
    if let Some(stream) = query.stream {
        let last = |stream: StreamKey| hidden.get(&stream).copied();
        let common = headings.get(stream.into()).map_or(0, |heading| heading.begin.number);
        let last_common = last(StreamKey::COMMON).filter(|last| *last < common);
        let last = last_common.or_else(|| last(stream.into()));
        return StreamLog::open(connection, headings, stream, last).read_page(query);
    }
    let swept = headings.journal.audit_swept.number;
    let stored = StoredRange::new(swept, headings.journal.audit_end.number, shown_to);
    let mut range = range(query, stored);
    if query.since.is_some() || query.until.is_some() {
        let (first, last) = hours(connection, query)?;
        range = first.max(*range.start())..=last.min(*range.end());
    }
    let mut finder = SubjectFinder::new(connection, query.direction, &query.groups);
    let look = |position| candidate(query, &read_present(connection, position)?);
    let step = |position| match finder.next(position)? {
        SearchStep::At(found) => Ok(past_missing(headings, query.direction, found)),
        other @ (SearchStep::End | SearchStep::LimitReached(_)) => Ok(other),
    };
    search(query, stored, range, ROWS_PER_QUERY_MAX, step, look)
}

/// The next position at which an entry is there.
fn past_missing(headings: &Headings, direction: Direction, mut position: u64) -> SearchStep {
    while let Some(missing) = headings.gap_at(position) {
        position = match direction {
            Direction::OldestFirst => missing.last.saturating_add(1),
            Direction::NewestFirst if missing.first <= 1 => return SearchStep::End,
            Direction::NewestFirst => missing.first - 1,
        };
    }
    SearchStep::At(position)
}
