//! The audit part of a commit: entries are written into the journal, filed between commits, and read.

use std::collections::BTreeMap;

use forewarn_control::Chain;
use rusqlite::{Connection, Transaction};

use super::CommitState;
use crate::audit_log::{AuditBatch, AuditQuery, ReadError, read_page};
use crate::audit_store::{ENTRIES_PER_SLICE, FilingAmount, SweptEntries};
use crate::committer_request::{Append, AuditWrite};
use crate::error::AppendError;
use crate::lock::lock;
use crate::pending::{Run, write_run_entry};
use crate::stream_key::StreamKey;

/// Reason to file entries although few of them wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FilingNeed {
    None,
    /// A reader waits for them.
    Reader,
    /// There is nothing else to do.
    Idle,
}

impl CommitState {
    pub(super) fn hidden(&self) -> BTreeMap<StreamKey, u64> {
        lock(&self.status.hidden).clone()
    }

    /// Runs a query; `None` if entries must be filed before.
    pub(crate) fn read(
        &self,
        connection: &Connection,
        query: &AuditQuery,
    ) -> Option<Result<AuditBatch, ReadError>> {
        if !self.is_well() {
            return Some(Err(ReadError::Closed));
        }
        let hidden = self.hidden();
        if self.audit.can_file(&hidden, 1) {
            return None;
        }
        // Entries that cannot be filed have no index: a reader must not pass them.
        let hidden = self.audit.pending().with_unfiled(hidden);
        let shown_to = self.audit.view(connection).shown_to(&hidden);
        let file = self.audit.file().map_err(|what| ReadError::Damaged(what.to_owned()));
        Some(file.and_then(|file| read_page(file, &self.headings, query, (&hidden, shown_to))))
    }

    /// The audit file, if it can be used.
    pub(crate) fn audit_file(&self) -> Option<&Connection> {
        self.audit.file().ok()
    }

    /// Returns true if so many entries wait that they are filed even if nobody needs them.
    pub(crate) fn wants_filing(&self) -> bool {
        self.is_well() && self.audit.can_file(&self.hidden(), self.options.file_after)
    }

    /// Files some audit entries if many wait, or if they are needed.
    pub(crate) fn file_if_due(&mut self, connection: &Connection, need: FilingNeed, removal: SweptEntries) {
        if !self.is_well() {
            return;
        }
        let known = self.audit.damage().is_some();
        self.audit.resume_if_due(connection);
        let (hidden, swept) = (self.hidden(), self.swept_for_good);
        let least = match need {
            FilingNeed::None => self.options.file_after,
            FilingNeed::Reader | FilingNeed::Idle => 1,
        };
        if self.audit.can_file(&hidden, least) || self.audit.can_remove(swept, least) {
            // As many as were written, and more: readers wait for the last of them.
            let entries = self.entries_written + ENTRIES_PER_SLICE.min(self.options.file_after.max(1));
            let amount = FilingAmount { entries, bytes: self.entry_bytes_written };
            let filed = self.audit.file_some(connection, (&hidden, swept), (amount, removal));
            let settled = filed
                .and_then(|()| self.audit.settle_if_due(self.options.log_bytes, || self.files.check_audit()));
            if let Err(error) = settled {
                self.fail(error);
            }
            if let (false, Some(damage)) = (known, self.audit.damage()) {
                let mut found = lock(&self.status.audit_check);
                found.damages += 1;
                found.last_damage = Some(damage.to_owned());
            }
        }
        (self.entries_written, self.entry_bytes_written) = (0, 0);
    }

    /// Verifies that the entries of an append continue the audit log of their stream, and returns their positions.
    pub(super) fn check_entries(
        &mut self,
        transaction: &Transaction<'_>,
        append: &Append,
    ) -> Result<Vec<u64>, AppendError> {
        let Append { stream, entries, mode, .. } = append;
        let Some((first, _)) = entries.first() else { return Ok(Vec::new()) };
        let end = self.headings.journal.audit_end.number;
        let heading = self.headings.get_mut(*stream);
        let (mut chain, positions) = match mode {
            AuditWrite::Append => (heading.audit_chain, (end + 1..).take(entries.len()).collect()),
            AuditWrite::Rewrite => {
                let entries = entries.iter().map(|(entry, _)| &**entry);
                self.audit.view(transaction).chain_before((*stream, heading), entries)?
            }
        };
        // The others continue it.
        chain.verify(first)?;
        Ok(positions)
    }

    pub(super) fn write_entries(
        &mut self,
        transaction: &Transaction<'_>,
        append: &Append,
        positions: &[u64],
    ) -> Result<(), AppendError> {
        let failed = |error: rusqlite::Error| AppendError::from(&error);
        let Append { stream, entries, staged_entries, mode, .. } = append;
        let (Some((first, _)), Some((last, _)), Some(position)) =
            (entries.first(), entries.last(), positions.last())
        else {
            return Ok(());
        };
        let chain = Chain::at(last)?;
        let pending = self.audit.pending_mut();
        match mode {
            AuditWrite::Append => {}
            AuditWrite::Rewrite => pending.cut(transaction, *stream, first.number).map_err(failed)?,
        }
        let run = append.run.unwrap_or_else(|| pending.new_id());
        for (entry, line) in &entries[*staged_entries..] {
            write_run_entry(transaction, (run, entry.number), line).map_err(failed)?;
            self.log_bytes += line.len() as u64;
            self.entry_bytes_written += line.len() as u64;
        }
        pending.add(transaction, run, Run::new(*stream, first.number, positions)).map_err(failed)?;
        self.headings.get_mut(*stream).audit_chain = chain;
        if *position >= self.headings.journal.audit_end.number {
            self.headings.journal.audit_end = Chain { number: *position, ..chain };
        }
        Ok(())
    }

    /// Files everything that waits, and removes it from the journal.
    pub(super) fn file_all(&mut self, connection: &Connection) -> Result<(), AppendError> {
        let swept = self.swept_for_good;
        self.audit.finish(connection, swept, || self.files.check_audit())?;
        let mut remove = || {
            let transaction = connection.unchecked_transaction()?;
            self.audit.pending_mut().remove_settled(&transaction, usize::MAX)?;
            transaction.commit()
        };
        remove().map_err(|error: rusqlite::Error| AppendError::from(&error))
    }

    /// Closes the audit file.
    pub(crate) fn close_audit(self) -> Result<(), AppendError> {
        let outcome = self.outcome();
        outcome.and(self.audit.close().map_err(|error| AppendError::from(&error)))
    }
}
