//! The state file of the agent: pending events, and hooks that are still to be undone.
//!
//! The file is replaced atomically and synced to disk before the corresponding effects are performed. A lock on a file
//! beside it ensures that only one agent uses it. A file that cannot be parsed is moved aside with an error in the log,
//! and the agent starts without it. Hooks may then run again, and earlier work is not undone.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use forewarn_agent_core::Memory;
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

/// Size limit of the file. The longest document leads to less.
const BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The way out for a user who may not write to the default directory.
const STATE_HINT: &str =
    "--state ./state.json, or `state` in the settings, names a file that this user may write";

/// The version of the format.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct StoredMemoryRef<'a> {
    version: u32,
    memory: &'a Memory,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredMemory {
    version: u32,
    memory: Memory,
}

/// The state file, opened for writing.
#[derive(Debug)]
pub(crate) struct MemoryFile {
    path: PathBuf,
    /// The bytes on disk.
    stored: Vec<u8>,
    /// Held as long as this agent runs.
    _lock: File,
}

/// The result of opening the file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LoadedMemory {
    /// No file exists: this is the first start.
    Missing,
    Memory(Memory),
    /// The file cannot be parsed and was moved aside.
    Damaged {
        /// The new path of the file.
        moved_to: PathBuf,
        reason: String,
    },
}

impl MemoryFile {
    /// Locks the file and reads it.
    pub(crate) fn open(path: &Path) -> Result<(Self, LoadedMemory)> {
        if path.is_dir() {
            bail!(
                "the state file is a directory: {}\n  hint: --state {}",
                path.display(),
                path.join("state.json").display()
            );
        }
        let directory = directory(path);
        fs::create_dir_all(directory).map_err(|error| {
            anyhow!("cannot create the directory {}: {error}\n  hint: {STATE_HINT}", directory.display())
        })?;
        let lock = lock(path)?;
        let mut memory_file = Self { path: path.to_owned(), stored: Vec::new(), _lock: lock };
        let loaded = match read(path) {
            Ok(None) => LoadedMemory::Missing,
            Ok(Some((memory, bytes))) => {
                memory_file.stored = bytes;
                LoadedMemory::Memory(memory)
            }
            Err(reason) => LoadedMemory::Damaged { moved_to: move_aside(path)?, reason },
        };
        Ok((memory_file, loaded))
    }

    /// Stores the memory if it has changed.
    pub(crate) fn store(&mut self, memory: &Memory) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(&StoredMemoryRef { version: VERSION, memory })?;
        bytes.push(b'\n');
        if bytes == self.stored {
            return Ok(());
        }
        write(&self.path, &bytes)?;
        self.stored = bytes;
        Ok(())
    }
}

/// Reads the memory without locking it.
pub(crate) fn read_only(path: &Path) -> Result<Memory> {
    match read(path) {
        Ok(loaded) => Ok(loaded.map(|(memory, _)| memory).unwrap_or_default()),
        Err(reason) => bail!("invalid state file: {}: {reason}", path.display()),
    }
}

fn read(path: &Path) -> Result<Option<(Memory, Vec<u8>)>, String> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let mut bytes = Vec::new();
    let read = file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if u64::try_from(read).is_ok_and(|read| read > BYTES_MAX) {
        return Err(format!("larger than {BYTES_MAX} bytes"));
    }
    let StoredMemory { version, memory } =
        serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    if version != VERSION {
        return Err(format!("unsupported version {version}, expected {VERSION}"));
    }
    Ok(Some((memory, bytes)))
}

/// Locks a separate file, because the state file is replaced on every write.
fn lock(path: &Path) -> Result<File> {
    let lock_path = with_suffix(path, ".lock");
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&lock_path);
    let file = file.map_err(|error| {
        anyhow!("cannot open the lock file: {}: {error}\n  hint: {STATE_HINT}", lock_path.display())
    })?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => bail!(
            "another agent uses this state file: {}\n  hint: only one agent runs on a machine; see `forewarn-agent status`",
            path.display()
        ),
        Err(error) => Err(error).with_context(|| format!("cannot lock: {}", lock_path.display())),
    }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let unfinished = with_suffix(path, ".new");
    let mut file =
        OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&unfinished)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&unfinished, path)?;
    File::open(directory(path))?.sync_all()
}

/// Moves a damaged file aside for inspection.
fn move_aside(path: &Path) -> Result<PathBuf> {
    let moved_to = with_suffix(path, &format!(".damaged-{}", crate::clock::wall().seconds()));
    fs::rename(path, &moved_to).with_context(|| format!("cannot move aside: {}", path.display()))?;
    Ok(moved_to)
}

/// A path in the same directory with a suffix.
pub(crate) fn with_suffix(path: &Path, more: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(more);
    name.into()
}

fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_found_again() {
        let lock_path = tempfile::tempdir().unwrap();
        let path = lock_path.path().join("deep/state.json");
        let (mut memory_file, loaded) = MemoryFile::open(&path).unwrap();
        assert_eq!(loaded, LoadedMemory::Missing);
        memory_file.store(&Memory::default()).unwrap();
        drop(memory_file);
        let (_, loaded) = MemoryFile::open(&path).unwrap();
        assert_eq!(loaded, LoadedMemory::Memory(Memory::default()));
        assert_eq!(read_only(&path).unwrap(), Memory::default());
    }

    #[test]
    fn two_agents_do_not_share_a_memory() {
        let lock_path = tempfile::tempdir().unwrap();
        let path = lock_path.path().join("state.json");
        let (first, _) = MemoryFile::open(&path).unwrap();
        let rejected = MemoryFile::open(&path).unwrap_err().to_string();
        assert!(rejected.starts_with("another agent uses this state file: "), "{rejected}");
        drop(first);
        MemoryFile::open(&path).unwrap();
    }

    #[test]
    fn what_is_no_memory_is_put_aside() {
        let wrong = [
            "",
            "{",
            "[]",
            r#"{"version":1}"#,
            r#"{"version":2,"memory":{"cases":[],"owed":{}}}"#,
            r#"{"version":1,"memory":{"cases":[],"owed":{},"more":1}}"#,
            r#"{"version":1,"memory":{"cases":[{}],"owed":{}}}"#,
        ];
        for text in wrong {
            let lock_path = tempfile::tempdir().unwrap();
            let path = lock_path.path().join("state.json");
            fs::write(&path, text).unwrap();
            let (mut memory_file, loaded) = MemoryFile::open(&path).unwrap();
            let LoadedMemory::Damaged { moved_to, .. } = loaded else { panic!("{text}: {loaded:?}") };
            assert_eq!(fs::read_to_string(moved_to).unwrap(), text);
            memory_file.store(&Memory::default()).unwrap();
            assert!(read_only(&path).is_ok());
        }
    }

    #[test]
    fn a_directory_is_no_state_file_and_stays_where_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let refused = MemoryFile::open(directory.path()).unwrap_err().to_string();
        assert!(refused.contains("is a directory") && refused.contains("/state.json"), "{refused}");
        assert!(directory.path().is_dir());
    }

    #[test]
    fn the_same_memory_is_not_written_twice() {
        let lock_path = tempfile::tempdir().unwrap();
        let path = lock_path.path().join("state.json");
        let (mut memory_file, _) = MemoryFile::open(&path).unwrap();
        memory_file.store(&Memory::default()).unwrap();
        fs::remove_file(&path).unwrap();
        memory_file.store(&Memory::default()).unwrap();
        assert!(!path.exists());
    }
}
