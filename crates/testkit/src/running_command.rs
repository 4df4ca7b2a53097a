//! Commands that run beside a test.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::{CommandResult, DEADLINE};

/// A command that runs until it is ended.
pub struct RunningCommand {
    process: Child,
    lines: Receiver<String>,
    /// What it says besides, and what of that has been looked at.
    said: Receiver<String>,
    heard: String,
}

impl RunningCommand {
    pub fn start(command: &mut Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = lines_of(process.stdout.take().unwrap());
        let said = lines_of(process.stderr.take().unwrap());
        Self { process, lines, said, heard: String::new() }
    }

    /// The next line that it prints.
    pub fn line(&self) -> String {
        self.lines.recv_timeout(DEADLINE).expect("another line")
    }

    /// The next line that it prints, if that is soon.
    pub fn line_soon(&self) -> Option<String> {
        self.lines.recv_timeout(Duration::from_millis(100)).ok()
    }

    /// Waits until it has said that on standard error.
    pub fn hear(&mut self, wanted: &str) {
        while !self.heard.contains(wanted) {
            self.heard += &(self.said.recv_timeout(DEADLINE).expect("another word") + "\n");
        }
    }

    pub fn is_over(&mut self) -> bool {
        self.process.try_wait().unwrap().is_some()
    }

    /// Ends it as Ctrl-C does; gives its exit code.
    pub fn interrupt(mut self) -> Option<i32> {
        kill_process(Pid::from_child(&self.process), Signal::INT).expect("it runs");
        self.process.wait().unwrap().code()
    }

    /// Ends it as Ctrl-C does; gives the rest of its output.
    pub fn interrupted(self) -> CommandResult {
        kill_process(Pid::from_child(&self.process), Signal::INT).expect("it runs");
        self.end()
    }

    /// Waits until it ends.
    pub fn end(mut self) -> CommandResult {
        let code = self.process.wait().unwrap().code();
        let rest = |lines: &Receiver<String>| lines.iter().map(|line| line + "\n").collect::<String>();
        let heard = std::mem::take(&mut self.heard);
        CommandResult { code, out: rest(&self.lines), err: heard + &rest(&self.said) }
    }
}

impl Drop for RunningCommand {
    /// A failed test leaves nothing running.
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// What comes out of a pipe, line by line. It ends with the process, or when nobody wants more of it.
fn lines_of(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    let pipe = BufReader::new(pipe);
    std::thread::spawn(move || pipe.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    lines
}
