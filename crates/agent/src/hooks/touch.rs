//! Hooks that create a file for the duration of an event, for a load balancer or a program that checks for it.
//!
//! The file is created atomically. An existing file is left as it is, and a file that has replaced ours is not removed.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

use super::event::event_json;
use super::{HookCall, run_blocking};
use crate::os;

/// `touch = { path = "/run/draining", contents = "event" }`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TouchWork {
    /// The absolute path of the file. Its directory must exist. The undo removes the file if this hook has created it.
    pub(crate) path: PathBuf,
    /// The contents of the file.
    #[serde(default)]
    pub(crate) contents: Contents,
}

/// The contents of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Contents {
    #[default]
    Empty,
    /// The event as JSON.
    Event,
}

impl TouchWork {
    pub(super) fn errors(&self) -> Vec<String> {
        if self.path.is_absolute() && self.path.file_name().is_some() {
            return Vec::new();
        }
        let path = self.path.display();
        vec![format!("`path` is not the absolute path of a file: {path}\n  hint: path = \"/run/draining\"")]
    }

    pub(super) async fn perform(
        &self,
        call: &HookCall<'_>,
        memory: &mut Option<Value>,
    ) -> Result<(), String> {
        let text = match self.contents {
            Contents::Empty => String::new(),
            Contents::Event => format!("{}\n", event_json(&call.job.run.observed)),
        };
        let (path, new) = (self.path.clone(), temporary_path(&self.path));
        let there = run_blocking(move || mark(&path)).await?;
        if there.as_deref().is_some_and(|there| !is_ours(call, there)) {
            // Someone else has created it.
            return Ok(());
        }
        let (made, path) = (new.clone(), self.path.clone());
        let mark =
            run_blocking(move || write(&new, text.as_bytes()).map_err(|error| describe(&path, &error)))
                .await?;
        call.store_undo_state(json!({ "made": { mark: true } }), memory).await?;
        let (path, is_there) = (self.path.clone(), there.is_some());
        run_blocking(move || move_into_place(&made, &path, is_there).map_err(|error| describe(&path, &error)))
            .await
    }

    pub(super) async fn undo(&self, call: &HookCall<'_>) -> Result<(), String> {
        let path = self.path.clone();
        let there = run_blocking(move || mark(&path)).await?;
        if !there.as_deref().is_some_and(|there| is_ours(call, there)) {
            return Ok(());
        }
        let path = self.path.clone();
        run_blocking(move || {
            fs::remove_file(temporary_path(&path)).ok();
            match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(describe(&path, &error)),
                Ok(()) | Err(_) => Ok(()),
            }
        })
        .await
    }
}

/// True if this hook has created the file of that mark, now or before a restart.
fn is_ours(call: &HookCall<'_>, mark: &str) -> bool {
    let made = call.earlier.as_ref().and_then(|memory| memory.get("made"));
    made.is_some_and(|made| made.get(mark).is_some())
}

/// The path of the unfinished file.
fn temporary_path(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".forewarn-new");
    path.with_file_name(name)
}

/// The mark of the existing file, if any.
fn mark(path: &Path) -> Result<Option<String>, String> {
    match os::file_mark(path) {
        Ok(mark) => Ok(Some(mark)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(describe(path, &error)),
    }
}

fn write(new: &Path, text: &[u8]) -> std::io::Result<String> {
    // The remains of an interrupted write.
    fs::remove_file(new).ok();
    let mut file = os::create_new(new, true)?;
    file.write_all(text)?;
    file.sync_all()?;
    os::file_mark(new)
}

/// Moves the finished file to its path. A file that was created meanwhile is kept.
fn move_into_place(new: &Path, path: &Path, replaces: bool) -> std::io::Result<()> {
    if replaces {
        return fs::rename(new, path);
    }
    let move_into_place = fs::hard_link(new, path);
    fs::remove_file(new).ok();
    match move_into_place {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn describe(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::fixtures::{self, job, never_stop, runtime};
    use crate::hooks::{HookRuntime, Work};
    use forewarn_agent_core::{HookOutcome, Phase};

    struct TouchFixture {
        runtime: HookRuntime,
        folder: tempfile::TempDir,
        path: PathBuf,
    }

    impl TouchFixture {
        fn new() -> Self {
            let (runtime, folder) = runtime();
            let path = folder.path().join("draining");
            Self { runtime, folder, path }
        }

        fn work(&self, contents: Contents) -> Work {
            Work::Touch(TouchWork { path: self.path.clone(), contents })
        }

        async fn perform(&self, contents: Contents, memory: Option<Value>) -> HookOutcome {
            let mut job = job("flag", Phase::Scheduled);
            job.run.memory = memory;
            self.work(contents).perform(&job, &self.runtime, never_stop()).await
        }

        async fn undo(&self, memory: Option<Value>) -> HookOutcome {
            let mut job = job("flag", Phase::Undo);
            job.run.memory = memory;
            self.work(Contents::Empty).undo(&job, &self.runtime, never_stop()).await
        }

        fn names(&self) -> Vec<String> {
            let names = fs::read_dir(self.folder.path()).unwrap();
            let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            names.filter(|name| name != "notes").collect()
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_file_is_there_until_it_is_undone() {
        let fixture = TouchFixture::new();
        let first = fixture.perform(Contents::Empty, None).await;
        assert_eq!(first.result, Ok(()));
        assert_eq!(fs::read_to_string(&fixture.path).unwrap(), "");
        let second = fixture.perform(Contents::Event, first.memory).await;
        assert_eq!(second.result, Ok(()));
        assert!(
            fs::read_to_string(&fixture.path).unwrap().starts_with("{\"EventId\":"),
            "the second event replaces it"
        );
        assert_eq!(fixture.names(), ["draining"]);
        assert_eq!(fixture.undo(second.memory.clone()).await.result, Ok(()));
        assert_eq!(fixture.names(), [""; 0]);
        assert_eq!(fixture.undo(second.memory).await.result, Ok(()), "and again");
    }

    /// promise: A2
    #[tokio::test(flavor = "current_thread")]
    async fn a_foreign_file_is_left_alone() {
        let fixture = TouchFixture::new();
        fs::write(&fixture.path, "mine").unwrap();
        let hook_outcome = fixture.perform(Contents::Event, None).await;
        assert_eq!((hook_outcome.result, &hook_outcome.memory), (Ok(()), &None));
        assert_eq!(fixture.undo(hook_outcome.memory).await.result, Ok(()));
        assert_eq!(fs::read_to_string(&fixture.path).unwrap(), "mine");
        fs::remove_file(&fixture.path).unwrap();
        let hook_outcome = fixture.perform(Contents::Event, None).await;
        // Another file replaces ours. Both exist at once, so that their inodes differ.
        fs::write(fixture.folder.path().join("other"), "theirs").unwrap();
        fs::rename(fixture.folder.path().join("other"), &fixture.path).unwrap();
        assert_eq!(fixture.perform(Contents::Event, hook_outcome.memory.clone()).await.result, Ok(()));
        assert_eq!(fixture.undo(hook_outcome.memory).await.result, Ok(()));
        assert_eq!(fs::read_to_string(&fixture.path).unwrap(), "theirs");
    }

    /// promise: A2
    #[tokio::test(flavor = "current_thread")]
    async fn a_foreign_file_with_a_reused_inode_is_left_alone() {
        use std::os::unix::fs::MetadataExt;
        let fixture = TouchFixture::new();
        fs::write(&fixture.path, "theirs").unwrap();
        let number = fs::metadata(&fixture.path).unwrap().ino();
        // Our file had this inode, was created long ago, and is gone.
        let long_ago = format!("{number} born 1.000000000");
        let memory = Some(json!({ "made": { long_ago: true, number.to_string(): true } }));
        assert_eq!(fixture.perform(Contents::Event, memory.clone()).await.result, Ok(()));
        assert_eq!(fs::read_to_string(&fixture.path).unwrap(), "theirs");
        assert_eq!(fixture.undo(memory).await.result, Ok(()));
        assert_eq!(fs::read_to_string(&fixture.path).unwrap(), "theirs");
    }

    #[tokio::test(flavor = "current_thread")]
    async fn an_agent_that_dies_in_the_middle_knows_that_the_file_is_its_own() {
        let fixture = TouchFixture::new();
        fixture.perform(Contents::Empty, None).await.result.unwrap();
        // The result was never reported.
        assert_eq!(fixture.perform(Contents::Empty, None).await.result, Ok(()));
        assert_eq!(fixture.undo(None).await.result, Ok(()));
        assert_eq!(fixture.names(), [""; 0]);
    }

    /// promise: A2
    #[tokio::test(flavor = "current_thread")]
    async fn two_events_at_once_have_one_file() {
        let fixture = TouchFixture::new();
        for _ in 0..20 {
            let both =
                tokio::join!(fixture.perform(Contents::Event, None), fixture.perform(Contents::Empty, None));
            assert_eq!((both.0.result, both.1.result), (Ok(()), Ok(())));
            assert_eq!(fixture.names(), ["draining"]);
            assert_eq!(fixture.undo(both.0.memory).await.result, Ok(()));
            assert_eq!(fixture.names(), [""; 0]);
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_directory_that_is_not_there_is_a_reason() {
        let (runtime, folder) = runtime();
        let work = Work::Touch(TouchWork { path: folder.path().join("no/flag"), contents: Contents::Empty });
        let hook_outcome = work.perform(&job("flag", Phase::Scheduled), &runtime, never_stop()).await;
        assert!(hook_outcome.result.unwrap_err().contains("no/flag: No such file"));
    }

    #[test]
    fn settings_are_checked() {
        let check = |text: &str| fixtures::all_or_none(&toml::from_str::<TouchWork>(text).unwrap().errors());
        assert_eq!(check("path = '/run/draining'\ncontents = 'event'"), Ok(()));
        assert!(check("path = 'draining'").unwrap_err().contains("hint: path ="));
        assert!(check("path = '/'").is_err());
        assert!(toml::from_str::<TouchWork>("path = '/a'\nmode = 1").is_err());
    }
}
