//! Accepts a loss: an operator continues with a journal that ends before acknowledged commits.
//!
//! VMs may have read documents, and drivers may have performed actions, that the journal no longer knows. So the
//! journal continues as after an import: incarnations take a step, visible events get new ids, later ids and action
//! names use another seed, notice counts from the moment at which VMs can read it, and the brake is on. Unlike after an
//! import, audit logs continue, and the next entry of the shared stream records the accepted loss.
//!
//! If only the audit file is lost, the state continues unchanged, and the audit logs continue without their entries.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use forewarn_control::{Chain, ControlState, INCARNATION_STEP, NewAuditEntry, Stream};
use forewarn_types::Moment;
use rusqlite::Connection;

use crate::audit_file::AuditFile;
use crate::audit_log::{AuditEnds, AuditView, read_row, remove_after, remove_at};
use crate::creation::write_state;
use crate::database::{CheckDepth, LogAfterCheckpoint, SyncMode, checkpoint};
use crate::entry_run::Run;
use crate::error::OpenError;
use crate::files::{Directory, create_private, sync_directory_of};
use crate::heading::Headings;
use crate::options::Options;
use crate::pending::{FilingSlice, PendingEntries, write_run_entry};
use crate::reach::{self, Reach, ReachFile};
use crate::realm_mark::{RealmMark, RealmStage};
use crate::recover::{OpenedJournal, open_and_recover, remove_leftovers};
use crate::stream_key::StreamKey;
use crate::upgrade;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedLoss {
    /// The end of the journal as it was found.
    pub found: Reach,
    /// The end that it should have had; `None` if that is unknown.
    pub due: Option<Reach>,
    /// Description of the difference.
    pub what: String,
    pub kind: LossKind,
    /// A new file with the audit entries that waited in the journal, if they are lost too.
    pub waiting: Option<PathBuf>,
}

/// Lines that are read together.
const LINES_PER_SLICE: usize = 64;

/// The part of a journal that has lost something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossKind {
    /// The journal itself: its state continues as after an import.
    Commits,
    /// Only the audit file: the state continues unchanged.
    AuditEntries,
}

/// Lets a journal that has lost commits, or its audit file, be opened again. If commits are lost, the seed of the
/// options becomes its new seed.
///
/// # Errors
/// Fails if the journal is complete, in use, missing or damaged, or cannot be written.
pub fn accept_loss(directory: &Path, options: &Options) -> Result<AcceptedLoss, OpenError> {
    let owned = Directory::with_journal(directory)?;
    match RealmMark::read(directory)?.map(|mark| mark.stage) {
        None => {}
        Some(RealmStage::Moving) => return Err(OpenError::Moving(directory.to_owned())),
        Some(RealmStage::Member) => return Err(OpenError::LossOfCopy(directory.to_owned())),
    }
    let recorded = match reach::read(&owned) {
        Ok(Some(recorded)) => Ok(recorded.reach),
        Ok(None) => return Err(OpenError::Complete(directory.to_owned())),
        Err(OpenError::ReachUnknown { what, .. }) => Err(what),
        Err(error) => return Err(error),
    };
    let shortfall = |view: &AuditView<'_>, headings: &Headings| {
        recorded.as_ref().ok().and_then(|due| due.shortfall(view, headings))
    };
    // An upgrade adds records.
    let before_upgrade = upgrade::upgrade_if_old(&owned, &[], shortfall)?;
    let opened = open_and_recover(&owned, (SyncMode::EachCommit, CheckDepth::Thorough), &[])?;
    let OpenedJournal { connection, headings, recovered, pending, audit } = opened;
    let ends = audit.ends(&connection, &pending, &headings);
    let lost_commits = match &recorded {
        Err(what) => Some(format!("its reach is unknown: {what}")),
        Ok(_) => {
            let view = audit.view(&connection, &pending, &headings);
            let shortfall = before_upgrade.unwrap_or_else(|| shortfall(&view, &headings));
            shortfall.or_else(|| ends.lead())
        }
    };
    let lost_entries = lost_entries(&audit, ends);
    let (what, kind) = match (lost_commits, &lost_entries) {
        (Some(what), _) => (what, LossKind::Commits),
        (None, Some(what)) => (format!("{}: {what}", owned.audit().display()), LossKind::AuditEntries),
        (None, None) => return Err(OpenError::Complete(directory.to_owned())),
    };
    let state = match kind {
        LossKind::Commits => {
            let renewed = recovered.state.renewed(options.seed);
            Some(renewed.map_err(|error| OpenError::damaged(&owned.journal(), error.to_string()))?)
        }
        LossKind::AuditEntries => None,
    };
    let found = Reach::of(&headings.journal);
    let accepted = AcceptedLoss { found, due: recorded.ok(), what, kind, waiting: None };
    let mut journal =
        LossyJournal { directory: &owned, connection, headings, pending, state, accepted, options };
    match lost_entries {
        Some(_) => journal.give_up(audit)?,
        None => journal.remove_lost(audit)?,
    }
    journal.finish()
}

/// Describes entries that are lost with the audit file. A file that can be read keeps its place, also if an end of it
/// is damaged.
fn lost_entries(audit: &AuditFile, ends: AuditEnds) -> Option<String> {
    match (audit, ends) {
        (_, AuditEnds::Lost(what)) => Some(what),
        (AuditFile::Damaged(what), AuditEnds::Damaged(_)) => Some(what.clone()),
        (_, AuditEnds::Present | AuditEnds::Ahead(_) | AuditEnds::Damaged(_)) => None,
    }
}

/// A journal that has lost something, and continues.
struct LossyJournal<'a> {
    directory: &'a Directory,
    connection: Connection,
    headings: Headings,
    pending: PendingEntries,
    /// The renewed state, if commits are lost.
    state: Option<ControlState>,
    accepted: AcceptedLoss,
    options: &'a Options,
}

/// Treatment of the entries that wait in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitingEntries {
    Keep,
    /// They are saved, and removed.
    GiveUp,
}

/// Every change can be repeated after an interruption: until the last one, the journal is refused.
impl LossyJournal<'_> {
    fn failed(&self, source: rusqlite::Error) -> OpenError {
        OpenError::database(&self.directory.journal(), source)
    }

    /// Continues without the audit file and without the entries that wait for it.
    fn give_up(&mut self, audit: AuditFile) -> Result<(), OpenError> {
        drop(audit);
        let lost = self.directory.lost_audit()?;
        self.save_waiting(lost.lines)?;
        self.directory.set_audit_aside(&lost.file)?;
        self.write(WaitingEntries::GiveUp)
    }

    /// Removes entries from the audit file that the journal has lost: later ones get their positions. The file shows
    /// the loss, so the journal is written first.
    fn remove_lost(&mut self, audit: AuditFile) -> Result<(), OpenError> {
        let Some(file) = audit.connection() else { return self.write(WaitingEntries::Keep) };
        let path = self.directory.audit();
        let failed = |source| OpenError::database(&path, source);
        let removal = file.unchecked_transaction().map_err(failed)?;
        match self.remove_from(&removal) {
            Ok(()) => {
                self.write(WaitingEntries::Keep)?;
                removal.commit().and_then(|()| checkpoint(file, LogAfterCheckpoint::Emptied)).map_err(failed)
            }
            Err(OpenError::Damaged { path: damaged, what }) if damaged == path => {
                self.accepted.what += &format!("; {}: {what}", path.display());
                drop(removal);
                let lost = self.directory.lost_audit()?;
                self.save_waiting(lost.lines)?;
                self.write(WaitingEntries::GiveUp)?;
                drop(audit);
                self.directory.set_audit_aside(&lost.file)
            }
            Err(error) => Err(error),
        }
    }

    /// Removes all entries after the end of the journal, and those whose positions belong to entries that wait in it:
    /// an interrupted attempt has written such entries.
    fn remove_from(&self, audit: &Connection) -> Result<(), OpenError> {
        let path = self.directory.audit();
        let failed = |source| OpenError::database(&path, source);
        remove_after(audit, self.headings.journal.audit_end.number).map_err(failed)?;
        self.each_waiting(|position, line| {
            let found = read_row(audit, position).map_err(failed)?;
            if found.is_some_and(|row| row.line() != Ok(line)) {
                remove_at(audit, position).map_err(failed)?;
            }
            Ok(())
        })
    }

    /// Writes the entries that wait in the journal into a new file, durably: without those before them, they cannot
    /// stay.
    fn save_waiting(&mut self, to: PathBuf) -> Result<(), OpenError> {
        if self.pending.unfiled() == 0 {
            return Ok(());
        }
        let io = |doing| OpenError::io(doing, &to);
        let mut file = BufWriter::new(create_private(&to).map_err(io("create"))?);
        self.each_waiting(|_, line| writeln!(file, "{line}").map_err(io("write")))?;
        let synced = file.flush().and_then(|()| file.get_ref().sync_all());
        synced.and_then(|()| sync_directory_of(&to)).map_err(io("write"))?;
        self.accepted.waiting = Some(to);
        Ok(())
    }

    /// Position and line of each entry that waits in the journal.
    fn each_waiting(
        &self,
        mut each: impl FnMut(u64, &str) -> Result<(), OpenError>,
    ) -> Result<(), OpenError> {
        for slice in self.pending.fileable(&BTreeMap::new()) {
            let end = slice.first + slice.count;
            for first in (slice.first..end).step_by(LINES_PER_SLICE) {
                let count = (end - first).min(LINES_PER_SLICE as u64);
                let some = FilingSlice { first, count, ..slice };
                let lines = self.pending.read_entries(&self.connection, &some, usize::MAX);
                let lines = lines.map_err(|source| self.failed(source))?;
                let lines = lines.map_err(|what| OpenError::damaged(&self.directory.journal(), what))?;
                lines.iter().try_for_each(|entry| each(entry.position, &entry.line))?;
            }
        }
        Ok(())
    }

    fn write(&mut self, waiting: WaitingEntries) -> Result<(), OpenError> {
        self.try_write(waiting).map_err(|source| self.failed(source))
    }

    /// Writes the entry, and the renewed state if commits are lost, in one commit.
    fn try_write(&mut self, waiting: WaitingEntries) -> rusqlite::Result<()> {
        let Self { connection, headings, pending, state, accepted, options, .. } = self;
        let transaction = connection.unchecked_transaction()?;
        match waiting {
            WaitingEntries::Keep => pending.remove_leftovers(&transaction)?,
            WaitingEntries::GiveUp => {
                headings.drop_audit_log();
                pending.remove_all(&transaction)?;
            }
        }
        let shared = headings.get_mut(StreamKey::SHARED);
        let entry = shared.audit_chain.seal(audit_entry(accepted, options));
        let chain = shared.audit_chain;
        let position = headings.journal.audit_end.number + 1;
        headings.journal.audit_end = Chain { number: position, ..chain };
        let run = pending.new_id();
        write_run_entry(&transaction, (run, entry.number), &entry.to_line())?;
        let run = (run, Run::new(StreamKey::SHARED, entry.number, &[position]));
        pending.add(&transaction, run, Vec::new())?;
        match state {
            Some(state) => {
                remove_leftovers(&transaction, headings, state)?;
                write_state(&transaction, headings, state, &state.announced())?;
            }
            None => headings.write(&transaction)?,
        }
        transaction.commit()
    }

    /// Records the new end of the journal: it can be opened.
    fn finish(self) -> Result<AcceptedLoss, OpenError> {
        let journal = self.directory.journal();
        let failed = |source| OpenError::database(&journal, source);
        checkpoint(&self.connection, LogAfterCheckpoint::Emptied).map_err(failed)?;
        ReachFile::create(self.directory, &Reach::of(&self.headings.journal))?;
        self.connection.close().map_err(|(_, source)| failed(source))?;
        Ok(self.accepted)
    }
}

fn audit_entry(accepted: &AcceptedLoss, options: &Options) -> NewAuditEntry {
    NewAuditEntry {
        at: Moment(options.now.wall),
        stream: Some(Stream::Shared),
        by: "shell".to_owned(),
        kind: "loss_accepted".to_owned(),
        text: match accepted.kind {
            LossKind::Commits => format!(
                "the journal continues although commits are missing: {}; incarnations grew by {INCARNATION_STEP}, events have new \
                 ids, and the brake is on",
                accepted.what
            ),
            LossKind::AuditEntries => {
                format!(
                    "the audit log continues although all entries before this one are missing: {}",
                    accepted.what
                )
            }
        },
        ..NewAuditEntry::default()
    }
}
