//! A server process that is stopped on drop.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use super::kernel::{self, Busy};

const LOG: &str = "log";
const NOT_YET: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const READY_TIME_MAX: Duration = Duration::from_secs(60);
const END_TIME_MAX: Duration = Duration::from_secs(3);
/// Short, because it is a part of the measured time.
const POLL_INTERVAL: Duration = Duration::from_micros(100);

/// A running server and its directory.
pub(in crate::bench) struct Server {
    name: &'static str,
    at: SocketAddr,
    child: Child,
    /// Stops the server with its children, which a kill would leave behind.
    stop: Option<Command>,
    directory: TempDir,
}

/// The command that starts a server.
pub(in crate::bench) struct Start {
    pub(in crate::bench) name: &'static str,
    pub(in crate::bench) command: Command,
    pub(in crate::bench) stop: Option<Command>,
    /// Also has the log of its output.
    pub(in crate::bench) directory: TempDir,
}

impl Start {
    /// Starts the server and waits until `find` returns its address.
    pub(in crate::bench) fn run(self, find: impl Fn(&Path) -> Option<SocketAddr>) -> Result<Server> {
        let mut server = self.spawn()?;
        let begin = Instant::now();
        while begin.elapsed() < READY_TIME_MAX {
            if let Some(at) = find(server.directory.path()) {
                server.at = at;
                return Ok(server);
            }
            if let Some(status) = server.child.try_wait()? {
                bail!("{} exited: {status}\n{}", server.name, server.log());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        bail!("{} is not ready in time\n{}", server.name, server.log())
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
    pub(in crate::bench) fn name(&self) -> &'static str {
        self.name
    }

    pub(in crate::bench) fn at(&self) -> SocketAddr {
        self.at
    }

    pub(in crate::bench) fn process(&self) -> u32 {
        self.child.id()
    }

    pub(in crate::bench) fn resident_bytes(&self) -> Result<u64> {
        kernel::resident_bytes(self.child.id())
    }

    /// CPU time of the server and its children.
    pub(in crate::bench) fn busy(&self) -> Result<Busy> {
        Busy::read(&kernel::family(self.child.id())?)
    }

    /// CPU time of the server, also of its threads that have ended.
    pub(in crate::bench) fn cpu_time(&self) -> Result<Duration> {
        kernel::cpu_time(self.child.id())
    }

    pub(in crate::bench) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Stops the server as a service manager does, and waits for its end.
    pub(in crate::bench) fn terminate(mut self, time_max: Duration) -> Result<()> {
        let status = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        ensure!(status.context("cannot run kill")?.success(), "cannot stop {}", self.name);
        ensure!(self.has_ended_within(time_max), "{} does not stop\n{}", self.name, self.log());
        Ok(())
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join(LOG)).unwrap_or_default()
    }

    fn has_ended_within(&mut self, time: Duration) -> bool {
        let begin = Instant::now();
        while begin.elapsed() < time {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(POLL_INTERVAL),
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
        // It may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
