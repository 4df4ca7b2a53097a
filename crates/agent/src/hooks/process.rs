//! Runs a program with input, captures its output, and kills it with all its descendants after the time limit.
//!
//! The program is started directly, never through a shell, in its own process group and with a known environment. One
//! variable marks all processes that it starts, so that they are found after they leave the group. Output is always
//! read, so that the program never blocks on a full pipe.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::pin::{Pin, pin};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use forewarn_processes::ProcessTree;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::{Instant, sleep, timeout};

use super::register::{Register, RegisterEntry};
use super::time_limit::{GRACE, TimeLimit};
use crate::os::{exit_error, start_error};

/// Variables that are inherited from the agent.
const INHERITED: [&str; 4] = ["PATH", "HOME", "LANG", "USER"];

/// Time to read the remaining output after a program has exited.
const DRAIN_MAX: Duration = Duration::from_millis(200);

/// Time for which a start is retried while the program file is open for writing.
const BUSY_MAX: Duration = Duration::from_secs(1);
const CHECK_EVERY: Duration = Duration::from_millis(100);

/// A program to run.
#[derive(Debug)]
pub(super) struct Program<'a> {
    pub(super) path: &'a Path,
    pub(super) arguments: &'a [String],
    pub(super) variables: Vec<(&'static str, String)>,
    /// Standard input of the program.
    pub(super) input: &'a [u8],
    /// The register in which the program is entered while it runs.
    pub(super) register: Option<&'a Register>,
}

/// An output pipe of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pipe {
    Output,
    Errors,
}

/// Receives the output of a program.
pub(super) trait OutputSink: Send {
    /// Handles a chunk of output.
    fn write_output(&mut self, pipe: Pipe, bytes: &[u8]);
}

/// Runs a program until it exits or its time is up.
pub(super) async fn run(
    program: &Program<'_>,
    time_limit: &mut TimeLimit,
    sink: &mut impl OutputSink,
) -> Result<(), String> {
    // Registered before it starts, so that the next agent finds it after a crash.
    let entry = program.register.map(Register::enter);
    let mut child =
        start(program, entry.as_ref()).await.map_err(|error| start_error(program.path, &error))?;
    let mut tree = ProcessTree::of(child.id(), entry.as_ref().map(RegisterEntry::mark));
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let mut io = pin!(async {
        let (stdin, stdout, stderr) = pipes;
        tokio::join!(write_input(stdin, program.input), read_output(stdout, stderr, sink));
    });
    let mut io_done = false;
    let exit = loop {
        tokio::select! {
            status = child.wait() => break Ok(status),
            reason = time_limit.wait() => break Err(reason),
            () = &mut io, if !io_done => io_done = true,
        }
    };
    match exit {
        Ok(status) => {
            if !io_done {
                // A background process may still hold the pipe; do not wait for it.
                timeout(DRAIN_MAX, io).await.ok();
            }
            tree.leave_alone();
            check_status(status)
        }
        Err(reason) => {
            let result = terminate(&mut child, &tree, io, io_done).await;
            tree.leave_alone();
            Err(format!("{reason}: {result}"))
        }
    }
}

/// Starts the program as the leader of its own process group.
async fn start(program: &Program<'_>, entry: Option<&RegisterEntry>) -> io::Result<Child> {
    let begin = Instant::now();
    loop {
        match command(program, entry).spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy && begin.elapsed() < BUSY_MAX => {
                sleep(CHECK_EVERY).await;
            }
            started => return started,
        }
    }
}

fn command(program: &Program<'_>, entry: Option<&RegisterEntry>) -> Command {
    let inherited =
        INHERITED.into_iter().filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
    let own = program.variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let mut command = Command::new(program.path);
    command
        .args(program.arguments)
        .env_clear()
        .envs(inherited.chain(own))
        .envs(entry.map(RegisterEntry::variable))
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    command
}

/// Sends SIGTERM, then SIGKILL. Returns a description of the result.
async fn terminate(
    child: &mut Child,
    tree: &ProcessTree,
    mut io: Pin<&mut impl Future<Output = ()>>,
    mut io_done: bool,
) -> &'static str {
    tree.terminate();
    let grace = pin!(sleep(GRACE));
    let mut exited = pin!(async {
        // The exit status does not matter any more.
        child.wait().await.ok();
        while !tree.is_empty() {
            sleep(CHECK_EVERY).await;
        }
    });
    let mut grace = grace;
    loop {
        tokio::select! {
            () = &mut exited => return "terminated",
            () = &mut grace => break,
            () = &mut io, if !io_done => io_done = true,
        }
    }
    tree.kill();
    // A process in uninterruptible sleep ends when the kernel allows it.
    match timeout(GRACE, exited).await {
        Ok(()) => "killed",
        Err(_) => "still running after SIGKILL",
    }
}

fn check_status(status: io::Result<ExitStatus>) -> Result<(), String> {
    let status = status.map_err(|error| format!("unknown exit status: {error}"))?;
    exit_error(status).map_or(Ok(()), Err)
}

/// Writes standard input. The program need not read it.
async fn write_input(stdin: Option<ChildStdin>, input: &[u8]) {
    let Some(mut stdin) = stdin else { return };
    if stdin.write_all(input).await.is_ok() {
        stdin.shutdown().await.ok();
    }
}

async fn read_output(
    output: Option<impl AsyncRead + Unpin>,
    errors: Option<impl AsyncRead + Unpin>,
    sink: &mut impl OutputSink,
) {
    let (mut output, mut errors) = (output, errors);
    let (mut some, mut other) = (vec![0; 4_096], vec![0; 4_096]);
    while output.is_some() || errors.is_some() {
        tokio::select! {
            read = next(output.as_mut(), &mut some), if output.is_some() => match read {
                0 => output = None,
                count => sink.write_output(Pipe::Output, &some[..count]),
            },
            read = next(errors.as_mut(), &mut other), if errors.is_some() => match read {
                0 => errors = None,
                count => sink.write_output(Pipe::Errors, &other[..count]),
            },
        }
    }
}

/// Reads from a pipe. An unreadable pipe counts as closed.
async fn next(pipe: Option<&mut (impl AsyncRead + Unpin)>, buffer: &mut [u8]) -> usize {
    match pipe {
        Some(pipe) => pipe.read(buffer).await.unwrap_or(0),
        None => 0,
    }
}

/// Captures the beginning of the output.
#[derive(Debug, Default)]
pub(super) struct CapturedOutput {
    output: Vec<u8>,
    errors: Vec<u8>,
}

/// Limit of captured bytes per pipe.
const CAPTURED_BYTES_MAX: usize = 64 * 1024;

impl OutputSink for CapturedOutput {
    fn write_output(&mut self, pipe: Pipe, bytes: &[u8]) {
        let captured = match pipe {
            Pipe::Output => &mut self.output,
            Pipe::Errors => &mut self.errors,
        };
        let room = CAPTURED_BYTES_MAX.saturating_sub(captured.len());
        captured.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

impl CapturedOutput {
    pub(super) fn output(&self) -> String {
        String::from_utf8_lossy(&self.output).into_owned()
    }

    /// Standard error, on one line.
    pub(super) fn errors(&self) -> String {
        let text = super::event::plain(&String::from_utf8_lossy(&self.errors));
        text.chars().take(500).collect::<String>().trim().to_owned()
    }
}
