//! Sets the copy of the log of a realm aside: it is of before a restore that an operator has accepted, and the server
//! copies the log again.
//!
//! ```text
//!   DIR/journal.db, audit.db, …  ──▶ DIR/before-restore.new/ ──renamed──▶ DIR/before-restore-N/
//! ```
//!
//! Nothing is deleted: the copy has what the restored engine has lost, and audit entries of before. After a kill, the
//! next call continues; the first directory shows that it has to.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::OpenError;
use crate::files::{Directory, make_directory, sync_directory_of};
use crate::realm_mark::RealmMark;

/// Beginning of the names of directories with former copies.
const ASIDE: &str = "before-restore-";

/// Name of a directory that is not complete.
const UNFINISHED: &str = "before-restore.new";

/// Files of a copy.
const FILES: [&str; 7] = [
    "journal.db",
    "journal.db-wal",
    "journal.db-shm",
    "journal.reach",
    "audit.db",
    "audit.db-wal",
    "audit.db-shm",
];

/// Sets the copy in the directory of a server of a realm aside. Returns the directory with it, or none if there was none.
///
/// # Errors
/// Fails if the directory is in use, or something cannot be renamed.
pub fn set_copy_aside(directory: &Path) -> Result<Option<PathBuf>, OpenError> {
    let owned = Directory::own(directory)?;
    let unfinished = directory.join(UNFINISHED);
    let failed = || OpenError::io("set the copy of the log aside in", &unfinished);
    let files: Vec<_> = FILES.iter().map(|name| directory.join(name)).filter(|file| file.exists()).collect();
    if files.is_empty() && !unfinished.exists() {
        return Ok(None);
    }
    make_directory(&unfinished).map_err(failed())?;
    // No single server starts on it either.
    if let Some(mark) = RealmMark::read(directory)? {
        mark.write(&unfinished)?;
    }
    for file in files {
        let Some(name) = file.file_name() else { continue };
        fs::rename(&file, unfinished.join(name)).map_err(failed())?;
    }
    let moved = sync_directory_of(&unfinished.join(FILES[0])).and_then(|()| sync_directory_of(&unfinished));
    moved.map_err(failed())?;
    owned.unmark()?;
    let number = copies_set_aside(directory).map_err(failed())?.first().map_or(0, |(number, _)| *number);
    let aside = directory.join(format!("{ASIDE}{}", number + 1));
    fs::rename(&unfinished, &aside).and_then(|()| sync_directory_of(&aside)).map_err(failed())?;
    Ok(Some(aside))
}

/// Returns true if a copy was being set aside when the process was killed: [`set_copy_aside`] continues, before the
/// journal is opened.
#[must_use]
pub fn is_being_set_aside(directory: &Path) -> bool {
    directory.join(UNFINISHED).exists()
}

/// The directories with former copies in the directory of a server, and their numbers: the newest first.
///
/// # Errors
/// Fails if the directory cannot be read.
pub fn copies_set_aside(directory: &Path) -> io::Result<Vec<(u32, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let number = entry.file_name().to_str().and_then(|name| name.strip_prefix(ASIDE)?.parse().ok());
        found.extend(number.map(|number| (number, entry.path())));
    }
    found.sort_unstable_by(|one, other| other.cmp(one));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use forewarn_types::{Now, Seed};

    use super::*;
    use crate::{Journal, Options, RealmStage};

    const SEED: Seed = Seed([7; 16]);

    fn open(directory: &Path) -> Result<Journal, OpenError> {
        Journal::open(directory, &Options::new(SEED, Now::at_millis(1_000))).map(|(journal, _)| journal)
    }

    /// promise: D4
    #[test]
    fn a_copy_is_set_aside_whatever_was_done_before_a_kill() {
        let mark = RealmMark { realm: SEED, instance: Seed([2; 16]), stage: RealmStage::Member };
        for moved in 0..=FILES.len() {
            let scratch = tempfile::tempdir().unwrap();
            let directory = scratch.path();
            open(directory).unwrap().close().unwrap();
            mark.write(directory).unwrap();
            fs::write(directory.join("driver-records"), "kept").unwrap();
            let files: Vec<_> = FILES.iter().filter(|name| directory.join(name).exists()).collect();
            let is_killed = moved < FILES.len();
            if is_killed {
                fs::create_dir(directory.join(UNFINISHED)).unwrap();
                for name in files.iter().take(moved) {
                    fs::rename(directory.join(name), directory.join(UNFINISHED).join(name)).unwrap();
                }
            }
            assert_eq!(is_being_set_aside(directory), is_killed);
            let aside = directory.join("before-restore-1");
            assert_eq!(set_copy_aside(directory).unwrap(), Some(aside.clone()));
            assert!(!is_being_set_aside(directory));
            assert_eq!(RealmMark::read(directory).unwrap(), Some(mark), "it is the same server");
            assert!(matches!(RealmMark::refuse(&aside), Err(OpenError::OfRealm(_))));
            open(&aside).unwrap().close().unwrap();
            assert!(directory.join("driver-records").exists());
            // Another journal begins.
            open(directory).unwrap().close().unwrap();
            assert_eq!(set_copy_aside(directory).unwrap(), Some(directory.join("before-restore-2")));
            assert_eq!(set_copy_aside(directory).unwrap(), None);
            let numbers: Vec<_> = copies_set_aside(directory).unwrap().into_iter().map(|(n, _)| n).collect();
            assert_eq!(numbers, [2, 1]);
        }
    }

    #[test]
    fn a_copy_in_use_is_not_set_aside() {
        let scratch = tempfile::tempdir().unwrap();
        let _journal = open(scratch.path()).unwrap();
        assert!(matches!(set_copy_aside(scratch.path()), Err(OpenError::InUse(_))));
    }
}
