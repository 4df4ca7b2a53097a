//! The program itself, started for one test and ended with it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::raw_http::{NEWEST, RawConnection, RawResponse, get, post};
use crate::{TestDir, clean_command, wait_until};

/// `forewarn dev` with the fleet that it brings along, on a clock that stands still.
pub struct TestServer {
    child: Child,
    /// For the commands of operators.
    program: OsString,
    directory: TestDir,
    metadata: SocketAddr,
    api: String,
    arm: Option<SocketAddr>,
    /// The network namespace from which operators can reach it, if it is not that of the tests.
    namespace: Option<String>,
}

/// What the clock of `dev` shows unless a test wants something else.
const START: &str = "2026-01-01T00:00:00Z";

impl TestServer {
    pub fn start(program: OsString) -> Self {
        Self::start_with(program, &[])
    }

    pub fn start_with(program: OsString, more: &[&str]) -> Self {
        Self::start_at(program, START, more)
    }

    /// Starts with a clock that shows that moment.
    pub fn start_at(program: OsString, moment: &str, more: &[&str]) -> Self {
        let mut command = clean_command(&program);
        dev(&mut command, more);
        command.args(["--clock", "frozen", "--clock-start", moment, "--seed", "7"]);
        Self::spawn(program, command)
    }

    /// Starts a command that takes `--addresses-file`, and waits until it listens.
    pub fn spawn(program: OsString, mut command: Command) -> Self {
        let directory = TestDir::new();
        let addresses = directory.file("addresses.json");
        let log = File::create(directory.file("log")).unwrap();
        command.arg("--addresses-file").arg(&addresses);
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let mut child = command.spawn().expect("the program starts");
        let addresses: Value = wait_until("the program listens", || {
            if let Some(status) = child.try_wait().unwrap() {
                panic!("the program has ended: {status}\n{}", directory.read("log"));
            }
            Some(serde_json::from_str(&fs::read_to_string(&addresses).ok()?).expect("addresses are JSON"))
        });
        let metadata = addresses["metadata"].as_str().and_then(|url| url.strip_prefix("http://"));
        let metadata = metadata.expect("an address").parse().unwrap();
        let api = addresses["api"].as_str().expect("an address").to_owned();
        let arm = addresses["arm"].as_str().and_then(|url| url.strip_prefix("https://"));
        let arm = arm.map(|address| address.parse().expect("an address"));
        Self { child, program, directory, metadata, api, arm, namespace: None }
    }

    /// It runs in a network namespace: so do commands of operators.
    pub fn inside(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Ends it as a power cut would end it, as far as a process can tell.
    pub fn kill(mut self) {
        self.child.kill().expect("it runs until now");
        self.child.wait().unwrap();
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// Waits until it has ended by itself.
    pub fn end(mut self) -> ExitStatus {
        wait_until("the program ends", || self.child.try_wait().unwrap())
    }

    /// The number of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Where operators ask, where that is an address.
    pub fn api(&self) -> SocketAddr {
        let address = self.api.strip_prefix("http://").expect("an address");
        address.parse().expect("an address")
    }

    /// Where clients of Azure ask, with TLS.
    pub fn arm(&self) -> SocketAddr {
        self.arm.expect("a listener for clients of Azure")
    }

    /// Where operators ask, whatever it is.
    pub fn api_url(&self) -> &str {
        &self.api
    }

    /// The port of operators.
    pub fn api_port(&self) -> u16 {
        self.api.rsplit_once(':').unwrap().1.parse().unwrap()
    }

    pub fn metadata_url(&self) -> String {
        format!("http://{}", self.metadata)
    }

    /// The first token, from the file that a server names when it starts on an empty directory.
    pub fn key(&self) -> String {
        fs::read_to_string(self.key_file()).unwrap().trim_end().to_owned()
    }

    /// The file with the first token.
    pub fn key_file(&self) -> String {
        wait_until("the server names the file of its first token", || {
            let log = self.log();
            let mut words = log.split([' ', '"', '\n']);
            words.find(|word| word.ends_with("first.token")).map(str::to_owned)
        })
    }

    /// Has it read its settings again, and waits until it has.
    pub fn reload(&self) {
        let count = || self.log().matches("reloaded").count();
        let before = count();
        self.signal(Signal::HUP);
        wait_until("the settings are read again", || (count() != before).then_some(()));
    }

    /// Where machines ask.
    pub fn metadata(&self) -> SocketAddr {
        self.metadata
    }

    /// A directory that goes with the server.
    pub fn dir(&self) -> &TestDir {
        &self.directory
    }

    /// Its standard output and its log.
    pub fn log(&self) -> String {
        self.directory.read("log")
    }

    /// Waits until it has printed or logged that.
    pub fn wait_for_log(&self, wanted: &str) {
        wait_until(wanted, || self.log().contains(wanted).then_some(()));
    }

    pub fn connect(&self) -> RawConnection {
        RawConnection::connect(self.metadata)
    }

    /// Sends bytes over a connection of their own; gives the one answer to them.
    pub fn say(&self, bytes: &str) -> RawResponse {
        let mut line = self.connect();
        line.send(bytes);
        line.answer()
    }

    /// What a machine gets at a target.
    pub fn get(&self, machine: &str, target: &str) -> RawResponse {
        self.say(&get(&format!("/vm/{machine}{target}")))
    }

    /// What a machine is answered when it approves.
    pub fn post(&self, machine: &str, body: &str) -> RawResponse {
        self.say(&post(&format!("/vm/{machine}{NEWEST}"), body))
    }

    /// The document that a machine reads.
    pub fn document(&self, machine: &str) -> Value {
        let answer = self.get(machine, NEWEST);
        assert_eq!(answer.status(), 200, "{answer:?}");
        serde_json::from_str(&answer.body).expect("a document is JSON")
    }

    /// The ids of the events that a machine sees.
    pub fn ids(&self, machine: &str) -> Vec<String> {
        let document = self.document(machine);
        let events = document["Events"].as_array().expect("a list").iter();
        events.map(|event| event["EventId"].as_str().expect("an id").to_owned()).collect()
    }

    /// `Scheduled`, `Started` or `gone`: where the first event that a machine sees stands.
    pub fn status(&self, machine: &str) -> String {
        self.document(machine)["Events"][0]["EventStatus"].as_str().unwrap_or("gone").to_owned()
    }

    /// Enables Scheduled Events for the tenants of these machines.
    pub fn enrol(&self, machines: &[&str]) {
        for machine in machines {
            self.document(machine);
        }
    }

    /// A command of the operator's, which has to succeed. Gives what it prints.
    pub fn run(&self, words: &[&str]) -> String {
        let output = self.try_run(words);
        let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{words:?} failed: {err}\n{out}");
        out
    }

    /// A command of an operator, ready to run.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = match &self.namespace {
            None => clean_command(&self.program),
            Some(namespace) => {
                let mut command = clean_command("ip");
                command.args(["netns", "exec", namespace]).arg(&self.program);
                command
            }
        };
        command.args(["--api", &self.api]).args(words);
        command
    }

    pub fn try_run(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("the program starts")
    }

    /// What a command prints with `--output json`.
    pub fn json(&self, words: &[&str]) -> Value {
        let printed = self.run(&[words, &["--output", "json"]].concat());
        serde_json::from_str(&printed).unwrap_or_else(|problem| panic!("{words:?}: {problem}: {printed}"))
    }

    /// The same of a command that may fail.
    pub fn json_of(&self, words: &[&str]) -> Value {
        let output = self.try_run(&[words, &["--output", "json"]].concat());
        serde_json::from_slice(&output.stdout).unwrap_or_else(|problem| panic!("{words:?}: {problem}"))
    }

    /// Restarts a machine of an enrolled tenant; gives the id of the event.
    pub fn restart(&self, machine: &str) -> String {
        let before = self.ids(machine);
        self.run(&["vm", "restart", machine]);
        let mut new = self.ids(machine);
        new.retain(|id| !before.contains(id));
        assert_eq!(new.len(), 1, "a restart makes one event");
        new.remove(0)
    }

    pub fn advance(&self, span: &str) {
        self.run(&["clock", "advance", span]);
    }

    /// The host that carries a machine.
    pub fn host_of(&self, machine: &str) -> String {
        let shown = self.json(&["vm", "show", machine]);
        shown["host"].as_str().unwrap_or_else(|| panic!("no host: {shown}")).to_owned()
    }
}

/// The words of `forewarn dev` on ports of its own. Without further words it has no listener for clients of Azure.
pub fn dev(command: &mut Command, more: &[&str]) {
    command.args(["dev", "--metadata-listen", "127.0.0.1:0", "--api-listen", "127.0.0.1:0"]);
    if !more.contains(&"--arm-listen") {
        command.args(["--arm-listen", "off"]);
    }
    command.args(more);
}

impl Drop for TestServer {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to end.
        self.child.kill().ok();
        self.child.wait().ok();
        if std::thread::panicking() {
            eprintln!("what the program said:\n{}", self.log());
        }
    }
}
