//! An agent of its own for each test: its settings, its memory, its log, and a file in which its hooks leave their traces.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use forewarn_testkit::command::run_with_input;
use forewarn_testkit::{CommandResult, TestDir, clean_command, wait_until};

/// Where an agent lives.
pub(crate) struct Place {
    directory: TestDir,
}

/// An agent that runs.
pub(crate) struct Running {
    child: Child,
    log: PathBuf,
}

impl Place {
    /// A place for an agent of that endpoint; `more` is added to its settings.
    pub(crate) fn new(endpoint: &str, more: &str) -> Self {
        let place = Self { directory: TestDir::new() };
        place.write_config(endpoint, more);
        place
    }

    /// Other settings, for an agent that is started or told after that. `DIR` in them is this place.
    pub(crate) fn write_config(&self, endpoint: &str, more: &str) {
        let mut text = format!("endpoint = \"{endpoint}\"\nstate = \"DIR/state.json\"\n");
        if !more.contains("listen =") {
            text.push_str("listen = \"127.0.0.1:0\"\n");
        }
        text.push_str(more);
        self.directory.configure("agent.toml", &text);
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.file(name)
    }

    /// A script that may be run.
    pub(crate) fn script(&self, name: &str, body: &str) {
        self.directory.script(name, body);
    }

    fn command(&self) -> Command {
        let mut command = clean_command(env!("CARGO_BIN_EXE_forewarn-agent"));
        command.arg("--config").arg(self.path("agent.toml"));
        command
    }

    /// Starts the agent.
    pub(crate) fn start(&self) -> Running {
        self.start_with(&["run"], &[])
    }

    pub(crate) fn start_with(&self, words: &[&str], variables: &[(&str, &str)]) -> Running {
        let log = self.path("log");
        let file = File::options().create(true).append(true).open(&log).unwrap();
        let mut command = self.command();
        command.args(words).envs(variables.iter().copied()).stdin(Stdio::null());
        let child = command.stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
        Running { child, log }
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, words: &[&str]) -> CommandResult {
        self.run_with(words, "")
    }

    pub(crate) fn run_with(&self, words: &[&str], input: &str) -> CommandResult {
        run_with_input(self.command().args(words), input)
    }

    /// What hooks have left, line by line.
    pub(crate) fn traces(&self) -> Vec<String> {
        let text = self.directory.read("traces");
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until hooks have left exactly that.
    pub(crate) fn expect(&self, traces: &[&str]) {
        wait_until(&format!("hooks leave {traces:?}"), || (self.traces() == traces).then_some(()));
    }

    /// What the agent has kept.
    pub(crate) fn memory(&self) -> Value {
        let text = self.directory.read("state.json");
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// What the event log tells of, in its words.
    pub(crate) fn told(&self) -> Vec<String> {
        let text = self.directory.read("events.jsonl");
        let what =
            |line: &str| serde_json::from_str::<Value>(line).unwrap()["what"].as_str().unwrap().to_owned();
        text.lines().map(what).collect()
    }
}

/// A hook that leaves a trace: its phase, and how often it was tried.
pub(crate) fn tracing_hook(name: &str, phase: &str) -> String {
    format!(
        "[[hook]]\nname = \"{name}\"\nphase = \"{phase}\"\n\
         command = [\"/bin/sh\", \"-c\", \"echo $FOREWARN_PHASE $FOREWARN_HOOK $FOREWARN_ATTEMPT >> DIR/traces\"]\n"
    )
}

impl Running {
    /// What it has said so far.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits until it has said that.
    pub(crate) fn hear(&self, wanted: &str) -> String {
        self.hear_times(wanted, 1)
    }

    pub(crate) fn hear_times(&self, wanted: &str, times: usize) -> String {
        wait_until(&format!("the agent says {wanted:?}"), || {
            let said = self.said();
            (said.matches(wanted).count() >= times).then_some(said)
        })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> String {
        let said = self.hear("status listener started");
        let line = said.lines().rfind(|line| line.contains("status listener started")).unwrap();
        line.split("address=").nth(1).unwrap().trim().to_owned()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// Ends it as nothing can end it politely.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Tells it to stop, and waits until it has.
    pub(crate) fn stop(self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.end()
    }

    pub(crate) fn end(mut self) -> ExitStatus {
        wait_until("the agent ends", || self.child.try_wait().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to end.
        self.child.kill().ok();
        self.child.wait().ok();
        if std::thread::panicking() {
            eprintln!("what the agent said:\n{}", self.said());
        }
    }
}

/// Whether a process of that number is there.
pub(crate) fn is_alive(pid: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.trim()).join("stat")).unwrap_or_default();
    !(stat.is_empty() || stat.contains(") Z "))
}
