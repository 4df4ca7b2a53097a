//! A program that is started, fed, listened to, and ended with everything it has started if it takes too long.
//!
//! It is started directly, never through a shell, in a process group of its own and with an environment of which every variable
//! is known. One of them marks all processes that it starts, so that they are found when they leave the group. Its output is read whatever becomes of it, so that it never waits for somebody who does not listen.

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

use super::bounds::{Bounds, GRACE};
use super::register::{Entry, Register};
use crate::os::{ended_badly, not_started};

/// What is kept of this agent's own environment.
const KEPT: [&str; 4] = ["PATH", "HOME", "LANG", "USER"];

/// How long what is in a pipe may take to arrive, once a program has ended.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// A program that somebody is still writing is tried again for so long.
const BUSY: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A program to run.
#[derive(Debug)]
pub(super) struct Program<'a> {
    pub(super) path: &'a Path,
    pub(super) arguments: &'a [String],
    pub(super) variables: Vec<(&'static str, String)>,
    /// What it may read.
    pub(super) input: &'a [u8],
    /// Where it is written down for as long as it runs.
    pub(super) register: Option<&'a Register>,
}

/// Where output comes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pipe {
    Output,
    Errors,
}

/// Who listens to a program.
pub(super) trait Listener: Send {
    /// Something was written.
    fn hear(&mut self, pipe: Pipe, bytes: &[u8]);
}

/// Runs a program to its end, or to that of its time.
pub(super) async fn run(
    program: &Program<'_>,
    bounds: &mut Bounds,
    listener: &mut impl Listener,
) -> Result<(), String> {
    // Written down before it is there: whatever ends this agent, the next one knows of it.
    let entry = program.register.map(Register::enter);
    let mut child =
        start(program, entry.as_ref()).await.map_err(|problem| not_started(program.path, &problem))?;
    let mut tree = ProcessTree::of(child.id(), entry.as_ref().map(Entry::mark));
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let mut talking = pin!(async {
        let (stdin, stdout, stderr) = pipes;
        tokio::join!(feed(stdin, program.input), listen(stdout, stderr, listener));
    });
    let mut is_silent = false;
    let ended = loop {
        tokio::select! {
            status = child.wait() => break Ok(status),
            why = bounds.over() => break Err(why),
            () = &mut talking, if !is_silent => is_silent = true,
        }
    };
    match ended {
        Ok(status) => {
            if !is_silent {
                // What it has left running may hold on to its output; what it had to say, it has said.
                timeout(LAST_WORDS, talking).await.ok();
            }
            tree.leave_alone();
            judge(status)
        }
        Err(why) => {
            let how = end(&mut child, &tree, talking, is_silent).await;
            tree.leave_alone();
            Err(format!("{why}: {how}"))
        }
    }
}

/// Starts it, as the first of a group of its own.
async fn start(program: &Program<'_>, entry: Option<&Entry>) -> io::Result<Child> {
    let begin = Instant::now();
    loop {
        match command(program, entry).spawn() {
            Err(problem) if problem.kind() == io::ErrorKind::ExecutableFileBusy && begin.elapsed() < BUSY => {
                sleep(LOOK_EVERY).await;
            }
            started => return started,
        }
    }
}

fn command(program: &Program<'_>, entry: Option<&Entry>) -> Command {
    let kept = KEPT.into_iter().filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
    let told = program.variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let mut command = Command::new(program.path);
    command
        .args(program.arguments)
        .env_clear()
        .envs(kept.chain(told))
        .envs(entry.map(Entry::variable))
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    command
}

/// Asks all of them to end, and ends those that do not. Says how it went.
async fn end(
    child: &mut Child,
    tree: &ProcessTree,
    mut talking: Pin<&mut impl Future<Output = ()>>,
    mut is_silent: bool,
) -> &'static str {
    tree.terminate();
    let patience = pin!(sleep(GRACE));
    let mut gone = pin!(async {
        // How it ended does not matter any more.
        child.wait().await.ok();
        while !tree.is_empty() {
            sleep(LOOK_EVERY).await;
        }
    });
    let mut patience = patience;
    loop {
        tokio::select! {
            () = &mut gone => return "it was ended",
            () = &mut patience => break,
            () = &mut talking, if !is_silent => is_silent = true,
        }
    }
    tree.kill();
    // One that sits in the kernel goes when the kernel lets it.
    match timeout(GRACE, gone).await {
        Ok(()) => "it had to be killed",
        Err(_) => "not even killing it has ended it yet",
    }
}

fn judge(status: io::Result<ExitStatus>) -> Result<(), String> {
    let status = status.map_err(|problem| format!("nobody knows how it ended: {problem}"))?;
    ended_badly(status).map_or(Ok(()), Err)
}

/// A program need not read what it is given.
async fn feed(stdin: Option<ChildStdin>, input: &[u8]) {
    let Some(mut stdin) = stdin else { return };
    if stdin.write_all(input).await.is_ok() {
        stdin.shutdown().await.ok();
    }
}

async fn listen(
    output: Option<impl AsyncRead + Unpin>,
    errors: Option<impl AsyncRead + Unpin>,
    listener: &mut impl Listener,
) {
    let (mut output, mut errors) = (output, errors);
    let (mut some, mut other) = (vec![0; 4_096], vec![0; 4_096]);
    while output.is_some() || errors.is_some() {
        tokio::select! {
            read = next(output.as_mut(), &mut some), if output.is_some() => match read {
                0 => output = None,
                count => listener.hear(Pipe::Output, &some[..count]),
            },
            read = next(errors.as_mut(), &mut other), if errors.is_some() => match read {
                0 => errors = None,
                count => listener.hear(Pipe::Errors, &other[..count]),
            },
        }
    }
}

/// A pipe that cannot be read has ended.
async fn next(pipe: Option<&mut (impl AsyncRead + Unpin)>, buffer: &mut [u8]) -> usize {
    match pipe {
        Some(pipe) => pipe.read(buffer).await.unwrap_or(0),
        None => 0,
    }
}

/// A listener that keeps the first of what is said.
#[derive(Debug, Default)]
pub(super) struct Heard {
    output: Vec<u8>,
    errors: Vec<u8>,
}

/// Bytes that are kept of each.
const HEARD_BYTES_MAX: usize = 64 * 1024;

impl Listener for Heard {
    fn hear(&mut self, pipe: Pipe, bytes: &[u8]) {
        let kept = match pipe {
            Pipe::Output => &mut self.output,
            Pipe::Errors => &mut self.errors,
        };
        let room = HEARD_BYTES_MAX.saturating_sub(kept.len());
        kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

impl Heard {
    /// What it has said.
    pub(super) fn output(&self) -> String {
        String::from_utf8_lossy(&self.output).into_owned()
    }

    /// What it has complained of, in one line.
    pub(super) fn errors(&self) -> String {
        let text = super::event::plain(&String::from_utf8_lossy(&self.errors));
        text.chars().take(500).collect::<String>().trim().to_owned()
    }
}
