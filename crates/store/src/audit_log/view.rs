//! The whole audit log: entries of the audit file, and those that wait in the journal.

use std::collections::BTreeMap;

use forewarn_control::{AuditEntry, Chain};
use rusqlite::Connection;

use super::table::{is_about_the_same, position_of, read_row, shown_to};
use crate::error::AppendError;
use crate::heading::{Headings, StreamHeading};
use crate::pending::PendingEntries;
use crate::stream_key::StreamKey;

/// The whole audit log.
#[derive(Clone, Copy)]
pub(crate) struct AuditView<'a> {
    journal: &'a Connection,
    /// `None` if the file cannot be used.
    file: Option<&'a Connection>,
    pending: &'a PendingEntries,
}

impl<'a> AuditView<'a> {
    pub(crate) fn new(
        journal: &'a Connection,
        file: Option<&'a Connection>,
        pending: &'a PendingEntries,
    ) -> Self {
        Self { journal, file, pending }
    }

    pub(super) fn file(&self) -> Option<&'a Connection> {
        self.file
    }

    pub(super) fn pending(&self) -> &'a PendingEntries {
        self.pending
    }

    fn entry_at(&self, position: u64) -> rusqlite::Result<Option<AuditEntry>> {
        if let Some(entry) = self.pending.entry_at(self.journal, position)? {
            return Ok(Some(entry));
        }
        let Some(file) = self.file else { return Ok(None) };
        Ok(read_row(file, position)?.and_then(|row| row.entry().ok()))
    }

    /// The entry of the file at a position that belongs to an entry of the journal, and that entry. The first one is
    /// `None` if it cannot be read.
    pub(super) fn both_at(&self, position: u64) -> Option<(Option<AuditEntry>, AuditEntry)> {
        let waiting = self.pending.entry_at(self.journal, position).ok()??;
        let row = self.file.and_then(|file| read_row(file, position).ok()?);
        Some((row.and_then(|row| row.entry().ok()), waiting))
    }

    /// The entry of a stream with that number.
    fn numbered(&self, stream: StreamKey, number: u64) -> rusqlite::Result<Option<AuditEntry>> {
        let mut position = self.pending.position_of(stream, number);
        if let (None, Some(file)) = (position, self.file) {
            position = position_of(file, stream, number)?;
        }
        position.map_or(Ok(None), |position| self.entry_at(position))
    }

    /// Position and hash of an entry; `None` if the entry is swept or cannot be read.
    pub(crate) fn link_at(&self, headings: &Headings, position: u64) -> Option<Chain> {
        let (swept, end) = (headings.journal.audit_swept, headings.journal.audit_end);
        if swept.number == position {
            return Some(swept);
        }
        if end.number == position {
            return Some(end);
        }
        self.stored_link(position)
    }

    /// Position and hash of a stored entry; `None` if it cannot be read.
    pub(super) fn stored_link(&self, position: u64) -> Option<Chain> {
        let link = Chain::at(&self.entry_at(position).ok()??).ok()?;
        Some(Chain { number: position, ..link })
    }

    /// The last position before all hidden entries. `hidden` has the last number that readers see, by stream.
    pub(crate) fn shown_to(&self, hidden: &BTreeMap<StreamKey, u64>) -> u64 {
        if hidden.is_empty() {
            return u64::MAX;
        }
        let first = |(stream, number): (&StreamKey, &u64)| self.pending.first_after(*stream, *number);
        let pending = hidden.iter().filter_map(first).min().map_or(u64::MAX, |first| first - 1);
        // Entries are filed when nobody hides them, and may be hidden afterwards. A damaged file hides none.
        let filed = self.file.and_then(|file| shown_to(file, hidden).ok());
        filed.map_or(pending, |filed| filed.min(pending))
    }

    /// The chain before the entries that replace the last ones of a stream, and their positions, if these are about the
    /// same and not filed: nobody has seen those.
    pub(crate) fn chain_before<'e>(
        &self,
        (stream, heading): (StreamKey, &StreamHeading),
        entries: impl Iterator<Item = &'e AuditEntry>,
    ) -> Result<(Chain, Vec<u64>), AppendError> {
        let failed = |error: rusqlite::Error| AppendError::from(&error);
        let (mut ends, mut positions): (Option<(u64, u64)>, _) = (None, Vec::new());
        for entry in entries {
            let position = self.pending.position_of(stream, entry.number).ok_or(AppendError::OtherEntry)?;
            let former = self.entry_at(position).map_err(failed)?;
            if !former.is_some_and(|former| is_about_the_same(&former, entry)) {
                return Err(AppendError::OtherEntry);
            }
            positions.push(position);
            ends = Some((ends.map_or(entry.number, |(first, _)| first), entry.number));
        }
        match ends {
            None => Ok((heading.audit_chain, positions)),
            Some((first, last)) if last == heading.audit_chain.number => {
                let before = self.chain_at((stream, heading), first - 1).map_err(failed)?;
                Ok((before.ok_or(AppendError::OtherEntry)?, positions))
            }
            Some(_) => Err(AppendError::OtherEntry),
        }
    }

    /// The chain at an entry of a stream; `None` if it is not known.
    pub(crate) fn chain_at(
        &self,
        (stream, heading): (StreamKey, &StreamHeading),
        number: u64,
    ) -> rusqlite::Result<Option<Chain>> {
        if number == heading.swept.number {
            return Ok(Some(heading.swept));
        }
        if let Some(gap) = heading.gap_of(number) {
            return Ok(Some(gap.end).filter(|end| end.number == number));
        }
        Ok(self.numbered(stream, number)?.and_then(|entry| Chain::at(&entry).ok()))
    }
}
