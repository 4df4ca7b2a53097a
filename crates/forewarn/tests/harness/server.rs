//! The program itself, started for one test and ended with it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use super::http::{Answer, Line, NEWEST, get, post};
use super::until;

/// `forewarn dev` with the fleet that it brings along, on a clock that stands still.
pub(crate) struct Server {
    child: Child,
    directory: TempDir,
    metadata: SocketAddr,
    api: String,
    arm: Option<SocketAddr>,
    /// The network namespace from which operators can reach it, if it is not that of the tests.
    namespace: Option<String>,
}

/// The program that is tested: the one that was built, or one that was installed somewhere. Tests of the agent find it beside
/// the agent.
pub(crate) fn program() -> OsString {
    if let Some(installed) = std::env::var_os("FOREWARN_PROGRAM") {
        return installed;
    }
    if let Some(built) = option_env!("CARGO_BIN_EXE_forewarn") {
        return built.into();
    }
    let beside = Path::new(option_env!("CARGO_BIN_EXE_forewarn-agent").unwrap_or_default());
    let beside = beside.with_file_name("forewarn");
    assert!(beside.exists(), "it is not built: {}\n  hint: cargo build --package forewarn", beside.display());
    beside.into()
}

/// What the clock of `dev` shows unless a test wants something else.
const START: &str = "2026-01-01T00:00:00Z";

impl Server {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    pub(crate) fn start_with(more: &[&str]) -> Self {
        Self::start_at(START, more)
    }

    /// Starts with a clock that shows that moment.
    pub(crate) fn start_at(moment: &str, more: &[&str]) -> Self {
        let mut command = Command::new(program());
        command.args(["dev", "--metadata-listen", "127.0.0.1:0", "--api-listen", "127.0.0.1:0"]);
        if !more.contains(&"--arm-listen") {
            command.args(["--arm-listen", "off"]);
        }
        command.args(["--clock", "frozen", "--clock-start", moment, "--seed", "7"]).args(more);
        Self::spawn(command)
    }

    /// Starts a command that takes `--addresses-file`, and waits until it listens.
    pub(crate) fn spawn(mut command: Command) -> Self {
        let directory = TempDir::new().unwrap();
        let addresses = directory.path().join("addresses.json");
        let log = File::create(directory.path().join("log")).unwrap();
        command.arg("--addresses-file").arg(&addresses);
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let mut child = command.spawn().expect("the program starts");
        let addresses: Value = until("the program listens", || {
            if let Some(status) = child.try_wait().unwrap() {
                panic!("the program has ended: {status}\n{}", log_in(directory.path()));
            }
            Some(serde_json::from_str(&fs::read_to_string(&addresses).ok()?).expect("addresses are JSON"))
        });
        let metadata = addresses["metadata"].as_str().and_then(|url| url.strip_prefix("http://"));
        let metadata = metadata.expect("an address").parse().unwrap();
        let api = addresses["api"].as_str().expect("an address").to_owned();
        let arm = addresses["arm"].as_str().and_then(|url| url.strip_prefix("https://"));
        let arm = arm.map(|address| address.parse().expect("an address"));
        Self { child, directory, metadata, api, arm, namespace: None }
    }

    /// It runs in a network namespace: so do commands of operators.
    pub(crate) fn inside(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Ends it as a power cut would end it, as far as a process can tell.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it runs until now");
        self.child.wait().unwrap();
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// Waits until it has ended by itself.
    pub(crate) fn end(mut self) -> ExitStatus {
        until("the program ends", || self.child.try_wait().unwrap())
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Where operators ask, where that is an address.
    pub(crate) fn api(&self) -> SocketAddr {
        let address = self.api.strip_prefix("http://").expect("an address");
        address.parse().expect("an address")
    }

    /// Where clients of Azure ask, with TLS.
    pub(crate) fn arm(&self) -> SocketAddr {
        self.arm.expect("a listener for clients of Azure")
    }

    /// Where operators ask, whatever it is.
    pub(crate) fn api_url(&self) -> &str {
        &self.api
    }

    /// Where machines ask.
    pub(crate) fn metadata(&self) -> SocketAddr {
        self.metadata
    }

    /// What it has logged.
    pub(crate) fn log(&self) -> String {
        log_in(self.directory.path())
    }

    pub(crate) fn connect(&self) -> Line {
        Line::to(self.metadata)
    }

    /// Sends bytes over a connection of their own; gives the one answer to them.
    pub(crate) fn say(&self, bytes: &str) -> Answer {
        let mut line = self.connect();
        line.send(bytes);
        line.answer()
    }

    /// What a machine gets at a target.
    pub(crate) fn get(&self, machine: &str, target: &str) -> Answer {
        self.say(&get(&format!("/vm/{machine}{target}")))
    }

    /// What a machine is answered when it approves.
    pub(crate) fn post(&self, machine: &str, body: &str) -> Answer {
        self.say(&post(&format!("/vm/{machine}{NEWEST}"), body))
    }

    /// The document that a machine reads.
    pub(crate) fn document(&self, machine: &str) -> Value {
        let answer = self.get(machine, NEWEST);
        assert_eq!(answer.status(), 200, "{answer:?}");
        serde_json::from_str(&answer.body).expect("a document is JSON")
    }

    /// The ids of the events that a machine sees.
    pub(crate) fn ids(&self, machine: &str) -> Vec<String> {
        let document = self.document(machine);
        let events = document["Events"].as_array().expect("a list").iter();
        events.map(|event| event["EventId"].as_str().expect("an id").to_owned()).collect()
    }

    /// `Scheduled`, `Started` or `gone`: where the first event that a machine sees stands.
    pub(crate) fn status(&self, machine: &str) -> String {
        self.document(machine)["Events"][0]["EventStatus"].as_str().unwrap_or("gone").to_owned()
    }

    /// Enables Scheduled Events for the tenants of these machines.
    pub(crate) fn enrol(&self, machines: &[&str]) {
        for machine in machines {
            self.document(machine);
        }
    }

    /// A command of the operator's, which has to succeed. Gives what it prints.
    pub(crate) fn run(&self, words: &[&str]) -> String {
        let output = self.try_run(words);
        let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{words:?} failed: {err}\n{out}");
        out
    }

    pub(crate) fn try_run(&self, words: &[&str]) -> Output {
        let mut command = match &self.namespace {
            None => Command::new(program()),
            Some(namespace) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", namespace]).arg(program());
                command
            }
        };
        command.args(["--api", &self.api]).args(words).stdin(Stdio::null());
        command.output().expect("the program starts")
    }

    /// What a command prints with `--output json`.
    pub(crate) fn json(&self, words: &[&str]) -> Value {
        let printed = self.run(&[words, &["--output", "json"]].concat());
        serde_json::from_str(&printed).unwrap_or_else(|problem| panic!("{words:?}: {problem}: {printed}"))
    }

    /// The same of a command that may fail.
    pub(crate) fn json_of(&self, words: &[&str]) -> Value {
        let output = self.try_run(&[words, &["--output", "json"]].concat());
        serde_json::from_slice(&output.stdout).unwrap_or_else(|problem| panic!("{words:?}: {problem}"))
    }

    /// Restarts a machine of an enrolled tenant; gives the id of the event.
    pub(crate) fn restart(&self, machine: &str) -> String {
        let before = self.ids(machine);
        self.run(&["vm", "restart", machine]);
        let mut new = self.ids(machine);
        new.retain(|id| !before.contains(id));
        assert_eq!(new.len(), 1, "a restart makes one event");
        new.remove(0)
    }

    pub(crate) fn advance(&self, span: &str) {
        self.run(&["clock", "advance", span]);
    }

    /// The host that carries a machine.
    pub(crate) fn host_of(&self, machine: &str) -> String {
        let shown = self.json(&["vm", "show", machine]);
        shown["host"].as_str().unwrap_or_else(|| panic!("no host: {shown}")).to_owned()
    }
}

fn log_in(directory: &Path) -> String {
    fs::read_to_string(directory.join("log")).unwrap_or_default()
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to end.
        self.child.kill().ok();
        self.child.wait().ok();
        if std::thread::panicking() {
            eprintln!("what the program said:\n{}", log_in(self.directory.path()));
        }
    }
}
