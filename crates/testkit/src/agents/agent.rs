//! One agent: its directory, its process, and what it did.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::agents::AgentSettings;
use crate::network::Namespace;
use crate::wait_until;

/// What hooks run: it writes down why.
const NOTE: &str = "#!/bin/sh\necho \"$FOREWARN_PHASE $FOREWARN_HOOK $EVENT_TYPE\" >> \"$1\"\n";

/// Shared by all agents of a world.
const KEY: &[u8] = b"thirty-two bytes that nobody knows\n";

/// An agent, in the namespace of its machine.
pub struct Agent<'a> {
    pub name: String,
    program: PathBuf,
    directory: PathBuf,
    namespace: &'a Namespace,
    child: RefCell<Option<Child>>,
    waits_for_news: bool,
}

/// The agent that was built beside the server, or the one that `FOREWARN_AGENT_PROGRAM` names.
pub fn agent_program(server: &OsStr) -> PathBuf {
    let chosen = std::env::var_os("FOREWARN_AGENT_PROGRAM").map(PathBuf::from);
    let agent = chosen.unwrap_or_else(|| PathBuf::from(server).with_file_name("forewarn-agent"));
    assert!(agent.is_file(), "no agent: {}\n  hint: cargo build --package forewarn-agent", agent.display());
    agent
}

impl<'a> Agent<'a> {
    /// Writes down everything that the agent needs. It does not run yet.
    pub fn new(
        name: &str,
        program: PathBuf,
        parent: &Path,
        namespace: &'a Namespace,
        settings: &AgentSettings,
        peers: &[String],
    ) -> Self {
        let directory = parent.join(name);
        let text = directory.to_str().expect("a path that is text");
        fs::create_dir_all(directory.join("hooks")).unwrap();
        let agent = Self {
            name: name.to_owned(),
            program,
            directory: directory.clone(),
            namespace,
            child: RefCell::new(None),
            waits_for_news: settings.waits_for_news(),
        };
        agent.script("note", NOTE);
        fs::write(directory.join("key"), KEY).unwrap();
        fs::set_permissions(directory.join("key"), fs::Permissions::from_mode(0o600)).unwrap();
        let endpoint = format!("http://169.254.169.254/vm/{name}");
        fs::write(directory.join("agent.toml"), settings.text(text, &endpoint, peers)).unwrap();
        agent
    }

    /// Writes a program for hooks.
    pub fn script(&self, name: &str, text: &str) {
        let file = self.file(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text.replace("DIR", self.directory.to_str().unwrap())).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A file in its directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Makes an empty file.
    pub fn touch(&self, name: &str) {
        fs::write(self.file(name), "").unwrap();
    }

    pub fn has_file(&self, name: &str) {
        wait_until(&format!("{} has {name}", self.name), || self.file(name).exists().then_some(()));
    }

    pub fn start(&self) {
        self.start_with(&[]);
    }

    /// Starts it with further options.
    pub fn start_with(&self, words: &[&str]) {
        let log = OpenOptions::new().create(true).append(true).open(self.file("log")).unwrap();
        let mut command = self.namespace.command(&self.program);
        command
            .args(["run", "--config"])
            .arg(self.file("agent.toml"))
            .args(words)
            .current_dir(&self.directory);
        // Programs that stand in for those of the system.
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:/usr/sbin:/usr/bin:/sbin:/bin:{path}", self.file("bin").display()));
        for name in ["SCHEDULEDEVENTSIP", "NOTIFY_SOCKET", "JOURNAL_STREAM", "FOREWARN_AGENT_CONFIG"] {
            command.env_remove(name);
        }
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let child = command.spawn().expect("the agent starts");
        assert!(self.child.replace(Some(child)).is_none(), "{} runs already", self.name);
    }

    /// Ends it as a power cut would end it.
    pub fn kill(&self) {
        let mut child = self.child.take().expect("it runs");
        child.kill().expect("it runs until now");
        child.wait().unwrap();
    }

    /// Has it end by itself.
    pub fn stop(&self) {
        let mut child = self.child.take().expect("it runs");
        kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs until now");
        let status = wait_until("the agent ends", || child.try_wait().unwrap());
        assert!(status.success(), "{}: {status}\n{}", self.name, self.log());
    }

    pub fn runs(&self) -> bool {
        self.child.borrow_mut().as_mut().is_some_and(|child| child.try_wait().unwrap().is_none())
    }

    /// Whether it runs and is one that waits for news.
    pub fn waits_for_news(&self) -> bool {
        self.waits_for_news && self.runs()
    }

    /// What its hooks have written down, in order.
    pub fn did(&self) -> Vec<String> {
        let text = fs::read_to_string(self.file("did")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until a hook has been run.
    pub fn has_run(&self, line: &str) {
        let what = format!("{} has run {line:?}", self.name);
        wait_until(&what, || {
            assert!(self.runs() || self.child.borrow().is_none(), "{} has ended\n{}", self.name, self.log());
            self.did().iter().any(|did| did == line).then_some(())
        });
    }

    /// All of [`AgentSettings::draining`], once each: it was drained, and is back.
    pub fn did_everything_once(&self, kind: &str) {
        let all = ["scheduled drain", "started note-started", "completed note-completed", "undo drain"];
        assert_eq!(self.did(), all.map(|what| format!("{what} {kind}")));
    }

    /// Waits until it has kept that a hook is done: if it is killed before that, the hook is run again.
    pub fn has_kept(&self, phase: &str, hook: &str) {
        wait_until(&format!("{} has kept that {hook} is done", self.name), || {
            let memory: Value = serde_json::from_slice(&fs::read(self.file("state.json")).ok()?).ok()?;
            let cases = memory["memory"]["cases"].as_array()?;
            cases.iter().any(|case| case["runs"][phase][hook]["state"] == "done").then_some(())
        });
    }

    /// How often a hook has been run until now.
    pub fn times(&self, line: &str) -> usize {
        self.did().iter().filter(|did| *did == line).count()
    }

    /// What it has written into its event log, whole lines only.
    pub fn notes(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.file("events.jsonl")).unwrap_or_default();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
    }

    /// Waits for a note of that kind; gives it.
    pub fn has_noted(&self, what: &str) -> Value {
        wait_until(&format!("{} has noted {what}", self.name), || {
            self.notes().into_iter().find(|note| note["what"] == what)
        })
    }

    /// Waits for something in its log.
    pub fn has_said(&self, what: &str) {
        wait_until(&format!("{} has said {what:?}", self.name), || self.log().contains(what).then_some(()));
    }

    /// The status of what it serves at a path.
    pub fn status_of(&self, path: &str) -> String {
        self.namespace.shell(&format!(
            "curl --silent --output /dev/null --write-out '%{{http_code}}' http://127.0.0.1:9911{path} || true"
        ))
    }

    /// How often it has asked its peers how they are.
    pub fn peer_rounds(&self) -> u32 {
        let metrics = self.namespace.shell("curl --silent http://127.0.0.1:9911/metrics");
        let line = metrics.lines().find_map(|line| line.strip_prefix("forewarn_agent_peer_rounds_total "));
        line.expect("it counts").parse().expect("a number")
    }

    /// Waits until load balancers are told that.
    pub fn is_answered_ready(&self, status: &str) {
        wait_until(&format!("{}: /ready is {status}", self.name), || {
            (self.status_of("/ready") == status).then_some(())
        });
    }

    /// A command of the agent's, beside the running one; gives what it prints.
    pub fn run(&self, words: &[&str]) -> String {
        let mut command = self.namespace.command(&self.program);
        command.args(words).arg("--config").arg(self.file("agent.toml"));
        crate::command::stdout_of(&mut command)
    }

    pub fn namespace(&self) -> &Namespace {
        self.namespace
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.file("log")).unwrap_or_default()
    }
}

impl Drop for Agent<'_> {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended by itself; then there is nothing to end.
            child.kill().ok();
            child.wait().ok();
        }
        if std::thread::panicking() {
            eprintln!("what the agent of {} said:\n{}\nwhat it did: {:?}", self.name, self.log(), self.did());
        }
    }
}
