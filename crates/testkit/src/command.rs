//! Commands that run to their end.

use std::ffi::OsStr;
use std::io::Write;
use std::process::{Child, Command, Output, Stdio};

use crate::wait_until;

/// Variables of the developer's that would change what a program under test does.
const CLEARED: [&str; 16] = [
    "COLUMNS",
    "FOREWARN_API",
    "FOREWARN_CONTEXT",
    "FOREWARN_TOKEN",
    "FOREWARN_CA",
    "FOREWARN_CLUSTER",
    "FOREWARN_AGENT_CONFIG",
    "SCHEDULEDEVENTSIP",
    "NOTIFY_SOCKET",
    "JOURNAL_STREAM",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
];

/// The exit code and the output of a command.
#[derive(Debug)]
pub struct CommandResult {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// A program without the settings that its user has in the environment, and without colours.
pub fn clean_command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    clean(&mut command);
    command
}

/// Takes the settings of the user out of the environment of a command.
pub fn clean(command: &mut Command) {
    for name in CLEARED {
        command.env_remove(name);
    }
    // The user has no contexts.
    command.env("XDG_CONFIG_HOME", "/nonexistent");
    command.env("NO_COLOR", "1").stdin(Stdio::null());
}

/// Runs a command with that input to its end.
pub fn run_with_input(command: &mut Command, input: &str) -> CommandResult {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().expect("the program starts");
    // It need not read its input.
    process.stdin.take().expect("a pipe").write_all(input.as_bytes()).ok();
    let output = process.wait_with_output().expect("the program ends");
    let text = |bytes| String::from_utf8(bytes).expect("the program writes text");
    CommandResult { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// The standard output of a command that has to succeed.
pub fn stdout_of(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{err}{out}", output.status);
    out.into_owned()
}

/// The output of a command that has to end by itself in time, with success or without.
pub fn output_of(command: &mut Command) -> Output {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = ChildGuard(Some(command.spawn().expect("the program starts")));
    let child = process.0.as_mut().expect("it was started");
    wait_until("the program ends", || child.try_wait().unwrap());
    process.0.take().expect("it was started").wait_with_output().unwrap()
}

/// Ends a process that a failed test has left running.
struct ChildGuard(Option<Child>);

impl Drop for ChildGuard {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            child.kill().ok();
            child.wait().ok();
        }
    }
}
