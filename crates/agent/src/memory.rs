//! The file in which the agent keeps what it must not forget: which events it has in hand, and what is still to be undone.
//!
//! It is written whole beside the old one, forced to disk, and put in its place, before anything is done that it tells of. One
//! agent has it at a time: a lock on a file beside it is held for as long as the agent lives. A file that cannot be understood is
//! put aside, loudly, and the agent goes on without it: an agent that does not start helps nobody. Hooks may then run a second
//! time, and what was done is not undone.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use forewarn_agent_core::Memory;
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

/// Bytes of a memory that is read: what the longest document leads to is less.
const BYTES_MAX: u64 = 64 * 1024 * 1024;

/// What this program writes and understands.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct Written<'a> {
    version: u32,
    memory: &'a Memory,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    version: u32,
    memory: Memory,
}

/// The file, and the right to write it.
#[derive(Debug)]
pub(crate) struct Keeper {
    path: PathBuf,
    /// What is on disk now.
    kept: Vec<u8>,
    /// Held for as long as this lives.
    _lock: File,
}

/// What was found at the start.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing: this is the first life.
    Nothing,
    /// What the life before has left.
    Memory(Memory),
    /// Something that is no memory; it is there now, and this is why.
    Damaged {
        /// Where it was put.
        aside: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

impl Keeper {
    /// Takes the file for this life, and gives what is in it.
    pub(crate) fn open(path: &Path) -> Result<(Self, Found)> {
        let directory = directory(path);
        fs::create_dir_all(directory)
            .with_context(|| format!("cannot make the directory: {}", directory.display()))?;
        let lock = lock(path)?;
        let mut keeper = Self { path: path.to_owned(), kept: Vec::new(), _lock: lock };
        let found = match read(path) {
            Ok(None) => Found::Nothing,
            Ok(Some((memory, bytes))) => {
                keeper.kept = bytes;
                Found::Memory(memory)
            }
            Err(why) => Found::Damaged { aside: put_aside(path)?, why },
        };
        Ok((keeper, found))
    }

    /// Keeps a memory, if it is another than the one that is kept.
    pub(crate) fn keep(&mut self, memory: &Memory) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(&Written { version: VERSION, memory })?;
        bytes.push(b'\n');
        if bytes == self.kept {
            return Ok(());
        }
        write(&self.path, &bytes)?;
        self.kept = bytes;
        Ok(())
    }
}

/// What an agent has kept, for somebody who only looks.
pub(crate) fn look(path: &Path) -> Result<Memory> {
    match read(path) {
        Ok(found) => Ok(found.map(|(memory, _)| memory).unwrap_or_default()),
        Err(why) => bail!("not a memory of an agent: {}: {why}", path.display()),
    }
}

fn read(path: &Path) -> Result<Option<(Memory, Vec<u8>)>, String> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(problem) => return Err(problem.to_string()),
    };
    let mut bytes = Vec::new();
    let read = file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|problem| problem.to_string())?;
    if u64::try_from(read).is_ok_and(|read| read > BYTES_MAX) {
        return Err(format!("it has more than {BYTES_MAX} bytes"));
    }
    let Kept { version, memory } = serde_json::from_slice(&bytes).map_err(|problem| problem.to_string())?;
    if version != VERSION {
        return Err(format!("its version is {version}, and {VERSION} is understood"));
    }
    Ok(Some((memory, bytes)))
}

/// The file that stands for the right to write another: the file itself is replaced again and again.
fn lock(path: &Path) -> Result<File> {
    let place = beside(path, ".lock");
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&place);
    let file = file.with_context(|| format!("cannot open the lock: {}", place.display()))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => bail!(
            "another agent has this memory: {}\n  hint: one agent runs on a machine; `forewarn-agent status` tells how it is",
            path.display()
        ),
        Err(problem) => Err(problem).with_context(|| format!("cannot lock: {}", place.display())),
    }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let unfinished = beside(path, ".new");
    let mut file =
        OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&unfinished)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&unfinished, path)?;
    File::open(directory(path))?.sync_all()
}

/// What cannot be understood is not overwritten: somebody may want to look at it.
fn put_aside(path: &Path) -> Result<PathBuf> {
    let aside = beside(path, &format!(".damaged-{}", crate::clock::wall().seconds()));
    fs::rename(path, &aside).with_context(|| format!("cannot put aside: {}", path.display()))?;
    Ok(aside)
}

/// A file in the same directory, with a longer name.
pub(crate) fn beside(path: &Path, more: &str) -> PathBuf {
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
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("deep/state.json");
        let (mut keeper, found) = Keeper::open(&path).unwrap();
        assert_eq!(found, Found::Nothing);
        keeper.keep(&Memory::default()).unwrap();
        drop(keeper);
        let (_, found) = Keeper::open(&path).unwrap();
        assert_eq!(found, Found::Memory(Memory::default()));
        assert_eq!(look(&path).unwrap(), Memory::default());
    }

    #[test]
    fn two_agents_do_not_share_a_memory() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("state.json");
        let (first, _) = Keeper::open(&path).unwrap();
        let refused = Keeper::open(&path).unwrap_err().to_string();
        assert!(refused.starts_with("another agent has this memory: "), "{refused}");
        drop(first);
        Keeper::open(&path).unwrap();
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
            let place = tempfile::tempdir().unwrap();
            let path = place.path().join("state.json");
            fs::write(&path, text).unwrap();
            let (mut keeper, found) = Keeper::open(&path).unwrap();
            let Found::Damaged { aside, .. } = found else { panic!("{text}: {found:?}") };
            assert_eq!(fs::read_to_string(aside).unwrap(), text);
            keeper.keep(&Memory::default()).unwrap();
            assert!(look(&path).is_ok());
        }
    }

    #[test]
    fn the_same_memory_is_not_written_twice() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("state.json");
        let (mut keeper, _) = Keeper::open(&path).unwrap();
        keeper.keep(&Memory::default()).unwrap();
        fs::remove_file(&path).unwrap();
        keeper.keep(&Memory::default()).unwrap();
        assert!(!path.exists());
    }
}
