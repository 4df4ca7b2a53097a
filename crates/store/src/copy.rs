//! Copies of a running journal, as a file that can be imported.
//!
//! The committer copies a few pages of the journal at a time, and then the entries of the audit file: in a copy all of
//! them wait in the journal. Syncs of the copy, and its renaming, run on other threads.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use crate::audit_log::{AuditRow, read_rows};
use crate::copy_sync::{CopyPace, CopySync};
use crate::entry_run::Run;
use crate::error::{CopyError, OpenError};
use crate::files::{create_private, remove_if_there, rename_durably, with_suffix};
use crate::heading::Headings;
use crate::pending::{PendingEntries, write_run, write_run_entry};

/// Pages that are copied before other requests are served.
const PAGES_PER_STEP: i32 = 64;

/// Entries, and about how many bytes of them, that are copied before other requests are served.
const ENTRIES_PER_STEP: usize = 256;
const BYTES_PER_STEP: usize = 1 << 20;

const PAGE_BYTES: usize = 4_096;

/// A complete copy that is not under its name yet.
#[derive(Debug)]
pub(crate) struct UnpublishedCopy {
    new: PathBuf,
    to: PathBuf,
}

impl UnpublishedCopy {
    /// Syncs the copy, and gives it its name: it appears whole or not at all.
    pub(crate) fn publish(self) -> Result<(), CopyError> {
        let Self { new, to } = self;
        rename_durably(&new, &to).map_err(|source| CopyError::Io {
            doing: "rename the copy",
            path: to,
            source,
        })
    }
}

/// The rest of the work beside a copy.
pub(crate) trait CopySource {
    /// The audit file, if it can be used.
    fn audit(&mut self) -> Option<&Connection>;

    /// Serves other requests between two steps. Nothing is removed from the audit file meanwhile.
    fn serve(&mut self) -> Result<(), CopyError>;
}

/// Copies a journal with its audit log into one file.
pub(crate) fn copy_journal(
    from: &Connection,
    to: &Path,
    source: &mut impl CopySource,
) -> Result<UnpublishedCopy, CopyError> {
    let io = |doing: &'static str| {
        let path = to.to_owned();
        move |source| CopyError::Io { doing, path, source }
    };
    if to.try_exists().map_err(io("look for"))? {
        return Err(CopyError::Exists(to.to_owned()));
    }
    let new = with_suffix(to, ".new");
    remove_if_there(&new).map_err(io("remove the rest of an interrupted attempt"))?;
    // It holds secrets.
    drop(create_private(&new).map_err(io("create the copy"))?);
    let file = File::open(&new).map_err(io("open the copy"))?;
    let mut sync = CopySync::start(move || file.sync_data()).map_err(io("sync the copy"))?;
    let filled = fill(from, &new, &mut sync, source);
    let synced = sync.finish().map_err(io("sync the copy"));
    match filled.and(synced) {
        Ok(()) => Ok(UnpublishedCopy { new, to: to.to_owned() }),
        Err(error) => {
            // A partial copy is useless; if it cannot be removed, the next attempt reports that.
            drop(remove_if_there(&new));
            Err(error)
        }
    }
}

fn fill(
    from: &Connection,
    new: &Path,
    sync: &mut CopySync,
    source: &mut impl CopySource,
) -> Result<(), CopyError> {
    let failed = |source| CopyError::Database { path: new.to_owned(), source };
    let sync_failed = |source| CopyError::Io { doing: "sync the copy", path: new.to_owned(), source };
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut copy = Connection::open_with_flags(new, flags).map_err(failed)?;
    copy.busy_timeout(Duration::ZERO).map_err(failed)?;
    // The file is invisible until it is complete and synced.
    copy.pragma_update(None, "synchronous", "OFF").map_err(failed)?;
    {
        // The backup includes commits of the same connection between two steps.
        let backup = Backup::new(from, &mut copy).map_err(failed)?;
        loop {
            let step = backup.step(PAGES_PER_STEP).map_err(failed)?;
            if step == StepResult::Done {
                break;
            }
            if step != StepResult::More {
                return Err(CopyError::Busy);
            }
            sync.add(u64::from(PAGES_PER_STEP.unsigned_abs()));
            source.serve()?;
            while sync.pace().map_err(sync_failed)? == CopyPace::Wait {
                source.serve()?;
            }
        }
    }
    let mut entries = EntryCopy::begin(&copy, new)?;
    while let CopyProgress::Goes { pages } = entries.go_on(&copy, source.audit()).map_err(failed)? {
        sync.add(pages);
        source.serve()?;
        while sync.pace().map_err(sync_failed)? == CopyPace::Wait {
            source.serve()?;
        }
    }
    // Without a log beside it, the copy is a single file that can be read anywhere.
    copy.pragma_update_and_check(None, "locking_mode", "EXCLUSIVE", |_| Ok(())).map_err(failed)?;
    copy.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(())).map_err(failed)?;
    copy.close().map_err(|(_, source)| failed(source))
}

/// Copies entries of the audit file into the journal of a copy.
struct EntryCopy {
    /// Positions of entries that already wait there.
    spans: Vec<(u64, u64)>,
    /// Position of the last entry that was looked at.
    at: u64,
    /// Position of the last entry of the copy.
    end: u64,
    pending: PendingEntries,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CopyProgress {
    /// About so many pages were written.
    Goes {
        pages: u64,
    },
    Done,
}

impl EntryCopy {
    fn begin(copy: &Connection, path: &Path) -> Result<Self, CopyError> {
        let damaged = |error: OpenError| CopyError::Damaged(error.to_string());
        let pending = PendingEntries::read(copy, path).map_err(damaged)?;
        let journal = Headings::read(copy, path).map_err(damaged)?.journal;
        let (at, end) = (journal.audit_swept.number, journal.audit_end.number);
        Ok(Self { spans: pending.spans(), at, end, pending })
    }

    /// Copies some entries. Those that cannot be read are missing from the copy.
    fn go_on(&mut self, copy: &Connection, audit: Option<&Connection>) -> rusqlite::Result<CopyProgress> {
        let limits = (ENTRIES_PER_STEP, BYTES_PER_STEP);
        let Some(rows) = audit.and_then(|audit| read_rows(audit, (self.at, self.end), limits).ok()) else {
            return Ok(CopyProgress::Done);
        };
        let Some(last) = rows.last() else { return Ok(CopyProgress::Done) };
        self.at = last.position;
        let bytes: usize = rows.iter().map(AuditRow::content_bytes).sum();
        let spans = &self.spans;
        let is_there = |position: u64| {
            let before = spans.partition_point(|(first, _)| *first <= position);
            before.checked_sub(1).is_some_and(|before| position < spans[before].0 + spans[before].1)
        };
        let rows: Vec<_> = rows.iter().filter(|row| !is_there(row.position)).collect();
        let transaction = copy.unchecked_transaction()?;
        let is_next = |one: &&AuditRow, next: &&AuditRow| {
            let after = |number: u64| number.checked_add(1);
            (one.stream, after(one.number), after(one.position))
                == (next.stream, Some(next.number), Some(next.position))
        };
        // A wrong number would make the whole copy useless.
        let sound = rows.iter().filter(|row| row.entry().is_ok());
        let lines: Vec<_> = sound.filter_map(|row| Some((*row, row.line().ok()?))).collect();
        for group in lines.chunk_by(|(one, _), (next, _)| is_next(one, next)) {
            let run = self.pending.new_id();
            for (row, line) in group {
                write_run_entry(&transaction, (run, row.number), line)?;
            }
            let positions: Vec<_> = group.iter().map(|(row, _)| row.position).collect();
            let (first, _) = group[0];
            write_run(&transaction, run, &Run::new(first.stream, first.number, &positions))?;
        }
        transaction.commit()?;
        Ok(CopyProgress::Goes { pages: (bytes / PAGE_BYTES + 1) as u64 })
    }
}
