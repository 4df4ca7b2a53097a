//! A server that was started here, and ends when it is not needed any more.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use super::kernel::{self, Busy};

const LOG: &str = "log";
const NOT_YET: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const READY_TIME_MAX: Duration = Duration::from_secs(10);
const END_TIME_MAX: Duration = Duration::from_secs(3);
/// Between two looks. Short, because it is a part of what is measured.
const PATIENCE: Duration = Duration::from_micros(100);

/// A running server, and the directory that it works in.
pub(super) struct Server {
    name: &'static str,
    at: SocketAddr,
    child: Child,
    /// Asks it to end, where its children would stay behind if it were just stopped.
    stop: Option<Command>,
    directory: TempDir,
}

/// How to start one.
pub(super) struct Start {
    pub(super) name: &'static str,
    pub(super) command: Command,
    pub(super) stop: Option<Command>,
    /// What it prints is kept here, too.
    pub(super) directory: TempDir,
}

impl Start {
    /// Starts it, and waits until its address is found: by what it has written to its directory, or by calling it.
    pub(super) fn run(self, find: impl Fn(&Path) -> Option<SocketAddr>) -> Result<Server> {
        let mut server = self.spawn()?;
        let begin = Instant::now();
        while begin.elapsed() < READY_TIME_MAX {
            if let Some(at) = find(server.directory.path()) {
                server.at = at;
                return Ok(server);
            }
            if let Some(status) = server.child.try_wait()? {
                bail!("{} has ended: {status}\n{}", server.name, server.log());
            }
            std::thread::sleep(PATIENCE);
        }
        bail!("{} does not get ready\n{}", server.name, server.log())
    }

    fn spawn(self) -> Result<Server> {
        let Self { name, mut command, stop, directory } = self;
        let log = File::create(directory.path().join(LOG)).context("cannot write a log")?;
        command.current_dir(directory.path()).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = command.spawn().with_context(|| format!("cannot run: {name}"))?;
        Ok(Server { name, at: NOT_YET, child, stop, directory })
    }
}

impl Server {
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    pub(super) fn at(&self) -> SocketAddr {
        self.at
    }

    pub(super) fn resident_bytes(&self) -> Result<u64> {
        kernel::resident_bytes(self.child.id())
    }

    /// The time that it and its children have been on a processor.
    pub(super) fn busy(&self) -> Result<Busy> {
        Busy::read(&kernel::family(self.child.id())?)
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join(LOG)).unwrap_or_default()
    }

    fn has_ended_within(&mut self, time: Duration) -> bool {
        let begin = Instant::now();
        while begin.elapsed() < time {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(PATIENCE),
                Ok(Some(_)) | Err(_) => return true,
            }
        }
        false
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let asked = self.stop.as_mut().map(|stop| stop.stdout(Stdio::null()).stderr(Stdio::null()).status());
        let was_asked = asked.is_some_and(|status| status.is_ok_and(|status| status.success()));
        if was_asked && self.has_ended_within(END_TIME_MAX) {
            return;
        }
        // It may have ended by itself; then there is nobody to stop.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
