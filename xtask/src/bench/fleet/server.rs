//! A server whose data outlives it, and its clients.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;

use super::MACHINES_PER_BLOCK;
use super::report::{CommandCost, Cost};
use crate::bench::hostile::find_address;
use crate::bench::metadata::forewarn::ADDRESSES;
use crate::bench::metadata::rounds::wait;
use crate::bench::metadata::server::{Server, Start};

const SOCKET: &str = "api.sock";
const CLIENTS: &str = "64";
const COMMAND_TIME: Duration = Duration::from_secs(3);
/// The extra time that the program of the clients may take.
const GRACE: Duration = Duration::from_secs(30);
/// The time of a fleet with a thousand VMs, on a slow computer.
const BLOCK_TIME_MAX: Duration = Duration::from_secs(20);
const STOP_TIME_MAX: Duration = Duration::from_secs(60);
/// A poll by the first VM of the fleet.
const POLL: &str = "GET /metadata/scheduledevents?api-version=2020-07-01 HTTP/1.1\r\n\
                    Host: localhost\r\nMetadata: true\r\nConnection: close\r\n\r\n";
const POLLING_MACHINE: &str = "fleet/vm-0-0/vm-0-0";

/// The data of a server, and the programs.
pub(super) struct FleetServer<'a> {
    program: &'a Path,
    clients: &'a Path,
    directory: TempDir,
    settings: PathBuf,
}

/// The server while it runs.
pub(super) struct RunningServer<'a> {
    server: Server,
    of: &'a FleetServer<'a>,
    token: String,
}

impl<'a> FleetServer<'a> {
    pub(super) fn new(program: &'a Path, clients: &'a Path) -> Result<Self> {
        let directory = tempfile::tempdir().context("no temporary directory")?;
        let settings = write_settings(directory.path())?;
        Ok(Self { program, clients, directory, settings })
    }

    pub(super) fn start(&self) -> Result<RunningServer<'_>> {
        let directory = tempfile::tempdir().context("no temporary directory")?;
        let mut command = Command::new(self.program);
        command.args(["serve", "--config"]).arg(&self.settings);
        command.arg("--addresses-file").arg(directory.path().join(ADDRESSES));
        let start = Start { name: "forewarn", command, stop: None, directory };
        let server = start.run(|directory| find_address(directory, "api"))?;
        Ok(RunningServer { server, of: self, token: String::new() })
    }

    /// Starts the server on its data, until it has answered a first poll.
    pub(super) fn restart(&self) -> Result<(RunningServer<'_>, Cost)> {
        let begin = Instant::now();
        let running = self.start()?;
        let at = find_address(running.server.directory(), "metadata").context("no metadata endpoint")?;
        poll(at)?;
        let cost = Cost { wall: begin.elapsed(), cpu: running.server.cpu_time()? };
        Ok((running, cost))
    }
}

impl RunningServer<'_> {
    /// Creates a token, and a cluster with the machines of the clients.
    pub(super) fn prepare(&mut self) -> Result<()> {
        let socket = self.of.directory.path().join(SOCKET);
        let socket = socket.to_str().context("not a name")?;
        let prepared = self.run("prepare", &["--socket", socket], GRACE)?;
        prepared["token"].as_str().context("no token")?.clone_into(&mut self.token);
        Ok(())
    }

    /// The cost of some work for the server.
    pub(super) fn measure(&self, work: impl FnOnce(&Self) -> Result<()>) -> Result<Cost> {
        let (begin, before) = (Instant::now(), self.server.cpu_time()?);
        work(self)?;
        let cpu = self.server.cpu_time()?.saturating_sub(before);
        Ok(Cost { wall: begin.elapsed(), cpu })
    }

    /// Creates the fleet in a cluster of its own.
    pub(super) fn apply(&self, machines: u32) -> Result<()> {
        let time_max = GRACE + BLOCK_TIME_MAX * (machines / MACHINES_PER_BLOCK);
        self.run("fleet", &["--machines", &machines.to_string()], time_max).map(|_| ())
    }

    /// The cost of commands while the fleet does nothing.
    pub(super) fn commands(&self) -> Result<CommandCost> {
        let before = self.server.cpu_time()?;
        let words = ["--milliseconds", &COMMAND_TIME.as_millis().to_string()];
        let result = self.run("commands", &words, COMMAND_TIME + GRACE)?;
        let cpu = self.server.cpu_time()?.saturating_sub(before);
        let number = |key: &str| result[key].as_f64().with_context(|| format!("not in the result: {key}"));
        let commands = number("answers")?.max(1.0);
        Ok(CommandCost {
            per_second: commands / number("nanoseconds")? * 1e9,
            cpu_microseconds: cpu.as_secs_f64() * 1e6 / commands,
        })
    }

    pub(super) fn resident_bytes(&self) -> Result<u64> {
        self.server.resident_bytes()
    }

    /// Stops the server as a service manager does.
    pub(super) fn stop(self) -> Result<()> {
        self.server.terminate(STOP_TIME_MAX)
    }

    /// The result of the program of the clients in that role.
    fn run(&self, role: &str, words: &[&str], time_max: Duration) -> Result<Value> {
        let mut command = Command::new(self.of.clients);
        command.args([role, "--at", &self.server.at().to_string(), "--token", &self.token]);
        command.args(["--clusters", "1", "--clients", CLIENTS]);
        let mut child =
            command.args(words).stdout(Stdio::piped()).spawn().context("cannot run the clients")?;
        let line = wait(&mut child, time_max).with_context(|| format!("the clients failed: {role}"))?;
        serde_json::from_str(&line).context("no result")
    }
}

/// Polls once. The response has to be a document.
fn poll(at: SocketAddr) -> Result<()> {
    let mut stream = TcpStream::connect(at)?;
    stream.set_read_timeout(Some(GRACE))?;
    stream.write_all(POLL.as_bytes())?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    ensure!(response.contains("\"DocumentIncarnation\""), "not a document: {response}");
    Ok(())
}

/// The simulated VMs do not poll. Every client of the metadata endpoint is the same VM.
fn write_settings(directory: &Path) -> Result<PathBuf> {
    let (data, file) = (directory.join("data"), directory.join("serve.toml"));
    std::fs::create_dir(&data).context("cannot create the data directory")?;
    let settings = format!(
        "data_dir = '{}'\n[metadata]\nlisten = [{{ address = '127.0.0.1:0', machine = '{POLLING_MACHINE}' }}]\n\
         [api]\nlisten = '127.0.0.1:0'\nsocket = '{}'\n[driver]\nkind = 'simulated'\n",
        data.display(),
        directory.join(SOCKET).display()
    );
    std::fs::write(&file, settings).context("cannot write the settings")?;
    Ok(file)
}
