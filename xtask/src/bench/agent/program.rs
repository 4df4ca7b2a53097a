//! The measured agent: its settings, its hook and its output.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use super::endpoint::NAME;
use crate::bench::metadata::kernel::{self, Busy};

/// The time limit for a line of a hook.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A directory with the settings, the hook and the pipe of an agent.
pub(super) struct AgentDirectory(TempDir);

/// The lines that hooks write.
pub(super) struct Pipe(Receiver<(Instant, String)>);

/// A running agent.
pub(super) struct Agent {
    child: Child,
    log: PathBuf,
}

impl AgentDirectory {
    pub(super) fn new() -> Result<Self> {
        let directory = tempfile::tempdir().context("no temporary directory")?;
        let directory = Self(directory);
        let made = Command::new("mkfifo").arg(directory.pipe_path()).status().context("cannot run mkfifo")?;
        ensure!(made.success(), "no pipe can be made");
        let hook = directory.path("hook");
        fs::write(&hook, format!("#!/bin/sh\necho \"$EVENT_ID\" > '{}'\n", directory.pipe_path().display()))?;
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755))?;
        Ok(directory)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn pipe_path(&self) -> PathBuf {
        self.path("pipe")
    }

    /// The lines of the pipe, each with the time of its arrival.
    pub(super) fn pipe(&self) -> Result<Pipe> {
        // The reader also opens it for writing, so that the pipe never ends.
        let file = OpenOptions::new().read(true).write(true).open(self.pipe_path())?;
        let (send, receive) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(file).lines().map_while(Result::ok) {
                if send.send((Instant::now(), line)).is_err() {
                    return;
                }
            }
        });
        Ok(Pipe(receive))
    }

    /// Writes settings with hooks of three kinds, of which one runs here, a rule, and defaults.
    fn settings(&self, endpoint: SocketAddr) -> Result<PathBuf> {
        let file = self.path("agent.toml");
        let text = format!(
            "endpoint = 'http://{endpoint}'\nname = '{NAME}'\npoll = '1s'\nstate = '{}'\nhooks = '{}'\nlisten = '127.0.0.1:0'\n\
             [approval]\npolicy = 'alone'\n\
             [[rule]]\nwhen = {{ types = ['Freeze'], shorter_than = '10s' }}\ntreatment = 'ignore'\n\
             [[hook]]\nname = 'stamp'\nphase = 'scheduled'\ncommand = ['{}']\n\
             [[hook]]\nname = 'flag'\nphase = 'scheduled'\nwhen = {{ types = ['Preempt'] }}\ntouch = {{ path = '{}' }}\n\
             [[hook]]\nname = 'pause'\nphase = 'completed'\nwhen = {{ types = ['Preempt'] }}\nwait = '1s'\n",
            self.path("state.json").display(),
            self.0.path().display(),
            self.path("hook").display(),
            self.path("flag").display(),
        );
        fs::write(&file, text)?;
        Ok(file)
    }
}

impl Pipe {
    pub(super) fn next(&mut self) -> Result<(Instant, String)> {
        self.0.recv_timeout(TIMEOUT).context("no hook ran")
    }
}

impl Agent {
    pub(super) fn start(program: &Path, directory: &AgentDirectory, endpoint: SocketAddr) -> Result<Self> {
        let log = directory.path("log");
        let output = File::create(&log)?;
        let mut command = Command::new(program);
        command.args(["run", "--config"]).arg(directory.settings(endpoint)?).current_dir(directory.0.path());
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let child = command.spawn().context("cannot run the agent")?;
        Ok(Self { child, log })
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its CPU time.
    pub(super) fn busy(&self) -> Result<Busy> {
        Busy::read(&[self.id()]).with_context(|| self.log())
    }

    pub(super) fn resident_bytes(&self) -> Result<u64> {
        kernel::resident_bytes(self.id()).with_context(|| self.log())
    }

    pub(super) fn log(&self) -> String {
        let said = fs::read_to_string(&self.log).unwrap_or_default();
        let end: Vec<_> = said.lines().rev().take(20).collect();
        format!("last lines of the agent:\n{}", end.into_iter().rev().collect::<Vec<_>>().join("\n"))
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
