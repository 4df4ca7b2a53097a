//! The entries that a client of the live stream has seen, as the `id` of the stream.
//!
//! Each cluster publishes its entries for itself, so entries may reach the stream out of the order of their positions.
//! Positions have no gaps: all entries up to one, and some beyond it, describe every state of a client.
//!
//! ```text
//!   id: 4        everything up to position 4
//!   id: 4+6,7    and the entries at positions 6 and 7, but not 5
//! ```

use std::collections::BTreeSet;
use std::fmt;

use super::audit_cursor::parse_position;

/// Maximum entries beyond a missing one. Later entries wait until it is there.
pub(super) const BEYOND_MAX: usize = 64;

/// Positions of entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SeenEntries {
    /// All entries up to here.
    all_to: u64,
    /// Others: none follows [`Self::all_to`] directly.
    beyond: BTreeSet<u64>,
}

impl SeenEntries {
    /// All entries up to a position.
    pub(super) fn to(all_to: u64) -> Self {
        Self { all_to, beyond: BTreeSet::new() }
    }

    /// Parses the id of a stream. None if it is malformed.
    pub(super) fn parse(id: &str) -> Option<Self> {
        let (all_to, beyond) = id.split_once('+').map_or((id, None), |(to, beyond)| (to, Some(beyond)));
        let mut seen = Self::to(parse_position(all_to)?);
        for (count, position) in beyond.into_iter().flat_map(|beyond| beyond.split(',')).enumerate() {
            if count == BEYOND_MAX {
                return None;
            }
            seen.add(parse_position(position)?);
        }
        Some(seen)
    }

    /// Returns true if all positions are within a log with this end. Greater positions belong to another audit log.
    pub(super) fn is_within(&self, end: u64) -> bool {
        self.all_to <= end && self.beyond.last().is_none_or(|last| *last <= end)
    }

    /// The last position up to which nothing is missing.
    pub(super) fn all_to(&self) -> u64 {
        self.all_to
    }

    pub(super) fn contains(&self, position: u64) -> bool {
        position <= self.all_to || self.beyond.contains(&position)
    }

    /// Returns true if an entry can be added: it is the next one, or there is room beyond.
    pub(super) fn has_room(&self, position: u64) -> bool {
        self.all_to.checked_add(1) == Some(position) || self.beyond.len() < BEYOND_MAX
    }

    /// Adds an entry.
    pub(super) fn add(&mut self, position: u64) {
        if position > self.all_to {
            self.beyond.insert(position);
            self.close();
        }
    }

    /// Adds all entries up to a position.
    pub(super) fn add_all_to(&mut self, position: u64) {
        self.all_to = self.all_to.max(position);
        self.close();
    }

    /// Moves the end of what is complete as far as possible.
    fn close(&mut self) {
        self.beyond.retain(|position| *position > self.all_to);
        while let Some(next) = self.all_to.checked_add(1).filter(|next| self.beyond.contains(next)) {
            self.beyond.remove(&next);
            self.all_to = next;
        }
    }
}

impl fmt::Display for SeenEntries {
    /// The id of the stream.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.all_to)?;
        for (count, position) in self.beyond.iter().enumerate() {
            write!(out, "{}{position}", if count == 0 { '+' } else { ',' })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// promise: C5
    #[test]
    fn entries_out_of_order_are_remembered_until_the_gap_is_closed() {
        let mut seen = SeenEntries::to(4);
        let ids: Vec<_> = [6, 7, 9, 5, 5, 8, 10]
            .map(|position| {
                seen.add(position);
                assert_eq!(SeenEntries::parse(&seen.to_string()), Some(seen.clone()));
                seen.to_string()
            })
            .to_vec();
        assert_eq!(ids, ["4+6", "4+6,7", "4+6,7,9", "7+9", "7+9", "9", "10"]);
        assert!(seen.contains(10) && !seen.contains(11));
        seen.add(13);
        seen.add_all_to(12);
        assert_eq!(seen, SeenEntries::to(13));
    }

    #[test]
    fn a_client_is_offered_no_more_than_an_id_can_name() {
        let mut seen = SeenEntries::to(0);
        (2..).take(BEYOND_MAX).for_each(|position| seen.add(position));
        let full = seen.to_string();
        assert!(SeenEntries::parse(&full).is_some());
        assert!(SeenEntries::parse(&format!("{full},99")).is_none());
        assert!(seen.has_room(1) && !seen.has_room(99));
        seen.add(1);
        assert_eq!(seen, SeenEntries::to(BEYOND_MAX as u64 + 1));
    }

    #[test]
    fn malformed_ids_are_refused_and_those_of_other_logs_are_told_apart() {
        for wrong in ["", "a", "-1", "+", "4+", "4+,", "4+6,", "4,6", "4+6+7", "4 ", "10000000000000000000"] {
            assert_eq!(SeenEntries::parse(wrong), None, "{wrong}");
        }
        let of = |id: &str| SeenEntries::parse(id).unwrap();
        assert!(of("4+6,9").is_within(9) && !of("4+6,9").is_within(8));
        assert!(of("9").is_within(9) && !of("9").is_within(8));
        assert_eq!(of("4+3,5"), of("5"), "in any order");
    }
}
