//! Search: the loop that both kinds of journal share.
//!
//! The journal says where to look next; this module inspects the entry there. Positions have no gaps, and neither have
//! the numbers of a stream, so a page ends at one of them, and the next begins there.

use std::ops::RangeInclusive;

use forewarn_control::AuditEntry;
use forewarn_lifecycle::Timestamp;

use super::{AuditBatch, AuditQuery, Direction, LoggedEntry, PAGE_ENTRIES_MAX, ReadError};

/// Bytes on one page, without its last entry.
const PAGE_BYTES_MAX: usize = 4 << 20;

/// Next step of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SearchStep {
    /// Inspect this entry; none before it matches.
    At(u64),
    /// No further entry matches.
    End,
    /// The limit of work is reached at this number.
    LimitReached(u64),
}

/// An entry that was inspected.
pub(super) enum Candidate {
    /// Outside the time range, or of another stream.
    Other,
    Entry {
        entry: LoggedEntry,
        /// Approximate memory of the entry.
        bytes: usize,
    },
}

/// The last entry swept, the newest visible entry and the newest entry: positions, or numbers of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StoredRange {
    pub(super) swept: u64,
    pub(super) head: u64,
    pub(super) end: u64,
}

impl StoredRange {
    /// The range of a log whose entries are visible up to one of them.
    pub(super) fn new(swept: u64, last: u64, shown_to: u64) -> Self {
        Self { swept, head: last.min(shown_to).max(swept), end: last.max(swept) }
    }
}

/// Positions or numbers to search, as far as the query limits them.
pub(super) fn range(query: &AuditQuery, stored: StoredRange) -> RangeInclusive<u64> {
    let first = query.after.map_or(0, |after| after.saturating_add(1)).max(stored.swept + 1);
    let last = query.before.map_or(u64::MAX, |before| before.saturating_sub(1)).min(stored.head);
    first..=last
}

/// Returns true if the time is within the range of the query.
pub(super) fn is_in_time(query: &AuditQuery, at: Timestamp) -> bool {
    query.since.is_none_or(|since| at >= since) && query.until.is_none_or(|until| at < until)
}

/// Searches from one end of the range to the other. `step` returns the next number to inspect, `look` inspects it, at
/// most `looks` times.
pub(super) fn search(
    query: &AuditQuery,
    stored: StoredRange,
    range: RangeInclusive<u64>,
    mut looks: usize,
    mut step: impl FnMut(u64) -> Result<SearchStep, ReadError>,
    mut look: impl FnMut(u64) -> Result<Candidate, ReadError>,
) -> Result<AuditBatch, ReadError> {
    let limit = query.limit.min(PAGE_ENTRIES_MAX);
    let (mut entries, mut bytes) = (Vec::new(), 0);
    let StoredRange { swept, head, end } = stored;
    let page = |entries, next| Ok(AuditBatch { entries, next, head, end, swept });
    if range.is_empty() || limit == 0 {
        return page(entries, None);
    }
    let mut place = match query.direction {
        Direction::OldestFirst => *range.start(),
        Direction::NewestFirst => *range.end(),
    };
    loop {
        let number = match step(place)? {
            SearchStep::At(number) if range.contains(&number) => number,
            SearchStep::At(_) | SearchStep::End => return page(entries, None),
            SearchStep::LimitReached(number) => return page(entries, Some(before(query.direction, number))),
        };
        if looks == 0 {
            return page(entries, Some(before(query.direction, number)));
        }
        looks -= 1;
        if let Candidate::Entry { entry, bytes: more } = look(number)?
            && concerns_all(query, &entry.entry)
        {
            // Search for one more than requested, so that a page with a continuation has a next page.
            if entries.len() == limit || bytes > PAGE_BYTES_MAX {
                return page(entries, Some(before(query.direction, number)));
            }
            bytes += more;
            entries.push(entry);
        }
        match beyond(query.direction, number).filter(|next| range.contains(next)) {
            Some(next) => place = next,
            None => return page(entries, None),
        }
    }
}

fn concerns_all(query: &AuditQuery, entry: &AuditEntry) -> bool {
    query.groups.iter().all(|group| group.iter().any(|subject| entry.concerns(subject)))
}

fn beyond(direction: Direction, number: u64) -> Option<u64> {
    match direction {
        Direction::OldestFirst => number.checked_add(1),
        Direction::NewestFirst => number.checked_sub(1),
    }
}

/// The continuation after which the search resumes with that number.
fn before(direction: Direction, number: u64) -> u64 {
    match direction {
        Direction::OldestFirst => number.saturating_sub(1),
        Direction::NewestFirst => number.saturating_add(1),
    }
}
