//! A process of the realm: a server or a member of etcd, with its log in a file.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use forewarn_processes::ProcessTree;
use tokio::time::{Instant, sleep};

/// Lines at the end of a log that an error shows.
const LOG_LINES: usize = 5;

/// Time from SIGTERM to SIGKILL, and pause between two looks.
const GRACE: Duration = Duration::from_secs(5);
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// The role of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProcessRole {
    Server,
    Member,
}

/// A process that can be started several times.
pub(super) struct RealmProcess {
    pub(super) name: String,
    pub(super) role: ProcessRole,
    program: PathBuf,
    words: Vec<OsString>,
    log: PathBuf,
    running: Option<Running>,
    /// The time of its last end.
    ended: Option<Instant>,
}

struct Running {
    child: Child,
    /// Kills the process when it is dropped.
    tree: ProcessTree,
}

impl RealmProcess {
    pub(super) fn new(
        role: ProcessRole,
        name: &str,
        program: PathBuf,
        words: Vec<OsString>,
        log: PathBuf,
    ) -> Self {
        Self { name: name.to_owned(), role, program, words, log, running: None, ended: None }
    }

    /// Starts the process, in a group of its own: Ctrl-C reaches only this program.
    pub(super) fn start(&mut self) -> Result<()> {
        let log = OpenOptions::new().create(true).append(true).open(&self.log)?;
        let mut command = Command::new(&self.program);
        clear_etcd_settings(&mut command);
        command.args(&self.words).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).process_group(0);
        let child = command.spawn();
        let child =
            child.with_context(|| format!("cannot start {}: {}", self.name, self.program.display()))?;
        let tree = ProcessTree::of(Some(child.id()), None);
        (self.running, self.ended) = (Some(Running { child, tree }), None);
        Ok(())
    }

    /// The id of the process, if it runs.
    pub(super) fn pid(&self) -> Option<u32> {
        self.running.as_ref().map(|running| running.child.id())
    }

    /// The id and the status of a process that has ended since the last look.
    pub(super) fn end(&mut self) -> Option<(u32, ExitStatus)> {
        let running = self.running.as_mut()?;
        // An error means that the process cannot be waited for: it is not a child any more.
        let status = running.child.try_wait().ok().flatten()?;
        let pid = running.child.id();
        (self.running, self.ended) = (None, Some(Instant::now()));
        Some((pid, status))
    }

    /// Returns true if the process has ended that long ago.
    pub(super) fn is_down_for(&self, span: Duration) -> bool {
        self.ended.is_some_and(|ended| ended.elapsed() >= span)
    }

    /// The last lines of the log.
    pub(super) fn last_lines(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].join("\n  ")
    }

    fn terminate(&self) {
        if let Some(running) = &self.running {
            running.tree.terminate();
        }
    }
}

/// Ends processes: asks them first, and kills those that do not end in time.
pub(super) async fn end_all<'a>(processes: impl Iterator<Item = &'a mut RealmProcess>) {
    let mut processes: Vec<_> = processes.collect();
    processes.iter().for_each(|process| process.terminate());
    let deadline = Instant::now() + GRACE;
    while Instant::now() < deadline {
        let is_left = |process: &&mut RealmProcess| process.pid().is_some();
        for process in &mut processes {
            process.end();
        }
        if !processes.iter().any(is_left) {
            return;
        }
        sleep(LOOK_INTERVAL).await;
    }
    for process in processes {
        if let Some(mut running) = process.running.take() {
            running.tree.kill();
            // The kill cannot be ignored.
            running.child.wait().ok();
        }
    }
}

/// The end of a process in words.
pub(super) fn end_in_words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

/// Takes settings of etcd out of the environment: they would change members.
pub(super) fn clear_etcd_settings(command: &mut Command) {
    let names = std::env::vars_os().map(|(name, _)| name);
    for name in names.filter(|name| name.to_string_lossy().starts_with("ETCD_")) {
        command.env_remove(name);
    }
}
