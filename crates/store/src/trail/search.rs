//! Finding entries: the loop that both kinds of journal share.
//!
//! Where to look next is told by whoever knows the entries; what is found there is looked at here. Numbers have no gaps, so
//! that a page ends at a number, and the next begins there.

use std::ops::RangeInclusive;
use std::sync::Arc;

use forewarn_control::AuditEntry;
use forewarn_lifecycle::Timestamp;

use super::{AuditBatch, AuditQuery, Direction, PAGE_ENTRIES_MAX, ReadFailed};

/// Bytes on one page, but for its last entry.
const PAGE_BYTES_MAX: usize = 4 << 20;

/// Where to look next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Here; what lies between need not be looked at.
    At(u64),
    /// There is nothing more.
    End,
    /// Nothing is known from here on: enough work was done.
    Tired(u64),
}

/// An entry that was looked at.
pub(super) enum Seen {
    /// It is from another time.
    Other,
    /// It may be wanted.
    Entry {
        /// The entry.
        entry: Arc<AuditEntry>,
        /// About how much memory it takes.
        bytes: usize,
    },
}

/// What is kept: the numbers of the last entry that was swept and of the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) swept: u64,
    pub(super) head: u64,
}

/// The numbers among which to search, so far as the question says.
pub(super) fn range(query: &AuditQuery, kept: Kept) -> RangeInclusive<u64> {
    let first = query.after.map_or(0, |after| after.saturating_add(1)).max(kept.swept + 1);
    let last = query.before.map_or(u64::MAX, |before| before.saturating_sub(1)).min(kept.head);
    first..=last
}

/// Whether that moment is wanted.
pub(super) fn is_in_time(query: &AuditQuery, at: Timestamp) -> bool {
    query.since.is_none_or(|since| at >= since) && query.until.is_none_or(|until| at < until)
}

/// Searches from one end of the range to the other. `step` says where to look at or beyond a number, `look` looks there;
/// no more than `looks` times.
pub(super) fn search(
    query: &AuditQuery,
    kept: Kept,
    range: RangeInclusive<u64>,
    mut looks: usize,
    mut step: impl FnMut(u64) -> Result<Step, ReadFailed>,
    mut look: impl FnMut(u64) -> Result<Seen, ReadFailed>,
) -> Result<AuditBatch, ReadFailed> {
    let limit = query.limit.min(PAGE_ENTRIES_MAX);
    let (mut entries, mut bytes) = (Vec::new(), 0);
    let page = |entries, next| Ok(AuditBatch { entries, next, head: kept.head, swept: kept.swept });
    if range.is_empty() || limit == 0 {
        return page(entries, None);
    }
    let mut place = match query.direction {
        Direction::OldestFirst => *range.start(),
        Direction::NewestFirst => *range.end(),
    };
    loop {
        let number = match step(place)? {
            Step::At(number) if range.contains(&number) => number,
            Step::At(_) | Step::End => return page(entries, None),
            Step::Tired(number) => return page(entries, Some(before(query.direction, number))),
        };
        if looks == 0 {
            return page(entries, Some(before(query.direction, number)));
        }
        looks -= 1;
        if let Seen::Entry { entry, bytes: more } = look(number)?
            && concerns_all(query, &entry)
        {
            // One more than is wanted is looked for, so that a page that says it has a next one has.
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

/// What to say so that the search goes on with that number.
fn before(direction: Direction, number: u64) -> u64 {
    match direction {
        Direction::OldestFirst => number.saturating_sub(1),
        Direction::NewestFirst => number.saturating_add(1),
    }
}
