//! An agent of its own for each test: its settings, its memory, its log, and a file in which its hooks leave their traces.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::harness::until;

/// Where an agent lives.
pub(crate) struct Place {
    directory: TempDir,
}

/// An agent that runs.
pub(crate) struct Running {
    child: Child,
    log: PathBuf,
}

/// What came of a command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Place {
    /// A place for an agent of that endpoint; `more` is added to its settings.
    pub(crate) fn new(endpoint: &str, more: &str) -> Self {
        let place = Self { directory: TempDir::new().unwrap() };
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
        let text = text.replace("DIR", self.directory.path().to_str().unwrap());
        fs::write(self.path("agent.toml"), text).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A script that may be run.
    pub(crate) fn script(&self, name: &str, body: &str) {
        use std::os::unix::fs::OpenOptionsExt;
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file =
            fs::OpenOptions::new().create(true).truncate(true).write(true).mode(0o755).open(path).unwrap();
        let body = body.replace("DIR", self.directory.path().to_str().unwrap());
        file.write_all(format!("#!/bin/sh\n{body}\n").as_bytes()).unwrap();
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_forewarn-agent"));
        command.arg("--config").arg(self.path("agent.toml")).env("NO_COLOR", "1");
        for variable in ["SCHEDULEDEVENTSIP", "FOREWARN_AGENT_CONFIG", "NOTIFY_SOCKET", "JOURNAL_STREAM"] {
            command.env_remove(variable);
        }
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
    pub(crate) fn run(&self, words: &[&str]) -> Ran {
        self.run_with(words, "")
    }

    pub(crate) fn run_with(&self, words: &[&str], input: &str) -> Ran {
        let mut command = self.command();
        let command = command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // It need not read what it is given.
        child.stdin.take().unwrap().write_all(input.as_bytes()).ok();
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// What hooks have left, line by line.
    pub(crate) fn traces(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("traces")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until hooks have left exactly that.
    pub(crate) fn expect(&self, traces: &[&str]) {
        until(&format!("hooks leave {traces:?}"), || (self.traces() == traces).then_some(()));
    }

    /// What the agent has kept.
    pub(crate) fn memory(&self) -> Value {
        let text = fs::read_to_string(self.path("state.json")).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// What the event log tells of, in its words.
    pub(crate) fn told(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("events.jsonl")).unwrap_or_default();
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
        until(&format!("the agent says {wanted:?}"), || {
            let said = self.said();
            (said.matches(wanted).count() >= times).then_some(said)
        })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> String {
        let said = self.hear("the agent tells how it is");
        let line = said.lines().rfind(|line| line.contains("the agent tells how it is")).unwrap();
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
        until("the agent ends", || self.child.try_wait().unwrap())
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
