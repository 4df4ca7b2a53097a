//! The reach of a journal: a small file beside it that records the minimum end of the journal.
//!
//! `SQLite` cannot distinguish a deleted, emptied or truncated log from one with fewer commits, and opens it without an
//! error. So every commit writes its last numbers into `journal.reach` once it is durable and before it is
//! acknowledged. A journal that ends before these numbers has lost acknowledged commits, and is not opened.
//!
//! ```text
//!   block 0 │ length, sealed reach │ zeros      one block holds the reach that was synced last,
//!   block 1 │ length, sealed reach │ zeros      the other one takes the writes after that
//! ```
//!
//! The write is one `pwrite` without a sync: the page cache keeps it when the process is killed. A sync follows about
//! once a second and on close. After a power cut the file may be that much older than the journal; it is never ahead of
//! the journal, because each commit was synced before. A write that a power cut tears damages one block only.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use forewarn_control::Chain;
use forewarn_lifecycle::Timestamp;
use forewarn_types::Moment;

use crate::audit_log::AuditView;
use crate::codec::seal::{self, SealLocation};
use crate::codec::stored_struct;
use crate::error::OpenError;
use crate::files::{Directory, remove_if_there, rename_durably, with_suffix};
use crate::heading::{Headings, JournalHeading};

/// Distance of the blocks: no disk writes both at once.
const BLOCK_BYTES: usize = 4_096;

/// Bytes at the beginning of a block that hold the reach. They lie in one sector.
const USED_BYTES: usize = 512;

/// The end of a journal at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Creation time of the journal: distinguishes one journal from another.
    pub created: Timestamp,
    /// Number of records of all streams.
    pub records: u64,
    /// Position and hash of the last audit entry.
    pub audit_chain: Chain,
}

stored_struct! { Reach { created, records, audit_chain } }

impl Reach {
    pub(crate) fn of(heading: &JournalHeading) -> Self {
        Self { created: heading.created, records: heading.records, audit_chain: heading.audit_end }
    }

    /// Describes the first difference that shows that the journal with these headings has lost commits.
    pub(crate) fn shortfall(&self, audit: &AuditView<'_>, headings: &Headings) -> Option<String> {
        self.shortfall_of(Self::of(&headings.journal), |position| audit.link_at(headings, position))
    }

    /// The same for a journal that ends there; `link_at` returns position and hash of an entry.
    pub(crate) fn shortfall_of(
        &self,
        found: Self,
        link_at: impl FnOnce(u64) -> Option<Chain>,
    ) -> Option<String> {
        if found.created != self.created {
            let (found, due) = (Moment(found.created), Moment(self.created));
            return Some(format!("it was created at {found}, and the journal of this directory at {due}"));
        }
        if found.records < self.records || found.audit_chain.number < self.audit_chain.number {
            return Some(format!(
                "it ends with record {} and audit entry {}; record {} and audit entry {} were acknowledged",
                found.records, found.audit_chain.number, self.records, self.audit_chain.number
            ));
        }
        let link = link_at(self.audit_chain.number)?;
        (link != self.audit_chain).then(|| format!("audit entry {} is not the acknowledged one", link.number))
    }
}

/// A reach as read from the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordedReach {
    pub(crate) reach: Reach,
    /// The block that holds it.
    block: usize,
}

/// Reads the reach that a directory records. A directory of an earlier version has none.
pub(crate) fn read(directory: &Directory) -> Result<Option<RecordedReach>, OpenError> {
    let path = directory.reach();
    let unknown = |what: &str| OpenError::ReachUnknown { path: path.clone(), what: what.to_owned() };
    let file = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return if directory.is_marked()? { Err(unknown("the file is missing")) } else { Ok(None) };
        }
        other => other.map_err(OpenError::io("open", &path))?,
    };
    let mut newest: Option<RecordedReach> = None;
    for block in 0..2 {
        let Some(reach) = read_block(&file, block).map_err(OpenError::io("read", &path))? else { continue };
        let end = |reach: &Reach| (reach.records, reach.audit_chain.number);
        if newest.is_none_or(|newest| end(&newest.reach) < end(&reach)) {
            newest = Some(RecordedReach { reach, block });
        }
    }
    newest.map(Some).ok_or_else(|| unknown("both of its blocks are damaged"))
}

/// Reads one block; `None` if it is damaged.
fn read_block(file: &File, block: usize) -> io::Result<Option<Reach>> {
    let mut bytes = [0; USED_BYTES];
    match file.read_exact_at(&mut bytes, (block * BLOCK_BYTES) as u64) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let length = usize::from(u16::from_le_bytes([bytes[0], bytes[1]]));
    let sealed = bytes[2..].get(..length);
    Ok(sealed.and_then(|sealed| seal::open(SealLocation::Reach, sealed).ok()))
}

/// The used bytes of a block.
fn block_bytes(reach: &Reach) -> io::Result<[u8; USED_BYTES]> {
    let sealed = seal::seal(SealLocation::Reach, reach);
    let mut bytes = [0; USED_BYTES];
    let length = u16::try_from(sealed.len()).map_err(io::Error::other)?;
    bytes[..2].copy_from_slice(&length.to_le_bytes());
    let room = bytes[2..].get_mut(..sealed.len());
    room.ok_or_else(|| io::Error::other("a reach does not fit into its block"))?.copy_from_slice(&sealed);
    Ok(bytes)
}

/// The open file of a journal that is in use.
#[derive(Debug)]
pub(crate) struct ReachFile {
    file: File,
    /// Block of the next write: not the one that was synced last.
    block: usize,
    state: WriteState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteState {
    Synced,
    Unsynced,
}

impl ReachFile {
    /// Opens the file of a journal that has passed the check, or creates it, and records the end of the journal.
    pub(crate) fn open(
        directory: &Directory,
        recorded: Option<RecordedReach>,
        reach: &Reach,
    ) -> Result<Self, OpenError> {
        let Some(RecordedReach { block, .. }) = recorded else { return Self::create(directory, reach) };
        let path = directory.reach();
        let failed = |doing| OpenError::io(doing, &path);
        let file = OpenOptions::new().read(true).write(true).open(&path).map_err(failed("open"))?;
        // A killed process may have left the block unsynced: never risk both blocks at once.
        file.sync_data().map_err(failed("sync"))?;
        let mut opened = Self::new(file, 1 - block);
        opened.record(reach).map_err(failed("write"))?;
        directory.mark()?;
        Ok(opened)
    }

    /// Creates the file, with the reach in both blocks. It appears whole or not at all.
    pub(crate) fn create(directory: &Directory, reach: &Reach) -> Result<Self, OpenError> {
        let path = directory.reach();
        let file = write_new(&path, reach).map_err(OpenError::io("write", &path))?;
        directory.mark()?;
        Ok(Self::new(file, 0))
    }

    fn new(file: File, block: usize) -> Self {
        Self { file, block, state: WriteState::Synced }
    }

    /// Records the end of the journal. The commit is already durable.
    pub(crate) fn record(&mut self, reach: &Reach) -> io::Result<()> {
        self.state = WriteState::Unsynced;
        self.file.write_all_at(&block_bytes(reach)?, (self.block * BLOCK_BYTES) as u64)
    }

    /// Makes the last record durable. The next one goes into the other block.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        match self.state {
            WriteState::Synced => Ok(()),
            WriteState::Unsynced => {
                self.file.sync_data()?;
                (self.state, self.block) = (WriteState::Synced, 1 - self.block);
                Ok(())
            }
        }
    }
}

fn write_new(path: &Path, reach: &Reach) -> io::Result<File> {
    let new = with_suffix(path, ".new");
    remove_if_there(&new)?;
    let mut bytes = vec![0; 2 * BLOCK_BYTES];
    let block = block_bytes(reach)?;
    bytes[..USED_BYTES].copy_from_slice(&block);
    bytes[BLOCK_BYTES..][..USED_BYTES].copy_from_slice(&block);
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&new)?;
    file.write_all_at(&bytes, 0)?;
    rename_durably(&new, path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(records: u64) -> Reach {
        let audit_chain = Chain { number: records / 2, ..Chain::default() };
        Reach { created: Timestamp::from_millis(5), records, audit_chain }
    }

    fn found(directory: &Directory) -> Option<u64> {
        read(directory).unwrap().map(|recorded| recorded.reach.records)
    }

    /// promise: D4
    #[test]
    fn the_newest_block_counts_and_a_torn_one_leaves_the_synced_one() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = Directory::own(scratch.path()).unwrap();
        assert_eq!(found(&directory), None);
        let mut file = ReachFile::create(&directory, &reach(1)).unwrap();
        for records in 2..40 {
            file.record(&reach(records)).unwrap();
            assert_eq!(found(&directory), Some(records));
            let whole = std::fs::read(directory.reach()).unwrap();
            // A torn write of the last block.
            let mut torn = whole.clone();
            torn[file.block * BLOCK_BYTES + 20..][..30].fill(0xff);
            std::fs::write(directory.reach(), &torn).unwrap();
            assert!(found(&directory).is_some_and(|older| older < records && older + 3 > records));
            std::fs::write(directory.reach(), &whole).unwrap();
            if records % 2 == 0 {
                file.sync().unwrap();
            }
        }
        let recorded = read(&directory).unwrap();
        let mut file = ReachFile::open(&directory, recorded, &reach(40)).unwrap();
        file.record(&reach(41)).unwrap();
        assert_eq!(found(&directory), Some(41));
    }

    /// promise: D4
    #[test]
    fn a_file_that_is_damaged_or_gone_is_reported_and_not_taken_for_an_old_directory() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = Directory::own(scratch.path()).unwrap();
        drop(ReachFile::create(&directory, &reach(7)).unwrap());
        let unknown = || matches!(read(&directory), Err(OpenError::ReachUnknown { .. }));
        for content in [&b""[..], &[0; 2 * BLOCK_BYTES], &[0xff; 2 * BLOCK_BYTES], b"short"] {
            std::fs::write(directory.reach(), content).unwrap();
            assert!(unknown(), "{}", content.len());
        }
        std::fs::remove_file(directory.reach()).unwrap();
        assert!(unknown());
    }
}
