//! What work has to know in order to be undone, kept before it is done.
//!
//! The shell keeps what an ending remembers, but an agent may die before there is an ending. So work that undoes writes a note
//! first: one file per hook, whole or not at all. A note is thrown away once the work is undone. One that stays all the same, since
//! the memory of the agent was lost or its hook was not there for a while, counts no more: it says with which event it began, and
//! what is owed now began with another.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use forewarn_agent_core::Phase;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Job, aside, uri};
use crate::os;

/// Bytes of a note.
const NOTE_BYTES_MAX: u64 = 1024 * 1024;

/// A directory of notes.
#[derive(Clone, Debug)]
pub(super) struct Notes(PathBuf);

/// A note.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    /// With which event it began that there is something to undo.
    since: String,
    memory: Value,
}

impl Notes {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self(directory)
    }

    /// What is remembered of a hook: what the watcher has kept, and what was noted since.
    pub(super) async fn recall(&self, job: &Job) -> Option<Value> {
        let (path, owed) = (self.path(job), job.run.owed);
        let noted = aside(move || Ok(read(&path))).await.ok().flatten();
        let is_owed = |note: &Note| owed.is_some_and(|owed| note.since == owed.to_string());
        let noted = noted.filter(is_owed).map(|note| note.memory);
        match (job.run.memory.clone(), noted) {
            (Some(kept), Some(noted)) => Some(merged(kept, noted)),
            (kept, noted) => kept.or(noted),
        }
    }

    /// Notes something down. Only hooks that are undone some day have anything to note.
    pub(super) async fn note(&self, job: &Job, memory: &Value) -> Result<(), String> {
        let since = match (job.run.task.phase, job.run.owed) {
            (Phase::Scheduled, Some(since)) => since,
            (Phase::Scheduled, None)
            | (Phase::Started | Phase::Completed | Phase::Cancelled | Phase::Undo, _) => return Ok(()),
        };
        let (path, note) = (self.path(job), Note { since: since.to_string(), memory: memory.clone() });
        aside(move || write(&path, &note).map_err(|problem| unwritten(&path, &problem))).await
    }

    /// Throws a note away.
    pub(super) async fn forget(&self, job: &Job) {
        let path = self.path(job);
        // There may be none; and if it stays, it is of something that is not owed any more.
        aside(move || Ok(fs::remove_file(&path).ok())).await.ok();
    }

    fn path(&self, job: &Job) -> PathBuf {
        // What is part of a URI is one name of a file, too: there is no slash in it.
        self.0.join(format!("hook-{}.json", uri::part(&job.run.task.hook)))
    }
}

/// Both; where they differ, the first.
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

fn read(path: &Path) -> Option<Note> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(NOTE_BYTES_MAX).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

fn write(path: &Path, note: &Note) -> std::io::Result<()> {
    let text = serde_json::to_vec(note)?;
    let directory = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    let new = path.with_extension("new");
    // What is left of a note that was never finished.
    fs::remove_file(&new).ok();
    let mut file = os::create_new(&new, false)?;
    file.write_all(&text)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    File::open(directory)?.sync_all()
}

fn unwritten(path: &Path, problem: &std::io::Error) -> String {
    format!("what is to be undone could not be noted in {}: {problem}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hands::samples;
    use forewarn_types::EventId;
    use serde_json::json;

    #[tokio::test(flavor = "current_thread")]
    async fn a_note_lasts_until_it_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let notes = Notes::new(folder.path().join("a/b"));
        let mut job = samples::job("../drain it", Phase::Scheduled);
        assert_eq!(notes.recall(&job).await, None);
        notes.note(&job, &json!({ "a": 1, "b": 2 })).await.unwrap();
        notes.note(&job, &json!({ "a": 3, "b": 2 })).await.unwrap();
        assert_eq!(notes.recall(&job).await, Some(json!({ "a": 3, "b": 2 })));
        job.run.memory = Some(json!({ "a": 4 }));
        assert_eq!(notes.recall(&job).await, Some(json!({ "a": 4, "b": 2 })), "what was kept came first");
        assert!(folder.path().join("a/b/hook-..%2Fdrain%20it.json").exists());
        notes.forget(&job).await;
        notes.forget(&job).await;
        assert_eq!(notes.recall(&job).await, Some(json!({ "a": 4 })));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_note_that_cannot_be_written_is_a_reason_and_one_that_is_not_needed_is_none() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), "").unwrap();
        let notes = Notes::new(folder.path().join("file"));
        let problem = notes.note(&samples::job("a", Phase::Scheduled), &json!(1)).await.unwrap_err();
        assert!(problem.starts_with("what is to be undone could not be noted in "), "{problem}");
        notes.note(&samples::job("a", Phase::Started), &json!(1)).await.unwrap();
        let mut never_undone = samples::job("a", Phase::Scheduled);
        never_undone.run.owed = None;
        notes.note(&never_undone, &json!(1)).await.unwrap();
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_note_of_what_is_not_owed_any_more_counts_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let notes = Notes::new(folder.path().to_owned());
        let mut job = samples::job("drain", Phase::Scheduled);
        notes.note(&job, &json!({ "a": 1 })).await.unwrap();
        let began = job.run.owed.unwrap();
        // A second event, and an agent that has died in the middle of the first.
        job.run.task.event = EventId::from_bytes([2; 16]);
        assert_eq!(notes.recall(&job).await, Some(json!({ "a": 1 })));
        // Nobody has thrown the note away, and what is owed now began later; or nothing is.
        for owed in [Some(EventId::from_bytes([3; 16])), None] {
            job.run.owed = owed;
            assert_eq!(notes.recall(&job).await, None);
        }
        job.run.owed = Some(EventId::from_bytes([3; 16]));
        notes.note(&job, &json!({ "b": 2 })).await.unwrap();
        assert_eq!(notes.recall(&job).await, Some(json!({ "b": 2 })), "nothing of the old one is in it");
        job.run.owed = Some(began);
        assert_eq!(notes.recall(&job).await, None);
        fs::write(notes.path(&job), "{\"a\":1}").unwrap();
        assert_eq!(notes.recall(&job).await, None, "this is no note");
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
