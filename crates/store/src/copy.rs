//! Copies of a running journal, as a file that can be imported.
//!
//! The committer copies a few pages at a time. Syncs of the copy, and its renaming, run on other threads.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use crate::copy_sync::{CopyPace, CopySync};
use crate::error::CopyError;
use crate::files::{create_private, remove_if_there, rename_durably, with_suffix};

/// Pages that are copied before other requests are served.
const PAGES_PER_STEP: i32 = 64;

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

/// Copies a database, and calls a function between two steps.
pub(crate) fn copy_database(
    from: &Connection,
    to: &Path,
    mut between: impl FnMut() -> Result<(), CopyError>,
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
    create_private(&new).map_err(io("create the copy"))?;
    let file = File::open(&new).map_err(io("open the copy"))?;
    let mut sync = CopySync::start(move || file.sync_data()).map_err(io("sync the copy"))?;
    let filled = fill(from, &new, &mut sync, &mut between);
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
    between: &mut impl FnMut() -> Result<(), CopyError>,
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
            between()?;
            while sync.pace().map_err(sync_failed)? == CopyPace::Wait {
                between()?;
            }
        }
    }
    // Without a log beside it, the copy is a single file that can be read anywhere.
    copy.pragma_update_and_check(None, "locking_mode", "EXCLUSIVE", |_| Ok(())).map_err(failed)?;
    copy.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(())).map_err(failed)?;
    copy.close().map_err(|(_, source)| failed(source))
}
