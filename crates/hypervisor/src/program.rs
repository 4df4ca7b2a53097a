//! A program of the operator's that does what is ordered.
//!
//! It is started once per order, gets the order as JSON on standard input, and answers as JSON on standard output. What it
//! writes to standard error becomes events of the log ([`crate::output`]). It must
//! be safe to repeat: the same `action` is the same order. Whatever goes wrong around it (it cannot be started, it takes
//! too long, it answers nonsense) is an answer, too: *unknown*, and the order is given again.

use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use forewarn_processes::{Mark, ProcessTree};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::order::{Answer, Order};
use crate::output::{OutputAllowance, relay};
use crate::text::harmless;

/// Bytes of an answer that are read.
pub const ANSWER_BYTES_MAX: u64 = 64 * 1024;

/// Variable by which the processes of a program are found.
const MARK_NAME: &str = "FOREWARN_RUN";

/// Bytes of a reason that is given with an answer. A longer one is cut.
pub const REASON_BYTES_MAX: usize = 512;

/// An executable that does what is ordered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The executable. It is started directly, never through a shell.
    pub path: PathBuf,
    /// How long it may take; then it is ended, and nobody knows.
    pub time_limit: Duration,
}

impl Program {
    /// Gives an order, and waits for the answer. Its reason, if it has one, is harmless to show.
    pub async fn perform(&self, order: &Order, allowance: &Arc<OutputAllowance>) -> Answer {
        let answer = match timeout(self.time_limit, self.ask(order, allowance)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(problem)) => unknown(format!("{}: {problem}", self.path.display())),
            Err(_) => unknown(format!("{}: no answer within {:?}", self.path.display(), self.time_limit)),
        };
        match answer {
            Answer::Done => Answer::Done,
            Answer::Failed { message } => Answer::Failed { message: harmless(&message, REASON_BYTES_MAX) },
            Answer::Unknown { message } => Answer::Unknown { message: harmless(&message, REASON_BYTES_MAX) },
        }
    }

    async fn ask(&self, order: &Order, allowance: &Arc<OutputAllowance>) -> io::Result<Answer> {
        let mark = fresh_mark();
        let mut child = Command::new(&self.path)
            .env(mark.name, &mark.value)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        // If it is not heard to its end, all of its processes are killed: an order that is given again must not meet the first one.
        let mut tree = ProcessTree::of(child.id(), Some(mark));
        let text = serde_json::to_vec(order)?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let errors = stderr.map(ChildStderr::into_owned_fd).transpose()?;
        let logged = errors.map(|errors| relay(errors, order, allowance));
        let mut answer = Vec::new();
        let (sent, status) = {
            let mut reading = pin!(receive(stdout, &mut answer));
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
                // What it has left running may hold on to its output; what it had to say, it has said.
                drop(timeout(GRACE, reading).await);
            }
            ended
        };
        // It has ended by itself, and meant to leave running what still runs.
        tree.leave_alone();
        if let Some(logged) = logged {
            // Its last lines come before its answer in the log. What it has left running is read on without anybody waiting.
            drop(timeout(GRACE, logged).await);
        }
        // A program that knows its order by heart may answer without reading it.
        if let Err(problem) = sent
            && problem.kind() != ErrorKind::BrokenPipe
        {
            return Err(problem);
        }
        Ok(judge(status?, &answer))
    }
}

/// How long what is in the pipe may take to arrive, once a program has ended.
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

async fn receive(stdout: Option<ChildStdout>, answer: &mut Vec<u8>) -> io::Result<()> {
    if let Some(stdout) = stdout {
        stdout.take(ANSWER_BYTES_MAX).read_to_end(answer).await?;
    }
    Ok(())
}

fn judge(status: ExitStatus, answer: &[u8]) -> Answer {
    if !status.success() {
        return unknown(format!("it ended with {status}"));
    }
    let read = serde_json::from_slice(answer);
    read.unwrap_or_else(|problem| unknown(format!("the answer is not understood: {problem}")))
}

fn unknown(message: String) -> Answer {
    Answer::Unknown { message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Verb;
    use std::os::unix::fs::PermissionsExt;

    fn order() -> Order {
        Order {
            action: "28512af7c95745009bc4842d6fb531e4".to_owned(),
            verb: Verb::Reboot,
            tenant: "web".to_owned(),
            machine: "web_0".to_owned(),
            host: "h1".to_owned(),
            to: None,
            seconds: None,
            boots: 3,
        }
    }

    /// A program cannot be started while somebody has it open for writing, and a process that is being started elsewhere in
    /// this one may have: one at a time.
    static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

    async fn answer(script: &str) -> Answer {
        let _alone = ONE_AT_A_TIME.lock().await;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hands");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        Program { path, time_limit: Duration::from_secs(20) }.perform(&order(), &Arc::default()).await
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_program_reads_its_order_and_answers() {
        let expected = r#"{"action":"28512af7c95745009bc4842d6fb531e4","verb":"reboot","tenant":"web","machine":"web_0","host":"h1","boots":3}"#;
        let script = format!(r#"[ "$(cat)" = '{expected}' ] && echo '{{"result":"done"}}'"#);
        assert_eq!(answer(&script).await, Answer::Done);
        let failed = answer(r#"cat >/dev/null; echo '{"result":"failed","message":"no such domain"}'"#).await;
        assert_eq!(failed, Answer::Failed { message: "no such domain".to_owned() });
    }

    #[tokio::test(flavor = "current_thread")]
    async fn whatever_goes_wrong_is_unknown() {
        for script in ["echo hello", "exit 3", "echo '{\"result\":\"perhaps\"}'", "kill -9 $$", "true"] {
            assert!(matches!(answer(script).await, Answer::Unknown { .. }), "{script}");
        }
        let _alone = ONE_AT_A_TIME.lock().await;
        let missing = Program { path: "/nonexistent/hands".into(), time_limit: Duration::from_secs(5) };
        assert!(matches!(missing.perform(&order(), &Arc::default()).await, Answer::Unknown { .. }));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn what_a_program_leaves_running_does_not_keep_its_answer() {
        // It runs for as long as its script is there, and holds on to its output.
        let script = r#"(while [ -e "$0" ]; do sleep 0.05; done) & echo '{"result":"done"}'"#;
        let answer = answer(script).await;
        assert_eq!(answer, Answer::Done);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_reason_is_harmless_and_has_a_limit() {
        let long = "x".repeat(5_000);
        // `echo` of some shells would undo the escapes.
        let text = format!(r#"{{"result":"failed","message":"a\n\u202eb{long}"}}"#);
        let script = format!("cat >/dev/null; printf '%s' '{text}'");
        let Answer::Failed { message } = answer(&script).await else { panic!("it fails") };
        assert!(message.starts_with(r"a\n\u{202e}bxx") && message.ends_with("x…"), "{message}");
        assert!(message.len() <= REASON_BYTES_MAX, "{}", message.len());
    }

    #[tokio::test(flavor = "current_thread")]
    async fn what_a_program_leaves_running_can_go_on_writing_to_standard_error() {
        // It writes far more than a pipe holds after the program has ended, and tells when all of it is written.
        let folder = tempfile::tempdir().unwrap();
        let written = folder.path().join("written");
        let script = format!(
            r#"(exec >/dev/null; head -c 1000000 /dev/zero >&2 && touch {}) & echo '{{"result":"done"}}'"#,
            written.display()
        );
        assert_eq!(answer(&script).await, Answer::Done);
        while !written.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_program_that_takes_too_long_is_ended_with_all_it_has_started() {
        let _alone = ONE_AT_A_TIME.lock().await;
        let folder = tempfile::tempdir().unwrap();
        let (path, note) = (folder.path().join("hands"), folder.path().join("note"));
        let script =
            format!("#!/bin/sh\nsleep 600 &\necho $! > {0}.new; mv {0}.new {0}; wait\n", note.display());
        is_ended(&path, &note, &script).await;
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_program_that_takes_too_long_is_ended_with_a_child_that_has_a_session_of_its_own() {
        let _alone = ONE_AT_A_TIME.lock().await;
        let folder = tempfile::tempdir().unwrap();
        let (path, note) = (folder.path().join("hands"), folder.path().join("note"));
        let child =
            format!("setsid sh -c 'echo $$ > {0}.new; mv {0}.new {0}; exec sleep 600'", note.display());
        is_ended(&path, &note, &format!("#!/bin/sh\n({child} &)\nsleep 600\n")).await;
    }

    /// Starts a program that notes the number of a process, stops waiting for it, and waits until that process has ended.
    async fn is_ended(path: &std::path::Path, note: &std::path::Path, script: &str) {
        let path = path.to_owned();
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let program = Program { path, time_limit: Duration::from_secs(20) };
        let (wanted, allowance) = (order(), Arc::default());
        let mut performing = Box::pin(program.perform(&wanted, &allowance));
        // As soon as it has started something, nobody waits any longer.
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
    async fn a_program_that_takes_too_long_is_ended() {
        let _alone = ONE_AT_A_TIME.lock().await;
        let program = Program { path: "/usr/bin/yes".into(), time_limit: Duration::from_millis(50) };
        assert!(matches!(program.perform(&order(), &Arc::default()).await, Answer::Unknown { .. }));
    }
}
