//! One attempt of a request: the program is started, gets the request, and is killed after the time limit.

use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use forewarn_processes::{Mark, ProcessTree};
use serde::Deserialize;
use serde_json::Value;

/// Bytes of a response that the server reads.
const RESPONSE_BYTES_MAX: usize = 64 * 1024;

/// Bytes of standard error that are shown.
const ERRORS_BYTES_MAX: usize = 4 * 1024;

/// Time for the rest of a pipe to arrive, once the program has ended.
const GRACE: Duration = Duration::from_millis(200);

/// Time between two looks at a program.
const TICK: Duration = Duration::from_millis(2);

/// The end of an attempt.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum AttemptEnd {
    Response(CheckedResponse),
    /// Exit code 0 with an invalid response: the reason.
    Invalid(String),
    /// Another exit code, or a signal; with the last line of standard error.
    Exit(String),
    /// Killed at the time limit.
    Interrupted,
}

/// A valid response.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "result", rename_all = "lowercase")]
pub(super) enum CheckedResponse {
    Done {
        state: Option<MachineState>,
    },
    Failed {
        #[serde(default)]
        message: String,
    },
    Unknown {
        #[serde(default)]
        message: String,
        /// False if the order must wait for the operator.
        #[serde(default = "repeated")]
        repeat: bool,
    },
}

fn repeated() -> bool {
    true
}

/// The state of a machine on a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum MachineState {
    Running,
    Paused,
    Stopped,
    Missing,
}

impl MachineState {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Stopped => "stopped",
            Self::Missing => "missing",
        }
    }
}

/// Runs a program with that input, and returns its end and its duration.
pub(super) fn attempt(program: &Path, input: &[u8], limit: Duration) -> Result<(AttemptEnd, Duration)> {
    let begin = Instant::now();
    let mark = fresh_mark();
    let mut child = Command::new(program)
        .env(mark.name, &mark.value)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot start the driver program: {}", program.display()))?;
    let mut tree = ProcessTree::of(Some(child.id()), Some(mark));
    let out = child.stdout.take().map(|out| PipeReader::start(out, RESPONSE_BYTES_MAX));
    let errors = child.stderr.take().map(|errors| PipeReader::start(errors, ERRORS_BYTES_MAX));
    if let Some(mut stdin) = child.stdin.take() {
        // A program may end without reading its request. A request fits into a pipe.
        drop(stdin.write_all(input));
    }
    let Some(status) = wait(&mut child, begin, limit)? else {
        tree.kill();
        child.wait()?;
        return Ok((AttemptEnd::Interrupted, begin.elapsed()));
    };
    tree.leave_alone();
    let took = begin.elapsed();
    let out = out.map(PipeReader::finish).unwrap_or_default();
    let errors = errors.map(PipeReader::finish).unwrap_or_default();
    Ok((judge(status, &out, &errors), took))
}

/// The mark of all processes of one attempt.
fn fresh_mark() -> Mark {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    Mark { name: "FOREWARN_RUN", value: format!("check-{}-{count}", std::process::id()) }
}

fn wait(child: &mut Child, begin: Instant, limit: Duration) -> Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if begin.elapsed() >= limit {
            return Ok(None);
        }
        thread::sleep(TICK);
    }
}

/// Reads a pipe on a thread. Processes that the program left running may hold the pipe open.
struct PipeReader {
    text: Arc<Mutex<Vec<u8>>>,
    thread: thread::JoinHandle<()>,
}

impl PipeReader {
    /// Keeps the beginning, and drops the rest, so that the program never blocks.
    fn start(mut pipe: impl Read + Send + 'static, bytes_max: usize) -> Self {
        let text = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&text);
        let thread = thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = pipe.read(&mut piece) {
                let mut text = shared.lock().unwrap_or_else(PoisonError::into_inner);
                let room = bytes_max.saturating_sub(text.len());
                text.extend_from_slice(&piece[..count.min(room)]);
            }
        });
        Self { text, thread }
    }

    /// The text, once the program has ended and its output has had time to arrive.
    fn finish(self) -> Vec<u8> {
        let begin = Instant::now();
        while !self.thread.is_finished() && begin.elapsed() < GRACE {
            thread::sleep(TICK);
        }
        std::mem::take(&mut *self.text.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn judge(status: ExitStatus, out: &[u8], errors: &[u8]) -> AttemptEnd {
    if status.success() {
        return match parse(out) {
            Ok(response) => AttemptEnd::Response(response),
            Err(problem) => AttemptEnd::Invalid(problem),
        };
    }
    let errors = String::from_utf8_lossy(errors);
    let last = errors.lines().map(str::trim).rfind(|line| !line.is_empty());
    let why = match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => status.to_string(),
    };
    AttemptEnd::Exit(last.map_or_else(|| why.clone(), |line| format!("{why}: {line}")))
}

fn parse(out: &[u8]) -> Result<CheckedResponse, String> {
    if out.iter().all(u8::is_ascii_whitespace) {
        return Err("no response on standard output".to_owned());
    }
    let value: Value = serde_json::from_slice(out)
        .map_err(|error| format!("standard output is not one JSON object: {error}"))?;
    if !value.is_object() {
        return Err("standard output is not a JSON object".to_owned());
    }
    serde_json::from_value(value).map_err(|error| format!("invalid response: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_object_with_a_known_result_is_a_response() {
        assert_eq!(parse(br#"{"result":"done"}"#), Ok(CheckedResponse::Done { state: None }));
        let unknown = CheckedResponse::Unknown { message: "m".to_owned(), repeat: false };
        assert_eq!(parse(br#"{"result":"unknown","message":"m","repeat":false,"more":1}"#), Ok(unknown));
        for text in
            ["", " \n", "ok", "{}", "[]", r#"{"result":"perhaps"}"#, r#"{"result":"failed","message":3}"#]
        {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
        let twice = br#"{"result":"done"}{"result":"done"}"#;
        assert!(parse(twice).is_err_and(|problem| problem.contains("not one JSON object")));
    }

    #[test]
    fn a_program_that_hangs_is_killed_with_its_children() {
        let begin = Instant::now();
        let (end, _) = attempt(Path::new("/usr/bin/yes"), b"", Duration::from_millis(50)).unwrap();
        assert_eq!(end, AttemptEnd::Interrupted);
        assert!(begin.elapsed() < Duration::from_secs(30));
        assert!(attempt(Path::new("/nonexistent/driver"), b"", Duration::from_secs(1)).is_err());
    }
}
