//! The program itself: once as a server, and again for every command.

use std::path::PathBuf;
use std::process::Command;

use forewarn_testkit::command::run_with_input;
use forewarn_testkit::{CommandResult, RunningCommand, TestServer, clean_command, wait_until};
use serde_json::Value;

/// `forewarn dev` with its demo fleet, on a clock that stands still.
pub(crate) struct Server {
    server: TestServer,
    pub(crate) api: String,
    pub(crate) metadata: String,
}

fn forewarn() -> Command {
    clean_command(crate::program())
}

/// Runs a command that asks no server, or asks for one that is not there.
pub(crate) fn alone(words: &str) -> CommandResult {
    run_with_input(forewarn().args(words.split_whitespace()), "")
}

/// Runs a line of a shell in which the program is called `forewarn`, and asks that server.
pub(crate) fn shell(server: &Server, line: &str) -> CommandResult {
    let program = PathBuf::from(crate::program());
    let place = program.parent().expect("a program is in a directory").display().to_string();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("sh");
    command.args(["-c", line]).env("PATH", format!("{place}:{path}")).env("FOREWARN_API", &server.api);
    run_with_input(&mut command, "")
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::start_with("")
    }

    pub(crate) fn start_with(more: &str) -> Self {
        let words: Vec<_> = more.split_whitespace().collect();
        let server = TestServer::start_with(crate::program(), &words);
        let (api, metadata) = (server.api_url().to_owned(), server.metadata_url());
        Self { server, api, metadata }
    }

    /// What it has said, once it is ready.
    pub(crate) fn said(&self) -> String {
        wait_until("the server says what it serves", || {
            let said = self.server.log();
            (said.contains("Ctrl-C") && said.ends_with('\n')).then_some(said)
        })
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        self.server.dir().write(name, text).into()
    }

    pub(crate) fn run(&self, words: &str) -> CommandResult {
        self.run_with(words, "")
    }

    /// Runs a command that reads something.
    pub(crate) fn run_with(&self, words: &str, input: &str) -> CommandResult {
        run_with_input(forewarn().args(words.split_whitespace()).env("FOREWARN_API", &self.api), input)
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

    pub(crate) fn begin(&self, words: &str) -> RunningCommand {
        let mut command = forewarn();
        command.args(words.split_whitespace()).env("FOREWARN_API", &self.api);
        RunningCommand::start(&mut command)
    }
}

/// Runs the request that is proposed in a text; gives the answer.
pub(crate) fn curl(text: &str) -> Value {
    let command = text.lines().find_map(|line| line.find("curl ").map(|at| &line[at..]));
    let command = command.unwrap_or_else(|| panic!("no request in: {text}"));
    let ran = run_with_input(Command::new("sh").args(["-c", &command.replacen("curl", "curl -sS", 1)]), "");
    serde_json::from_str(&ran.out).unwrap_or_else(|problem| panic!("{command}: {problem}: {ran:?}"))
}
