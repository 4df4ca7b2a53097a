//! The program itself: once as a server, and again for every command.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::patience::{PATIENCE, until};

/// `forewarn dev` with its demo fleet, on a clock that stands still.
pub(crate) struct Server {
    process: Child,
    directory: TempDir,
    pub(crate) api: String,
    pub(crate) metadata: String,
}

/// What came of a command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// A command that runs until it is ended.
pub(crate) struct Running {
    process: Child,
    lines: Receiver<String>,
    /// What it says besides, and what of that has been looked at.
    said: Receiver<String>,
    heard: String,
}

fn forewarn() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forewarn"));
    command.env_remove("FOREWARN_API").env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

/// Runs a command that asks no server, or asks for one that is not there.
pub(crate) fn alone(words: &str) -> Ran {
    finish(forewarn().args(words.split_whitespace()), "")
}

/// Runs a line of a shell in which the program is called `forewarn`, and asks that server.
pub(crate) fn shell(server: &Server, line: &str) -> Ran {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_forewarn"));
    let place = program.parent().expect("a program is in a directory").display().to_string();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("sh");
    command.args(["-c", line]).env("PATH", format!("{place}:{path}")).env("FOREWARN_API", &server.api);
    finish(&mut command, "")
}

fn finish(command: &mut Command, input: &str) -> Ran {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().expect("the program starts");
    process.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("the program reads");
    let output = process.wait_with_output().expect("the program ends");
    let text = |bytes| String::from_utf8(bytes).expect("the program writes text");
    Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::start_with("")
    }

    /// Starts with more words on its line.
    pub(crate) fn start_with(more: &str) -> Self {
        let directory = TempDir::new().unwrap();
        let addresses = directory.path().join("addresses.json");
        let mut command = forewarn();
        command.args(["dev", "--metadata-listen", "127.0.0.1:0", "--api-listen", "127.0.0.1:0"]);
        command.args(["--arm-listen", "off"]);
        command.args(["--clock", "frozen", "--clock-start", "2026-01-01T00:00:00Z", "--seed", "7"]);
        command.args(more.split_whitespace()).arg("--addresses-file").arg(&addresses);
        let log = File::create(directory.path().join("log")).unwrap();
        let process = command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        until("the server starts", || addresses.exists().then_some(()));
        let addresses: Value = serde_json::from_str(&fs::read_to_string(addresses).unwrap()).unwrap();
        let address = |of: &str| addresses[of].as_str().unwrap().to_owned();
        Self { process, directory, api: address("api"), metadata: address("metadata") }
    }

    /// What it has said, once it is ready.
    pub(crate) fn said(&self) -> String {
        until("the server says what it serves", || {
            let said = fs::read_to_string(self.directory.path().join("log")).unwrap();
            (said.contains("Ctrl-C") && said.ends_with('\n')).then_some(said)
        })
    }

    /// A file in a directory that goes with the server.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn run(&self, words: &str) -> Ran {
        self.run_with(words, "")
    }

    /// Runs a command that reads something.
    pub(crate) fn run_with(&self, words: &str, input: &str) -> Ran {
        finish(forewarn().args(words.split_whitespace()).env("FOREWARN_API", &self.api), input)
    }

    /// What a command prints that has to succeed.
    pub(crate) fn out(&self, words: &str) -> String {
        let ran = self.run(words);
        assert_eq!(ran.code, Some(0), "{words}: {ran:?}");
        ran.out
    }

    /// What a command prints as JSON, and nothing besides.
    pub(crate) fn json(&self, words: &str) -> Value {
        let out = self.out(&format!("{words} --output json"));
        serde_json::from_str(&out).unwrap_or_else(|problem| panic!("{words}: {problem}: {out}"))
    }

    /// Makes the tenant of a machine be told of events from now on.
    pub(crate) fn enrol(&self, machine: &str) {
        let place = format!("{}/vm/{machine}/metadata/scheduledevents", self.metadata);
        curl(&format!("curl -H Metadata:true '{place}?api-version=2020-07-01'"));
    }

    pub(crate) fn begin(&self, words: &str) -> Running {
        let mut command = forewarn();
        command.args(words.split_whitespace()).env("FOREWARN_API", &self.api);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = lines_of(process.stdout.take().unwrap());
        let said = lines_of(process.stderr.take().unwrap());
        Running { process, lines, said, heard: String::new() }
    }
}

/// What comes out of a pipe, line by line. It ends with the process, or when nobody wants more of it.
fn lines_of(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    let pipe = BufReader::new(pipe);
    std::thread::spawn(move || pipe.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    lines
}

/// Runs the request that is proposed in a text; gives the answer.
pub(crate) fn curl(text: &str) -> Value {
    let command = text.lines().find_map(|line| line.find("curl ").map(|at| &line[at..]));
    let command = command.unwrap_or_else(|| panic!("no request in: {text}"));
    let ran = finish(Command::new("sh").args(["-c", &command.replacen("curl", "curl -sS", 1)]), "");
    serde_json::from_str(&ran.out).unwrap_or_else(|problem| panic!("{command}: {problem}: {ran:?}"))
}

impl Running {
    /// The next line that it prints.
    pub(crate) fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("another line")
    }

    /// The next line that it prints, if that is soon.
    pub(crate) fn line_soon(&self) -> Option<String> {
        self.lines.recv_timeout(Duration::from_millis(100)).ok()
    }

    /// Waits until it has said that on standard error.
    pub(crate) fn hear(&mut self, wanted: &str) {
        while !self.heard.contains(wanted) {
            self.heard += &(self.said.recv_timeout(PATIENCE).expect("another word") + "\n");
        }
    }

    pub(crate) fn is_over(&mut self) -> bool {
        self.process.try_wait().unwrap().is_some()
    }

    /// Ends it as Ctrl-C does; gives its exit code.
    pub(crate) fn interrupt(mut self) -> Option<i32> {
        let number = self.process.id().to_string();
        assert!(Command::new("kill").args(["-INT", &number]).status().unwrap().success());
        self.process.wait().unwrap().code()
    }

    /// Waits until it ends.
    pub(crate) fn end(mut self) -> Ran {
        let code = self.process.wait().unwrap().code();
        let rest = |lines: &Receiver<String>| lines.iter().map(|line| line + "\n").collect::<String>();
        Ran { code, out: rest(&self.lines), err: self.heard + &rest(&self.said) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to end.
        self.process.kill().ok();
        self.process.wait().ok();
        if std::thread::panicking() {
            eprintln!("{}", fs::read_to_string(self.directory.path().join("log")).unwrap_or_default());
        }
    }
}
