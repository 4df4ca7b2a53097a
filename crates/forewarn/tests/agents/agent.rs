//! One agent: its directory, its process, and what it did.

use std::cell::RefCell;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::harness::network::Namespace;
use crate::harness::server::program;
use crate::harness::until;
use crate::settings::Settings;

/// What hooks run: it writes down why.
const NOTE: &str = "#!/bin/sh\necho \"$FOREWARN_PHASE $FOREWARN_HOOK $EVENT_TYPE\" >> \"$1\"\n";

/// Shared by all agents of a world.
const KEY: &[u8] = b"thirty-two bytes that nobody knows\n";

/// An agent, in the namespace of its machine.
pub(crate) struct Agent<'a> {
    pub(crate) name: String,
    directory: PathBuf,
    namespace: &'a Namespace,
    child: RefCell<Option<Child>>,
    waits_for_news: bool,
}

/// The agent that was built beside the server, or one that was installed somewhere.
pub(crate) fn agent_program() -> PathBuf {
    let chosen = std::env::var_os("FOREWARN_AGENT_PROGRAM").map(PathBuf::from);
    let agent = chosen.unwrap_or_else(|| PathBuf::from(program()).with_file_name("forewarn-agent"));
    assert!(agent.is_file(), "no agent: {}\n  hint: cargo build --package forewarn-agent", agent.display());
    agent
}

impl<'a> Agent<'a> {
    /// Writes down everything that the agent needs. It does not run yet.
    pub(crate) fn new(
        name: &str,
        parent: &Path,
        namespace: &'a Namespace,
        settings: &Settings,
        peers: &[String],
    ) -> Self {
        let directory = parent.join(name);
        let text = directory.to_str().expect("a path that is text");
        fs::create_dir_all(directory.join("hooks")).unwrap();
        let agent = Self {
            name: name.to_owned(),
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
    pub(crate) fn script(&self, name: &str, text: &str) {
        let file = self.file(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text.replace("DIR", self.directory.to_str().unwrap())).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A file in its directory.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Makes an empty file.
    pub(crate) fn touch(&self, name: &str) {
        fs::write(self.file(name), "").unwrap();
    }

    pub(crate) fn has_file(&self, name: &str) {
        until(&format!("{} has {name}", self.name), || self.file(name).exists().then_some(()));
    }

    pub(crate) fn start(&self) {
        self.start_with(&[]);
    }

    /// Starts it with further options.
    pub(crate) fn start_with(&self, words: &[&str]) {
        let log = OpenOptions::new().create(true).append(true).open(self.file("log")).unwrap();
        let mut command = self.namespace.command(agent_program());
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
    pub(crate) fn kill(&self) {
        let mut child = self.child.take().expect("it runs");
        child.kill().expect("it runs until now");
        child.wait().unwrap();
    }

    /// Has it end by itself.
    pub(crate) fn stop(&self) {
        let mut child = self.child.take().expect("it runs");
        kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs until now");
        let status = until("the agent ends", || child.try_wait().unwrap());
        assert!(status.success(), "{}: {status}\n{}", self.name, self.log());
    }

    pub(crate) fn runs(&self) -> bool {
        self.child.borrow_mut().as_mut().is_some_and(|child| child.try_wait().unwrap().is_none())
    }

    /// Whether it runs and is one that waits for news.
    pub(crate) fn waits_for_news(&self) -> bool {
        self.waits_for_news && self.runs()
    }

    /// What its hooks have written down, in order.
    pub(crate) fn did(&self) -> Vec<String> {
        let text = fs::read_to_string(self.file("did")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until a hook has been run.
    pub(crate) fn has_run(&self, line: &str) {
        let what = format!("{} has run {line:?}", self.name);
        until(&what, || {
            assert!(self.runs() || self.child.borrow().is_none(), "{} has ended\n{}", self.name, self.log());
            self.did().iter().any(|did| did == line).then_some(())
        });
    }

    /// All of [`Settings::draining`](crate::settings::Settings::draining), once each: it was drained, and is back.
    pub(crate) fn did_everything_once(&self, kind: &str) {
        let all = ["scheduled drain", "started note-started", "completed note-completed", "undo drain"];
        assert_eq!(self.did(), all.map(|what| format!("{what} {kind}")));
    }

    /// Waits until it has kept that a hook is done: if it is killed before that, the hook is run again.
    pub(crate) fn has_kept(&self, phase: &str, hook: &str) {
        until(&format!("{} has kept that {hook} is done", self.name), || {
            let memory: Value = serde_json::from_slice(&fs::read(self.file("state.json")).ok()?).ok()?;
            let cases = memory["memory"]["cases"].as_array()?;
            cases.iter().any(|case| case["runs"][phase][hook]["state"] == "done").then_some(())
        });
    }

    /// How often a hook has been run until now.
    pub(crate) fn times(&self, line: &str) -> usize {
        self.did().iter().filter(|did| *did == line).count()
    }

    /// What it has written into its event log, whole lines only.
    pub(crate) fn notes(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.file("events.jsonl")).unwrap_or_default();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
    }

    /// Waits for a note of that kind; gives it.
    pub(crate) fn has_noted(&self, what: &str) -> Value {
        until(&format!("{} has noted {what}", self.name), || {
            self.notes().into_iter().find(|note| note["what"] == what)
        })
    }

    /// Waits for something in its log.
    pub(crate) fn has_said(&self, what: &str) {
        until(&format!("{} has said {what:?}", self.name), || self.log().contains(what).then_some(()));
    }

    /// The status of what it serves at a path.
    pub(crate) fn status_of(&self, path: &str) -> String {
        self.namespace.shell(&format!(
            "curl --silent --output /dev/null --write-out '%{{http_code}}' http://127.0.0.1:9911{path} || true"
        ))
    }

    /// How often it has asked its peers how they are.
    pub(crate) fn peer_rounds(&self) -> u32 {
        let metrics = self.namespace.shell("curl --silent http://127.0.0.1:9911/metrics");
        let line = metrics.lines().find_map(|line| line.strip_prefix("forewarn_agent_peer_rounds_total "));
        line.expect("it counts").parse().expect("a number")
    }

    /// Waits until load balancers are told that.
    pub(crate) fn is_answered_ready(&self, status: &str) {
        until(&format!("{}: /ready is {status}", self.name), || {
            (self.status_of("/ready") == status).then_some(())
        });
    }

    /// A command of the agent's, beside the running one; gives what it prints.
    pub(crate) fn run(&self, words: &[&str]) -> String {
        let mut command = self.namespace.command(agent_program());
        command.args(words).arg("--config").arg(self.file("agent.toml"));
        crate::harness::network::run(&mut command)
    }

    pub(crate) fn namespace(&self) -> &Namespace {
        self.namespace
    }

    pub(crate) fn log(&self) -> String {
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
