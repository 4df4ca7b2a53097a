//! A server whose data outlives it, and its clients.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;

use super::figures::Cost;
use crate::bench::hostile::find_address;
use crate::bench::metadata::forewarn::ADDRESSES;
use crate::bench::metadata::rounds::wait;
use crate::bench::metadata::server::{Server, Start};

const DATA: &str = "data";
const SOCKET: &str = "api.sock";
const MACHINE_SOCKET: &str = "machine.sock";
/// The extra time that a client may take.
const GRACE: Duration = Duration::from_secs(30);
const STOP_TIME_MAX: Duration = Duration::from_secs(120);
/// A poll by the first VM of the fleet.
const POLL: &str = "GET /metadata/scheduledevents?api-version=2020-07-01 HTTP/1.1\r\n\
                    Host: localhost\r\nMetadata: true\r\nConnection: close\r\n\r\n";
const POLLING_MACHINE: &str = "fleet/vm-0-0/vm-0-0";
/// Runs a program with as many file descriptors as it may have.
const WITH_DESCRIPTORS: &str = "ulimit -n \"$(ulimit -Hn)\" && exec \"$0\" \"$@\"";
/// The same with the lowest priority.
const WITH_LOW_PRIORITY: &str = "ulimit -n \"$(ulimit -Hn)\" && exec nice -n 19 \"$0\" \"$@\"";

/// The purpose of a server, which determines its limits of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    General,
    /// Few connections of operators leave file descriptors for many long polls.
    LongPolls,
}

/// The data of a server, and the programs.
pub(super) struct FleetServer<'a> {
    program: &'a Path,
    clients: &'a Path,
    directory: TempDir,
}

/// The server while it runs.
pub(super) struct RunningServer<'a> {
    server: Server,
    metadata: SocketAddr,
    of: &'a FleetServer<'a>,
    token: String,
}

/// A client that holds connections until it is dropped.
pub(super) struct Holder {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl<'a> FleetServer<'a> {
    pub(super) fn new(program: &'a Path, clients: &'a Path) -> Result<Self> {
        let directory = tempfile::tempdir().context("no temporary directory")?;
        std::fs::create_dir(directory.path().join(DATA)).context("cannot create the data directory")?;
        Ok(Self { program, clients, directory })
    }

    /// Starts the server for the first time, and creates a token and the clusters.
    pub(super) fn start(&self) -> Result<RunningServer<'_>> {
        let mut running = self.run(Purpose::General, String::new())?;
        let socket = self.directory.path().join(SOCKET);
        let socket = socket.to_str().context("not a name")?;
        let prepared = running.client("prepare", &["--socket", socket], GRACE)?;
        prepared["token"].as_str().context("no token")?.clone_into(&mut running.token);
        Ok(running)
    }

    /// Starts the server on its data, until it has answered a first poll.
    pub(super) fn restart(&self, purpose: Purpose, token: &str) -> Result<(RunningServer<'_>, Cost)> {
        let begin = Instant::now();
        let running = self.run(purpose, token.to_owned())?;
        poll(&self.directory.path().join(MACHINE_SOCKET))?;
        let cost = Cost { wall: begin.elapsed(), cpu: running.server.cpu_time()? };
        Ok((running, cost))
    }

    fn run(&self, purpose: Purpose, token: String) -> Result<RunningServer<'_>> {
        let directory = tempfile::tempdir().context("no temporary directory")?;
        let settings = write_settings(self.directory.path(), purpose)?;
        let mut command = shell(WITH_DESCRIPTORS, self.program);
        command.args(["serve", "--config"]).arg(settings);
        command.arg("--addresses-file").arg(directory.path().join(ADDRESSES));
        let start = Start { name: "forewarn", command, stop: None, directory };
        let server = start.run(|directory| find_address(directory, "api"))?;
        let metadata = find_address(server.directory(), "metadata").context("no metadata endpoint")?;
        Ok(RunningServer { server, metadata, of: self, token })
    }

    /// Bytes of the data.
    pub(super) fn data_bytes(&self) -> Result<u64> {
        let files = self.directory.path().join(DATA).read_dir()?.filter_map(Result::ok);
        Ok(files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum())
    }
}

impl RunningServer<'_> {
    /// The cost of some work for the server, and its result.
    pub(super) fn measure<T>(&self, work: impl FnOnce(&Self) -> Result<T>) -> Result<(T, Cost)> {
        let (begin, before) = (Instant::now(), self.server.cpu_time()?);
        let result = work(self)?;
        let cpu = self.server.cpu_time()?.saturating_sub(before);
        Ok((result, Cost { wall: begin.elapsed(), cpu }))
    }

    pub(super) fn resident_bytes(&self) -> Result<u64> {
        self.server.resident_bytes()
    }

    /// The token of the clients, for the next start.
    pub(super) fn token(&self) -> &str {
        &self.token
    }

    pub(super) fn process(&self) -> String {
        self.server.process().to_string()
    }

    /// Stops the server as a service manager does.
    pub(super) fn stop(self) -> Result<()> {
        self.server.terminate(STOP_TIME_MAX)
    }

    /// The result of the clients in that role.
    pub(super) fn client(&self, role: &str, words: &[&str], time: Duration) -> Result<Value> {
        let mut command = self.client_command(WITH_DESCRIPTORS, role, words);
        let mut child = command.stdout(Stdio::piped()).spawn().context("cannot run the clients")?;
        let line = wait(&mut child, time + GRACE).with_context(|| format!("the clients failed: {role}"))?;
        serde_json::from_str(&line).context("no result")
    }

    /// Starts clients that hold connections. They run on the computer of the server, which they should not slow down.
    pub(super) fn hold(&self, words: &[&str]) -> Result<Holder> {
        let mut command = self.client_command(WITH_LOW_PRIORITY, "hold", words);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let output = BufReader::new(child.stdout.take().context("no output")?);
        let input = child.stdin.take();
        Ok(Holder { child, input, output })
    }

    fn client_command(&self, script: &str, role: &str, words: &[&str]) -> Command {
        let mut command = shell(script, self.of.clients);
        command.args([role, "--at", &self.server.at().to_string()]);
        command.args(["--metadata", &self.metadata.to_string(), "--token", &self.token]).args(words);
        command
    }
}

impl Holder {
    /// Waits until the next step is done.
    pub(super) fn wait(&mut self) -> Result<()> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        ensure!(line.starts_with('{'), "the connections are not held");
        Ok(())
    }

    /// Lets the next step begin.
    pub(super) fn go_on(&mut self) -> Result<()> {
        self.input.as_mut().context("no input")?.write_all(b"\n").context("the clients have ended")
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // It ends with its input, or has ended already.
        drop(self.input.take());
        self.child.wait().ok();
    }
}

fn shell(script: &str, program: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(program);
    command
}

/// Polls once. The response has to be a document.
fn poll(socket: &Path) -> Result<()> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(GRACE))?;
    stream.write_all(POLL.as_bytes())?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    ensure!(response.contains("\"DocumentIncarnation\""), "not a document: {response}");
    Ok(())
}

/// The simulated VMs do not poll. One VM is polled for over a socket, the others have addresses.
fn write_settings(directory: &Path, purpose: Purpose) -> Result<PathBuf> {
    let file = directory.join("serve.toml");
    let connections = match purpose {
        Purpose::General => "",
        Purpose::LongPolls => {
            "[metadata.connection]\nmax = 18500\n[api.connection]\nmax = 200\nper_token = 150\n\
             [arm.connection]\nmax = 200\nper_token = 150\n"
        }
    };
    let [data, socket, machine_socket] = [DATA, SOCKET, MACHINE_SOCKET].map(|name| directory.join(name));
    let settings = format!(
        "data_dir = '{}'\n[metadata]\nlisten = [{{ address = '127.0.0.1:0', cluster = 'fleet' }}, \
         {{ socket = '{}', machine = '{POLLING_MACHINE}' }}]\n\
         [metadata.limits]\nrequests_per_second = 100000\nburst = 100000\n\
         [api]\nlisten = '127.0.0.1:0'\nsocket = '{}'\n[arm]\nlisten = '127.0.0.1:0'\n[driver]\nkind = 'simulated'\n{connections}",
        data.display(),
        machine_socket.display(),
        socket.display(),
    );
    std::fs::write(&file, settings).context("cannot write the settings")?;
    Ok(file)
}
