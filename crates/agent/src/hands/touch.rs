//! A file that is there while an event lasts: for a load balancer that looks for it, or a program that stops when it is there.
//!
//! It appears whole or not at all. One that was there before is left as it is, and one that somebody has put in the place of
//! ours is not removed.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

use super::event::event_json;
use super::{Setting, aside};
use crate::os;

/// `touch = { path = "/run/draining", contents = "event" }`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TouchWork {
    /// The file, by its whole path. Its directory has to be there. Undone: it is removed, if it was made by this hook.
    pub(crate) path: PathBuf,
    /// What is in it.
    #[serde(default)]
    pub(crate) contents: Contents,
}

/// What is in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Contents {
    /// Nothing.
    #[default]
    Empty,
    /// The event, as JSON.
    Event,
}

impl TouchWork {
    pub(super) fn check(&self) -> Result<(), String> {
        if !self.path.is_absolute() || self.path.file_name().is_none() {
            let path = self.path.display();
            return Err(format!(
                "`path` is not the whole path of a file: {path}\n  hint: path = \"/run/draining\""
            ));
        }
        Ok(())
    }

    pub(super) async fn perform(
        &self,
        setting: &Setting<'_>,
        memory: &mut Option<Value>,
    ) -> Result<(), String> {
        let text = match self.contents {
            Contents::Empty => String::new(),
            Contents::Event => format!("{}\n", event_json(&setting.job.run.seen)),
        };
        let (path, new) = (self.path.clone(), beside(&self.path));
        let there = aside(move || mark(&path)).await?;
        if there.as_deref().is_some_and(|there| !is_ours(setting, there)) {
            // Somebody else has made it.
            return Ok(());
        }
        let (made, path) = (new.clone(), self.path.clone());
        let mark =
            aside(move || write(&new, text.as_bytes()).map_err(|problem| told(&path, &problem))).await?;
        setting.remember(json!({ "made": { mark: true } }), memory).await?;
        let (path, is_there) = (self.path.clone(), there.is_some());
        aside(move || put(&made, &path, is_there).map_err(|problem| told(&path, &problem))).await
    }

    pub(super) async fn undo(&self, setting: &Setting<'_>) -> Result<(), String> {
        let path = self.path.clone();
        let there = aside(move || mark(&path)).await?;
        if !there.as_deref().is_some_and(|there| is_ours(setting, there)) {
            return Ok(());
        }
        let path = self.path.clone();
        aside(move || {
            fs::remove_file(beside(&path)).ok();
            match fs::remove_file(&path) {
                Err(problem) if problem.kind() != ErrorKind::NotFound => Err(told(&path, &problem)),
                Ok(()) | Err(_) => Ok(()),
            }
        })
        .await
    }
}

/// Whether this hook has made the file of that mark, in this life or in one before it.
fn is_ours(setting: &Setting<'_>, mark: &str) -> bool {
    let made = setting.earlier.as_ref().and_then(|memory| memory.get("made"));
    made.is_some_and(|made| made.get(mark).is_some())
}

/// The name of a file that is not finished yet.
fn beside(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".forewarn-new");
    path.with_file_name(name)
}

/// Which file there is, if there is one.
fn mark(path: &Path) -> Result<Option<String>, String> {
    match os::file_mark(path) {
        Ok(mark) => Ok(Some(mark)),
        Err(problem) if problem.kind() == ErrorKind::NotFound => Ok(None),
        Err(problem) => Err(told(path, &problem)),
    }
}

fn write(new: &Path, text: &[u8]) -> std::io::Result<String> {
    // What is left of one that was never finished.
    fs::remove_file(new).ok();
    let mut file = os::create_new(new, true)?;
    file.write_all(text)?;
    file.sync_all()?;
    os::file_mark(new)
}

/// Puts a finished file in its place. One that somebody has made meanwhile stays.
fn put(new: &Path, path: &Path, replaces: bool) -> std::io::Result<()> {
    if replaces {
        return fs::rename(new, path);
    }
    let put = fs::hard_link(new, path);
    fs::remove_file(new).ok();
    match put {
        Err(problem) if problem.kind() != ErrorKind::AlreadyExists => Err(problem),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn told(path: &Path, problem: &std::io::Error) -> String {
    format!("{}: {problem}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hands::samples::{go_on, hands, job};
    use crate::hands::{Hands, Work};
    use forewarn_agent_core::{Ending, Phase};

    struct Place {
        hands: Hands,
        folder: tempfile::TempDir,
        path: PathBuf,
    }

    impl Place {
        fn new() -> Self {
            let (hands, folder) = hands();
            let path = folder.path().join("draining");
            Self { hands, folder, path }
        }

        fn work(&self, contents: Contents) -> Work {
            Work::Touch(TouchWork { path: self.path.clone(), contents })
        }

        async fn perform(&self, contents: Contents, memory: Option<Value>) -> Ending {
            let mut job = job("flag", Phase::Scheduled);
            job.run.memory = memory;
            self.work(contents).perform(&job, &self.hands, go_on()).await
        }

        async fn undo(&self, memory: Option<Value>) -> Ending {
            let mut job = job("flag", Phase::Undo);
            job.run.memory = memory;
            self.work(Contents::Empty).undo(&job, &self.hands, go_on()).await
        }

        fn names(&self) -> Vec<String> {
            let names = fs::read_dir(self.folder.path()).unwrap();
            let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            names.filter(|name| name != "notes").collect()
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_file_is_there_until_it_is_undone() {
        let place = Place::new();
        let first = place.perform(Contents::Empty, None).await;
        assert_eq!(first.result, Ok(()));
        assert_eq!(fs::read_to_string(&place.path).unwrap(), "");
        let second = place.perform(Contents::Event, first.memory).await;
        assert_eq!(second.result, Ok(()));
        assert!(
            fs::read_to_string(&place.path).unwrap().starts_with("{\"EventId\":"),
            "a second event takes its place"
        );
        assert_eq!(place.names(), ["draining"]);
        assert_eq!(place.undo(second.memory.clone()).await.result, Ok(()));
        assert_eq!(place.names(), [""; 0]);
        assert_eq!(place.undo(second.memory).await.result, Ok(()), "and again");
    }

    #[tokio::test(flavor = "current_thread")]
    async fn the_file_of_somebody_else_is_left_alone() {
        let place = Place::new();
        fs::write(&place.path, "mine").unwrap();
        let ending = place.perform(Contents::Event, None).await;
        assert_eq!((ending.result, &ending.memory), (Ok(()), &None));
        assert_eq!(place.undo(ending.memory).await.result, Ok(()));
        assert_eq!(fs::read_to_string(&place.path).unwrap(), "mine");
        fs::remove_file(&place.path).unwrap();
        let ending = place.perform(Contents::Event, None).await;
        // Somebody puts their own in the place of ours. Both exist at once, so that they cannot have the same number.
        fs::write(place.folder.path().join("other"), "theirs").unwrap();
        fs::rename(place.folder.path().join("other"), &place.path).unwrap();
        assert_eq!(place.perform(Contents::Event, ending.memory.clone()).await.result, Ok(()));
        assert_eq!(place.undo(ending.memory).await.result, Ok(()));
        assert_eq!(fs::read_to_string(&place.path).unwrap(), "theirs");
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_file_of_somebody_else_that_has_got_the_number_of_ours_is_left_alone() {
        use std::os::unix::fs::MetadataExt;
        let place = Place::new();
        fs::write(&place.path, "theirs").unwrap();
        let number = fs::metadata(&place.path).unwrap().ino();
        // Ours had this number, was born long ago, and is gone.
        let long_ago = format!("{number} born 1.000000000");
        let memory = Some(json!({ "made": { long_ago: true, number.to_string(): true } }));
        assert_eq!(place.perform(Contents::Event, memory.clone()).await.result, Ok(()));
        assert_eq!(fs::read_to_string(&place.path).unwrap(), "theirs");
        assert_eq!(place.undo(memory).await.result, Ok(()));
        assert_eq!(fs::read_to_string(&place.path).unwrap(), "theirs");
    }

    #[tokio::test(flavor = "current_thread")]
    async fn an_agent_that_dies_in_the_middle_knows_that_the_file_is_its_own() {
        let place = Place::new();
        place.perform(Contents::Empty, None).await.result.unwrap();
        // Nobody has heard of the ending.
        assert_eq!(place.perform(Contents::Empty, None).await.result, Ok(()));
        assert_eq!(place.undo(None).await.result, Ok(()));
        assert_eq!(place.names(), [""; 0]);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn two_events_at_once_have_one_file() {
        let place = Place::new();
        for _ in 0..20 {
            let both =
                tokio::join!(place.perform(Contents::Event, None), place.perform(Contents::Empty, None));
            assert_eq!((both.0.result, both.1.result), (Ok(()), Ok(())));
            assert_eq!(place.names(), ["draining"]);
            assert_eq!(place.undo(both.0.memory).await.result, Ok(()));
            assert_eq!(place.names(), [""; 0]);
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_directory_that_is_not_there_is_a_reason() {
        let (hands, folder) = hands();
        let work = Work::Touch(TouchWork { path: folder.path().join("no/flag"), contents: Contents::Empty });
        let ending = work.perform(&job("flag", Phase::Scheduled), &hands, go_on()).await;
        assert!(ending.result.unwrap_err().contains("no/flag: No such file"));
    }

    #[test]
    fn settings_are_checked() {
        let check = |text: &str| toml::from_str::<TouchWork>(text).unwrap().check();
        assert_eq!(check("path = '/run/draining'\ncontents = 'event'"), Ok(()));
        assert!(check("path = 'draining'").unwrap_err().contains("hint: path ="));
        assert!(check("path = '/'").is_err());
        assert!(toml::from_str::<TouchWork>("path = '/a'\nmode = 1").is_err());
    }
}
