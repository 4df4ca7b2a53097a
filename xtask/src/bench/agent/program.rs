//! The agent that is measured: its settings, its hook, and what it did.

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

/// How long a hook may take to be heard of.
const PATIENCE: Duration = Duration::from_secs(20);

/// A directory with all that an agent needs.
pub(super) struct Workplace(TempDir);

/// What hooks write, line by line.
pub(super) struct Pipe(Receiver<(Instant, String)>);

/// A running agent.
pub(super) struct Agent {
    child: Child,
    log: PathBuf,
}

impl Workplace {
    pub(super) fn new() -> Result<Self> {
        let directory = tempfile::tempdir().context("no temporary directory")?;
        let place = Self(directory);
        let made = Command::new("mkfifo").arg(place.pipe_path()).status().context("cannot run mkfifo")?;
        ensure!(made.success(), "no pipe can be made");
        let hook = place.path("hook");
        fs::write(&hook, format!("#!/bin/sh\necho \"$EVENT_ID\" > '{}'\n", place.pipe_path().display()))?;
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755))?;
        Ok(place)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn pipe_path(&self) -> PathBuf {
        self.path("pipe")
    }

    /// What comes out of the pipe, with the moment at which it did.
    pub(super) fn pipe(&self) -> Result<Pipe> {
        // Whoever reads also writes: the pipe never ends.
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

    /// Hooks of three kinds, of which one is run here, a rule, and everything else as it usually is.
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
        self.0.recv_timeout(PATIENCE).context("no hook is run")
    }
}

impl Agent {
    pub(super) fn start(program: &Path, place: &Workplace, endpoint: SocketAddr) -> Result<Self> {
        let log = place.path("log");
        let output = File::create(&log)?;
        let mut command = Command::new(program);
        command.args(["run", "--config"]).arg(place.settings(endpoint)?).current_dir(place.0.path());
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let child = command.spawn().context("cannot run the agent")?;
        Ok(Self { child, log })
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The time that it has been on a processor.
    pub(super) fn busy(&self) -> Result<Busy> {
        Busy::read(&[self.id()]).with_context(|| self.log())
    }

    pub(super) fn resident_bytes(&self) -> Result<u64> {
        kernel::resident_bytes(self.id()).with_context(|| self.log())
    }

    pub(super) fn log(&self) -> String {
        let said = fs::read_to_string(&self.log).unwrap_or_default();
        let end: Vec<_> = said.lines().rev().take(20).collect();
        format!("the agent said last:\n{}", end.into_iter().rev().collect::<Vec<_>>().join("\n"))
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nobody to stop.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
