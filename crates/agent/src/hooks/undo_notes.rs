//! State for the undo, stored before the work is done.
//!
//! The memory of the agent holds the state of completed hooks, but the agent may crash before a hook completes. Work
//! that can be undone therefore writes a note first: one file per hook, written atomically. A note is deleted after the
//! undo. A stale note, left after the memory was lost or the hook was removed for a while, is ignored: it names the
//! event that first caused the undo work, and that event differs.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use forewarn_agent_core::Phase;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Job, run_blocking, uri};
use crate::os;

/// Size limit of a note.
const NOTE_BYTES_MAX: u64 = 1024 * 1024;

/// The directory of undo notes.
#[derive(Clone, Debug)]
pub(super) struct UndoNotes(PathBuf);

/// The undo note of one hook.
#[derive(Debug, Serialize, Deserialize)]
struct UndoNote {
    /// The event that first caused the undo work.
    since: String,
    memory: Value,
}

impl UndoNotes {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self(directory)
    }

    /// The state of a hook: from the memory, and from its note.
    pub(super) async fn load(&self, job: &Job) -> Option<Value> {
        let (path, pending_undo) = (self.path(job), job.run.pending_undo);
        let noted = run_blocking(move || Ok(read(&path))).await.ok().flatten();
        let is_current =
            |note: &UndoNote| pending_undo.is_some_and(|pending_undo| note.since == pending_undo.to_string());
        let noted = noted.filter(is_current).map(|note| note.memory);
        match (job.run.memory.clone(), noted) {
            (Some(stored), Some(noted)) => Some(merged(stored, noted)),
            (stored, noted) => stored.or(noted),
        }
    }

    /// Writes a note. Hooks that are never undone need none.
    pub(super) async fn store(&self, job: &Job, memory: &Value) -> Result<(), String> {
        let since = match (job.run.task.phase, job.run.pending_undo) {
            (Phase::Scheduled, Some(since)) => since,
            (Phase::Scheduled, None)
            | (Phase::Started | Phase::Completed | Phase::Cancelled | Phase::Undo, _) => return Ok(()),
        };
        let (path, note) = (self.path(job), UndoNote { since: since.to_string(), memory: memory.clone() });
        run_blocking(move || write(&path, &note).map_err(|error| write_error(&path, &error))).await
    }

    pub(super) async fn delete(&self, job: &Job) {
        let path = self.path(job);
        // It may not exist. If it cannot be deleted, it is stale and ignored.
        run_blocking(move || Ok(fs::remove_file(&path).ok())).await.ok();
    }

    fn path(&self, job: &Job) -> PathBuf {
        // An encoded URI part has no slash, so it is a valid file name.
        self.0.join(format!("hook-{}.json", uri::part(&job.run.task.hook)))
    }
}

/// Merges two values; the first takes precedence.
pub(super) fn merged(first: Value, second: Value) -> Value {
    match (first, second) {
        (Value::Object(mut first), Value::Object(second)) => {
            for (key, value) in second {
                let value = match first.remove(&key) {
                    Some(known) => merged(known, value),
                    None => value,
                };
                first.insert(key, value);
            }
            Value::Object(first)
        }
        (first, _) => first,
    }
}

fn read(path: &Path) -> Option<UndoNote> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(NOTE_BYTES_MAX).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

fn write(path: &Path, note: &UndoNote) -> std::io::Result<()> {
    let text = serde_json::to_vec(note)?;
    let directory = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    let new = path.with_extension("new");
    // The remains of an interrupted write.
    fs::remove_file(&new).ok();
    let mut file = os::create_new(&new, false)?;
    file.write_all(&text)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    File::open(directory)?.sync_all()
}

fn write_error(path: &Path, error: &std::io::Error) -> String {
    format!("cannot write the undo note {}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::fixtures;
    use forewarn_types::EventId;
    use serde_json::json;

    #[tokio::test(flavor = "current_thread")]
    async fn a_note_lasts_until_it_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let notes = UndoNotes::new(folder.path().join("a/b"));
        let mut job = fixtures::job("../drain it", Phase::Scheduled);
        assert_eq!(notes.load(&job).await, None);
        notes.store(&job, &json!({ "a": 1, "b": 2 })).await.unwrap();
        notes.store(&job, &json!({ "a": 3, "b": 2 })).await.unwrap();
        assert_eq!(notes.load(&job).await, Some(json!({ "a": 3, "b": 2 })));
        job.run.memory = Some(json!({ "a": 4 }));
        assert_eq!(notes.load(&job).await, Some(json!({ "a": 4, "b": 2 })), "the memory takes precedence");
        assert!(folder.path().join("a/b/hook-..%2Fdrain%20it.json").exists());
        notes.delete(&job).await;
        notes.delete(&job).await;
        assert_eq!(notes.load(&job).await, Some(json!({ "a": 4 })));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_note_that_cannot_be_written_is_a_reason_and_one_that_is_not_needed_is_none() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), "").unwrap();
        let notes = UndoNotes::new(folder.path().join("file"));
        let error = notes.store(&fixtures::job("a", Phase::Scheduled), &json!(1)).await.unwrap_err();
        assert!(error.starts_with("cannot write the undo note "), "{error}");
        notes.store(&fixtures::job("a", Phase::Started), &json!(1)).await.unwrap();
        let mut never_undone = fixtures::job("a", Phase::Scheduled);
        never_undone.run.pending_undo = None;
        notes.store(&never_undone, &json!(1)).await.unwrap();
    }

    /// promise: A2
    #[tokio::test(flavor = "current_thread")]
    async fn a_note_of_what_is_not_owed_any_more_counts_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let notes = UndoNotes::new(folder.path().to_owned());
        let mut job = fixtures::job("drain", Phase::Scheduled);
        notes.store(&job, &json!({ "a": 1 })).await.unwrap();
        let began = job.run.pending_undo.unwrap();
        // A second event, after the agent crashed during the first.
        job.run.task.event = EventId::from_bytes([2; 16]);
        assert_eq!(notes.load(&job).await, Some(json!({ "a": 1 })));
        // The note is stale: the undo work began with a later event, or there is none.
        for pending_undo in [Some(EventId::from_bytes([3; 16])), None] {
            job.run.pending_undo = pending_undo;
            assert_eq!(notes.load(&job).await, None);
        }
        job.run.pending_undo = Some(EventId::from_bytes([3; 16]));
        notes.store(&job, &json!({ "b": 2 })).await.unwrap();
        assert_eq!(notes.load(&job).await, Some(json!({ "b": 2 })), "the stale note is not merged");
        job.run.pending_undo = Some(began);
        assert_eq!(notes.load(&job).await, None);
        fs::write(notes.path(&job), "{\"a\":1}").unwrap();
        assert_eq!(notes.load(&job).await, None, "invalid notes are ignored");
    }

    #[test]
    fn what_came_first_stays() {
        let first = json!({ "units": { "a": { "active": true } }, "x": [1] });
        let second =
            json!({ "units": { "a": { "active": false, "masked": true }, "b": {} }, "x": [2], "y": 1 });
        let both = json!({
            "units": { "a": { "active": true, "masked": true }, "b": {} }, "x": [1], "y": 1
        });
        assert_eq!(merged(first, second), both);
    }
}
