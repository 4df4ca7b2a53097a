//! The audit part of a commit: entries are written into the journal, filed between commits, and read.

use std::collections::BTreeMap;

use forewarn_control::Chain;
use rusqlite::{Connection, Transaction};

use super::CommitState;
use crate::audit_log::{AuditBatch, AuditQuery, ReadError, read_page};
use crate::audit_store::NoFile;
use crate::committer_request::{Append, AuditWrite};
use crate::database::LogAfterCheckpoint;
use crate::entry_run::Run;
use crate::error::AppendError;
use crate::filer::SweptEntries;
use crate::lock::lock;
use crate::pending::write_run_entry;
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

    /// Position of the last entry that a query must be able to find which arrives now.
    pub(crate) fn audit_end(&self) -> u64 {
        self.headings.journal.audit_end.number
    }

    /// Runs a query; `None` if entries up to that position must be filed before.
    pub(crate) fn read(
        &self,
        connection: &Connection,
        query: &AuditQuery,
        position: u64,
    ) -> Option<Result<AuditBatch, ReadError>> {
        if !self.is_well() {
            return Some(Err(ReadError::Closed));
        }
        let hidden = self.hidden();
        if self.audit.is_lent() || self.audit.has_fileable(&hidden, position) {
            return None;
        }
        // Entries that are not filed have no index: a reader must not pass them.
        let hidden = self.audit.pending().with_unfiled(hidden);
        let shown_to = self.audit.view(connection).shown_to(&hidden);
        match self.audit.file() {
            Ok(file) => Some(read_page(file, &self.headings, query, (&hidden, shown_to))),
            Err(NoFile::Unusable(what)) => Some(Err(ReadError::Damaged(what.to_owned()))),
            Err(NoFile::Lent) => None,
        }
    }

    /// The audit file, if it can be used. Waits until it is here.
    pub(crate) fn audit_file(&mut self) -> Option<&Connection> {
        self.wait_for_audit_file();
        self.audit.file().ok()
    }

    pub(super) fn wait_for_audit_file(&mut self) {
        if let Err(error) = self.audit.wait_for_file() {
            self.fail(error);
        }
    }

    /// Returns true if the audit file is being written: its end wakes the committer.
    pub(crate) fn is_filing(&self) -> bool {
        self.audit.is_lent()
    }

    /// Returns true if so many entries wait that they are filed even if nobody needs them.
    pub(crate) fn wants_filing(&self) -> bool {
        self.is_well()
            && !self.must_sweep_first()
            && self.audit.can_file(&self.hidden(), self.options.file_after)
    }

    /// Returns true if the next commit needs the audit file to sweep it.
    fn must_sweep_first(&self) -> bool {
        self.sweeper.is_behind() && !self.audit.is_behind()
    }

    /// Begins to file audit entries if many wait, or if they are needed.
    pub(crate) fn file_if_due(&mut self, connection: &Connection, need: FilingNeed, removal: SweptEntries) {
        if !self.is_well() {
            return;
        }
        let known = self.audit.damage().is_some();
        if let Err(error) = self.go_on_filing(connection, need, removal) {
            self.fail(error);
        }
        if let (false, Some(damage)) = (known, self.audit.damage()) {
            let mut found = lock(&self.status.audit_check);
            found.damages += 1;
            found.last_damage = Some(damage.to_owned());
        }
    }

    fn go_on_filing(
        &mut self,
        connection: &Connection,
        need: FilingNeed,
        removal: SweptEntries,
    ) -> Result<(), AppendError> {
        let (hidden, swept) = (self.hidden(), self.swept_for_good);
        if self.audit.is_behind() {
            self.audit.wait_for_file()?;
        } else {
            self.audit.take_back()?;
        }
        self.audit.resume_if_due(connection);
        let least = match need {
            FilingNeed::None if self.must_sweep_first() => return Ok(()),
            FilingNeed::None => self.options.file_after,
            FilingNeed::Reader | FilingNeed::Idle => 1,
        };
        if !self.audit.can_file(&hidden, least) && !self.audit.can_remove(swept, least) {
            return Ok(());
        }
        let settlement = if self.audit.wants_settlement(self.options.log_bytes) {
            // What is in a file without a name is lost with the process.
            self.files.check_audit()?;
            Some(LogAfterCheckpoint::Reused)
        } else {
            None
        };
        self.audit.begin_filing(connection, (&hidden, swept), removal, settlement)
    }

    /// Verifies that the entries of an append continue the audit log of their stream, and returns their positions.
    pub(super) fn check_entries(
        &mut self,
        transaction: &Transaction<'_>,
        append: &Append,
    ) -> Result<Vec<u64>, AppendError> {
        let Append { stream, entries, mode, .. } = append;
        let Some((first, _)) = entries.first() else { return Ok(Vec::new()) };
        if *mode == AuditWrite::Rewrite {
            self.wait_for_audit_file();
        }
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
        append: &mut Append,
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
        }
        let run = (run, Run::new(*stream, first.number, positions));
        let held = if *staged_entries == 0 { std::mem::take(entries) } else { Vec::new() };
        pending.add(transaction, run, held).map_err(failed)?;
        self.headings.get_mut(*stream).audit_chain = chain;
        if *position >= self.headings.journal.audit_end.number {
            self.headings.journal.audit_end = Chain { number: *position, ..chain };
        }
        Ok(())
    }

    /// Files everything that waits and is not hidden, and removes it from the journal.
    pub(super) fn file_all(&mut self, connection: &Connection) -> Result<(), AppendError> {
        let (hidden, swept) = (self.hidden(), self.swept_for_good);
        self.audit.finish(connection, (&hidden, swept), || self.files.check_audit())?;
        let mut remove = || {
            let transaction = connection.unchecked_transaction()?;
            self.audit.pending_mut().remove_settled(&transaction, u64::MAX)?;
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
