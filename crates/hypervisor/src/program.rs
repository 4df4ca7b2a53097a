//! A driver program: an executable of the operator that carries out actions.
//!
//! It is started once per request, gets the request as JSON on standard input, and responds as JSON on standard output.
//! Its standard error becomes log events ([`crate::output`]). It must be safe to repeat: the same `action` is the same
//! request. Every failure around it (it cannot be started, it times out, its response is invalid) counts as the result
//! *unknown*, and the request is repeated.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use forewarn_processes::{Mark, ProcessTree};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::output::{OutputAllowance, relay};
use crate::request::{DriverRequest, DriverResponse};
use crate::text::sanitized;

/// Bytes of a response that are read.
pub const RESPONSE_BYTES_MAX: u64 = 64 * 1024;

/// Environment variable that marks the processes of a program.
const MARK_NAME: &str = "FOREWARN_RUN";

/// Bytes of the reason in a response. A longer one is truncated.
pub const REASON_BYTES_MAX: usize = 512;

/// An executable that carries out actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The executable. It is started directly, never through a shell.
    pub path: PathBuf,
    /// Time limit of one run. After it, the program is killed and the result is unknown.
    pub time_limit: Duration,
}

impl Program {
    /// Runs the program for one request. The reason in the response is sanitized for display.
    pub async fn perform(&self, request: &DriverRequest, allowance: &Arc<OutputAllowance>) -> DriverResponse {
        let response = match timeout(self.time_limit, self.run(request, allowance)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => unknown(format!("{}: {error}", self.path.display())),
            Err(_) => unknown(format!("{}: no response within {:?}", self.path.display(), self.time_limit)),
        };
        match response {
            DriverResponse::Done => DriverResponse::Done,
            DriverResponse::Failed { message } => {
                DriverResponse::Failed { message: sanitized(&message, REASON_BYTES_MAX) }
            }
            DriverResponse::Unknown { message, repeat } => {
                DriverResponse::Unknown { message: sanitized(&message, REASON_BYTES_MAX), repeat }
            }
        }
    }

    async fn run(
        &self,
        request: &DriverRequest,
        allowance: &Arc<OutputAllowance>,
    ) -> io::Result<DriverResponse> {
        let (status, response) = run_process(&self.path, &[], request, allowance).await?;
        Ok(parse_response(status, &response))
    }
}

/// Runs a program for one request. Returns its exit status and its output.
pub(crate) async fn run_process(
    path: &Path,
    arguments: &[String],
    request: &DriverRequest,
    allowance: &Arc<OutputAllowance>,
) -> io::Result<(ExitStatus, Vec<u8>)> {
    let mark = fresh_mark();
    let mut child = Command::new(path)
        .args(arguments)
        .env(mark.name, &mark.value)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    // Dropping this future kills all processes of the run: a repeated request must not overlap with the first run.
    let mut tree = ProcessTree::of(child.id(), Some(mark));
    let text = serde_json::to_vec(request)?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let errors = stderr.map(ChildStderr::into_owned_fd).transpose()?;
    let logged = errors.map(|errors| relay(errors, request, allowance));
    let mut response = Vec::new();
    let (sent, status) = {
        let mut reading = pin!(receive(stdout, &mut response));
        let mut running = pin!(async { (send(stdin, &text).await, child.wait().await) });
        let mut is_read = false;
        let ended = loop {
            tokio::select! {
                read = &mut reading, if !is_read => {
                    read?;
                    is_read = true;
                }
                ended = &mut running => break ended,
            }
        };
        if !is_read {
            // Processes that the program left running may hold its output open; its own output is already there.
            drop(timeout(GRACE, reading).await);
        }
        ended
    };
    // The program has ended by itself: processes that it left running are intended.
    tree.leave_alone();
    if let Some(logged) = logged {
        // Log its last lines before its response. Output of processes that it left running is read in the
        // background.
        drop(timeout(GRACE, logged).await);
    }
    // A program may respond without reading its request.
    if let Err(error) = sent
        && error.kind() != ErrorKind::BrokenPipe
    {
        return Err(error);
    }
    Ok((status?, response))
}

/// Time for the rest of the pipe to arrive, once a program has ended.
const GRACE: Duration = Duration::from_millis(200);

/// The mark of all processes that one program starts.
fn fresh_mark() -> Mark {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    Mark { name: MARK_NAME, value: format!("{}-{}-{count}", since.as_nanos(), std::process::id()) }
}

async fn send(stdin: Option<ChildStdin>, text: &[u8]) -> io::Result<()> {
    let Some(mut stdin) = stdin else { return Ok(()) };
    stdin.write_all(text).await?;
    stdin.shutdown().await
}

async fn receive(stdout: Option<ChildStdout>, response: &mut Vec<u8>) -> io::Result<()> {
    if let Some(stdout) = stdout {
        stdout.take(RESPONSE_BYTES_MAX).read_to_end(response).await?;
    }
    Ok(())
}

fn parse_response(status: ExitStatus, response: &[u8]) -> DriverResponse {
    if !status.success() {
        return unknown(format!("the program ended with {status}"));
    }
    let read = serde_json::from_slice(response);
    read.unwrap_or_else(|error| unknown(format!("invalid response: {error}")))
}

pub(crate) fn unknown(message: String) -> DriverResponse {
    DriverResponse::Unknown { message, repeat: true }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Verb;
    use std::os::unix::fs::PermissionsExt;

    fn request() -> DriverRequest {
        DriverRequest {
            action: "28512af7c95745009bc4842d6fb531e4".to_owned(),
            verb: Verb::Reboot,
            tenant: Some("web".to_owned()),
            machine: Some("web_0".to_owned()),
            host: "h1".to_owned(),
            to: None,
            cause: None,
            work: None,
            seconds: None,
            boots: Some(3),
        }
    }

    /// A file that is open for writing cannot be executed, and a concurrently forked child may hold it open: run one
    /// test at a time.
    static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

    async fn response(script: &str) -> DriverResponse {
        let _alone = ONE_AT_A_TIME.lock().await;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("driver");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        Program { path, time_limit: Duration::from_secs(20) }.perform(&request(), &Arc::default()).await
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_program_reads_its_request_and_responds() {
        let expected = r#"{"action":"28512af7c95745009bc4842d6fb531e4","verb":"reboot","tenant":"web","machine":"web_0","host":"h1","boots":3}"#;
        let script = format!(r#"[ "$(cat)" = '{expected}' ] && echo '{{"result":"done"}}'"#);
        assert_eq!(response(&script).await, DriverResponse::Done);
        let failed =
            response(r#"cat >/dev/null; echo '{"result":"failed","message":"no such domain"}'"#).await;
        assert_eq!(failed, DriverResponse::Failed { message: "no such domain".to_owned() });
    }

    #[tokio::test(flavor = "current_thread")]
    async fn every_failure_is_an_unknown_result() {
        let suspended = response(r#"echo '{"result":"unknown","message":"reset?","repeat":false}'"#).await;
        assert_eq!(suspended, DriverResponse::Unknown { message: "reset?".to_owned(), repeat: false });
        for script in ["echo hello", "exit 3", "echo '{\"result\":\"perhaps\"}'", "kill -9 $$", "true"] {
            assert!(matches!(response(script).await, DriverResponse::Unknown { .. }), "{script}");
        }
        let _alone = ONE_AT_A_TIME.lock().await;
        let missing = Program { path: "/nonexistent/driver".into(), time_limit: Duration::from_secs(5) };
        assert!(matches!(missing.perform(&request(), &Arc::default()).await, DriverResponse::Unknown { .. }));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_process_left_running_does_not_delay_the_response() {
        // The child runs as long as its script exists, and holds the output open.
        let script = r#"(while [ -e "$0" ]; do sleep 0.05; done) & echo '{"result":"done"}'"#;
        let response = response(script).await;
        assert_eq!(response, DriverResponse::Done);
    }

    /// promise: S6
    #[tokio::test(flavor = "current_thread")]
    async fn a_reason_is_sanitized_and_truncated() {
        let long = "x".repeat(5_000);
        // `echo` of some shells would undo the escapes.
        let text = format!(r#"{{"result":"failed","message":"a\n\u202eb{long}"}}"#);
        let script = format!("cat >/dev/null; printf '%s' '{text}'");
        let DriverResponse::Failed { message } = response(&script).await else { panic!("it fails") };
        assert!(message.starts_with(r"a\n\u{202e}bxx") && message.ends_with("x…"), "{message}");
        assert!(message.len() <= REASON_BYTES_MAX, "{}", message.len());
    }

    /// promise: S6
    #[tokio::test(flavor = "current_thread")]
    async fn a_process_left_running_can_still_write_to_standard_error() {
        // The child writes far more than a pipe holds after the program has ended, and creates a file when it is done.
        let folder = tempfile::tempdir().unwrap();
        let written = folder.path().join("written");
        let script = format!(
            r#"(exec >/dev/null; head -c 1000000 /dev/zero >&2 && touch {}) & echo '{{"result":"done"}}'"#,
            written.display()
        );
        assert_eq!(response(&script).await, DriverResponse::Done);
        while !written.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_timeout_kills_the_children_of_a_program() {
        let _alone = ONE_AT_A_TIME.lock().await;
        let folder = tempfile::tempdir().unwrap();
        let (path, note) = (folder.path().join("driver"), folder.path().join("note"));
        let script =
            format!("#!/bin/sh\nsleep 600 &\necho $! > {0}.new; mv {0}.new {0}; wait\n", note.display());
        is_ended(&path, &note, &script).await;
    }

    /// promise: A4
    #[tokio::test(flavor = "current_thread")]
    async fn a_timeout_kills_a_child_in_its_own_session() {
        let _alone = ONE_AT_A_TIME.lock().await;
        let folder = tempfile::tempdir().unwrap();
        let (path, note) = (folder.path().join("driver"), folder.path().join("note"));
        let child =
            format!("setsid sh -c 'echo $$ > {0}.new; mv {0}.new {0}; exec sleep 600'", note.display());
        is_ended(&path, &note, &format!("#!/bin/sh\n({child} &)\nsleep 600\n")).await;
    }

    /// Starts a program that writes the id of a child process, cancels it, and waits until that process has ended.
    async fn is_ended(path: &std::path::Path, note: &std::path::Path, script: &str) {
        let path = path.to_owned();
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let program = Program { path, time_limit: Duration::from_secs(20) };
        let (wanted, allowance) = (request(), Arc::default());
        let mut performing = Box::pin(program.perform(&wanted, &allowance));
        // Cancels as soon as the child has started.
        while !note.exists() {
            let moment = tokio::time::sleep(Duration::from_millis(5));
            tokio::select! { _ = &mut performing => unreachable!("it waits"), () = moment => {} }
        }
        drop(performing);
        let child = std::fs::read_to_string(note).unwrap();
        let begin = std::time::Instant::now();
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", child.trim())).unwrap_or_default();
        while !(state().is_empty() || state().contains(") Z ")) {
            assert!(begin.elapsed() < Duration::from_secs(60), "it still runs: {}", state());
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_timeout_kills_a_program() {
        let _alone = ONE_AT_A_TIME.lock().await;
        let program = Program { path: "/usr/bin/yes".into(), time_limit: Duration::from_millis(50) };
        assert!(matches!(program.perform(&request(), &Arc::default()).await, DriverResponse::Unknown { .. }));
    }
}
