//! The mark of a data directory whose journal is a copy of the log of a realm, or is moving into one: no server of its
//! own may start on it.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};

use forewarn_types::Seed;
use serde_json::{Value, json};

use crate::error::OpenError;
use crate::files::{create_private, remove_if_there, rename_durably, sync_directory_of, with_suffix};

/// Name of the file in the data directory.
const FILE: &str = "realm.json";

/// Maximum bytes of the file.
const BYTES_MAX: usize = 1 << 10;

/// Random number of a data directory: two servers with the same name in a realm have different ones.
pub type InstanceId = Seed;

/// The mark in a data directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealmMark {
    /// Identity of the realm.
    pub realm: Seed,
    /// Identity of the data directory.
    pub instance: InstanceId,
    pub stage: RealmStage,
}

/// Relation of a journal to its realm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RealmStage {
    /// The journal is moving into the realm: it is still the only one.
    Moving,
    /// The journal is a copy of the log of the realm.
    Member,
}

impl RealmStage {
    fn word(self) -> &'static str {
        match self {
            Self::Moving => "moving",
            Self::Member => "member",
        }
    }
}

impl RealmMark {
    /// The mark of a directory. None if there is none, or no directory.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or is damaged.
    pub fn read(directory: &Path) -> Result<Option<Self>, OpenError> {
        let path = file(directory);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(error) => return Err(OpenError::io("read the mark of the realm", &path)(error)),
        };
        let mark = parse(&bytes);
        mark.map(Some).ok_or_else(|| OpenError::damaged(&path, "it is not the mark of a realm"))
    }

    /// Writes the mark into a directory that this process has locked, durably.
    ///
    /// # Errors
    /// Fails if it cannot be written.
    pub fn write(&self, directory: &Path) -> Result<(), OpenError> {
        let Self { realm, instance, stage } = self;
        let text = json!({ "realm": realm, "instance": instance, "stage": stage.word() });
        let path = file(directory);
        let new = with_suffix(&path, ".new");
        let write = || {
            remove_if_there(&new)?;
            create_private(&new)?.write_all(format!("{text}\n").as_bytes())?;
            // A command of root must not leave a file that the user of the server cannot read. For other users this
            // fails, and is not needed.
            let owner = fs::metadata(directory)?;
            drop(chown(&new, Some(owner.uid()), Some(owner.gid())));
            rename_durably(&new, &path)
        };
        write().map_err(OpenError::io("write the mark of the realm", &path))
    }

    /// Removes the mark of a directory that this process has locked, durably.
    ///
    /// # Errors
    /// Fails if it cannot be removed.
    pub fn remove(directory: &Path) -> Result<(), OpenError> {
        let path = file(directory);
        let removed = remove_if_there(&path).and_then(|()| sync_directory_of(&path));
        removed.map_err(OpenError::io("remove the mark of the realm", &path))
    }

    /// Refuses a directory on which no server of its own may start.
    ///
    /// # Errors
    /// Fails if the directory has a mark.
    pub fn refuse(directory: &Path) -> Result<(), OpenError> {
        match Self::read(directory)?.map(|mark| mark.stage) {
            None => Ok(()),
            Some(RealmStage::Moving) => Err(OpenError::Moving(directory.to_owned())),
            Some(RealmStage::Member) => Err(OpenError::OfRealm(directory.to_owned())),
        }
    }
}

fn file(directory: &Path) -> PathBuf {
    directory.join(FILE)
}

fn parse(bytes: &[u8]) -> Option<RealmMark> {
    let bytes = Some(bytes).filter(|bytes| bytes.len() <= BYTES_MAX)?;
    let found: Value = serde_json::from_slice(bytes).ok()?;
    let seed = |key: &str| serde_json::from_value(found.get(key)?.clone()).ok();
    let stages = [RealmStage::Moving, RealmStage::Member];
    let stage = stages.into_iter().find(|stage| found["stage"] == stage.word())?;
    Some(RealmMark { realm: seed("realm")?, instance: seed("instance")?, stage })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_was_written_and_refuses_a_server_of_its_own() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path();
        assert_eq!(RealmMark::read(directory).unwrap(), None);
        RealmMark::refuse(directory).unwrap();
        let moving = RealmMark { realm: Seed([1; 16]), instance: Seed([2; 16]), stage: RealmStage::Moving };
        moving.write(directory).unwrap();
        assert_eq!(RealmMark::read(directory).unwrap(), Some(moving));
        assert!(matches!(RealmMark::refuse(directory), Err(OpenError::Moving(_))));
        let member = RealmMark { stage: RealmStage::Member, ..moving };
        member.write(directory).unwrap();
        assert_eq!(RealmMark::read(directory).unwrap(), Some(member));
        assert!(matches!(RealmMark::refuse(directory), Err(OpenError::OfRealm(_))));
        RealmMark::remove(directory).unwrap();
        RealmMark::remove(directory).unwrap();
        RealmMark::refuse(directory).unwrap();
    }

    #[test]
    fn a_damaged_mark_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        for text in ["", "{}", r#"{"realm":"AA","instance":"AA","stage":"member"}"#, &" ".repeat(2_000)] {
            fs::write(scratch.path().join(FILE), text).unwrap();
            assert!(matches!(RealmMark::refuse(scratch.path()), Err(OpenError::Damaged { .. })), "{text}");
        }
    }
}
