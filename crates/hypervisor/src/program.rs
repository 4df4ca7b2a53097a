//! A program of the operator's that does what is ordered.
//!
//! It is started once per order, gets the order as JSON on standard input, and answers as JSON on standard output. It must
//! be safe to repeat: the same `action` is the same order. Whatever goes wrong around it (it cannot be started, it takes
//! too long, it answers nonsense) is an answer, too: *unknown*, and the order is given again.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::order::{Answer, Order};

/// Bytes of an answer that are read.
pub const ANSWER_BYTES_MAX: u64 = 64 * 1024;

/// An executable that does what is ordered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The executable. It is started directly, never through a shell.
    pub path: PathBuf,
    /// How long it may take; then it is ended, and nobody knows.
    pub time_limit: Duration,
}

impl Program {
    /// Gives an order, and waits for the answer.
    pub async fn perform(&self, order: &Order) -> Answer {
        match timeout(self.time_limit, self.ask(order)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(problem)) => unknown(format!("{}: {problem}", self.path.display())),
            Err(_) => unknown(format!("{}: no answer within {:?}", self.path.display(), self.time_limit)),
        }
    }

    async fn ask(&self, order: &Order) -> Result<Answer, std::io::Error> {
        let mut child = Command::new(&self.path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .spawn()?;
        let text = serde_json::to_vec(order)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (sent, answer) = tokio::join!(send(stdin, &text), receive(stdout));
        // A program that knows its order by heart may answer without reading it.
        if let Err(problem) = sent
            && problem.kind() != std::io::ErrorKind::BrokenPipe
        {
            return Err(problem);
        }
        let answer = answer?;
        Ok(judge(&mut child, &answer).await)
    }
}

async fn send(stdin: Option<ChildStdin>, text: &[u8]) -> Result<(), std::io::Error> {
    let Some(mut stdin) = stdin else { return Ok(()) };
    stdin.write_all(text).await?;
    stdin.shutdown().await
}

async fn receive(stdout: Option<ChildStdout>) -> Result<Vec<u8>, std::io::Error> {
    let mut answer = Vec::new();
    if let Some(stdout) = stdout {
        stdout.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).await?;
    }
    Ok(answer)
}

async fn judge(child: &mut Child, answer: &[u8]) -> Answer {
    match child.wait().await {
        Ok(status) if status.success() => serde_json::from_slice(answer)
            .unwrap_or_else(|problem| unknown(format!("the answer is not understood: {problem}"))),
        Ok(status) => unknown(format!("it ended with {status}")),
        Err(problem) => unknown(problem.to_string()),
    }
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
            action: "12-7".to_owned(),
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
        Program { path, time_limit: Duration::from_secs(20) }.perform(&order()).await
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_program_reads_its_order_and_answers() {
        let expected =
            r#"{"action":"12-7","verb":"reboot","tenant":"web","machine":"web_0","host":"h1","boots":3}"#;
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
        assert!(matches!(missing.perform(&order()).await, Answer::Unknown { .. }));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_program_that_takes_too_long_is_ended() {
        let _alone = ONE_AT_A_TIME.lock().await;
        let program = Program { path: "/usr/bin/yes".into(), time_limit: Duration::from_millis(50) };
        assert!(matches!(program.perform(&order()).await, Answer::Unknown { .. }));
    }
}
