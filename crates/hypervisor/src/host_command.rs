//! A command of the operator that carries out the step on a host, such as `ssh {host} update`.
//!
//! It is started directly, never through a shell. Its exit code is the result: 0 done, 10 failed, anything else unknown.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use crate::output::OutputAllowance;
use crate::program::{REASON_BYTES_MAX, run_process, unknown};
use crate::request::{DriverRequest, DriverResponse};
use crate::text::sanitized;

/// The exit code of a step that failed for good.
pub const FAILED_EXIT_CODE: i32 = 10;

/// A command that carries out steps on hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostCommand {
    /// The program and its arguments, with placeholders.
    pub words: Vec<String>,
    /// Time limit of one run. After it, the command is killed and the result is unknown.
    pub time_limit: Duration,
}

impl HostCommand {
    /// Runs the command for one request.
    pub async fn perform(&self, request: &DriverRequest, allowance: &Arc<OutputAllowance>) -> DriverResponse {
        let words: Vec<_> = self.words.iter().map(|word| filled(word, request)).collect();
        let Some((path, arguments)) = words.split_first() else { return unknown("no command".to_owned()) };
        let run = run_process(path.as_ref(), arguments, request, allowance);
        let (status, output) = match timeout(self.time_limit, run).await {
            Ok(Ok(ended)) => ended,
            Ok(Err(error)) => return unknown(format!("{path}: {error}")),
            Err(_) => return unknown(format!("{path}: no result within {:?}", self.time_limit)),
        };
        let text = String::from_utf8_lossy(&output);
        let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let message = sanitized(last.trim(), REASON_BYTES_MAX);
        match status.code() {
            Some(0) => DriverResponse::Done,
            Some(FAILED_EXIT_CODE) => DriverResponse::Failed { message },
            Some(_) | None if message.is_empty() => unknown(format!("the command ended with {status}")),
            Some(_) | None => unknown(format!("the command ended with {status}: {message}")),
        }
    }
}

/// A word with the values of its placeholders.
fn filled(word: &str, request: &DriverRequest) -> String {
    let values = [
        ("{host}", request.host.as_str()),
        ("{verb}", request.verb.as_str()),
        ("{work}", request.work.as_deref().unwrap_or_default()),
        ("{action}", request.action.as_str()),
    ];
    // One pass: a value that looks like a placeholder stays as it is.
    let (mut rest, mut out) = (word, String::new());
    while let Some(start) = rest.find('{') {
        let (before, from) = rest.split_at(start);
        out.push_str(before);
        let found = values.iter().find(|(name, _)| from.starts_with(name));
        let (value, length) = found.map_or(("{", 1), |(name, value)| (*value, name.len()));
        out.push_str(value);
        rest = &from[length..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Verb;

    fn request() -> DriverRequest {
        DriverRequest {
            action: "28512af7c95745009bc4842d6fb531e4".to_owned(),
            verb: Verb::UpdateHost,
            tenant: None,
            machine: None,
            host: "h1".to_owned(),
            to: None,
            cause: None,
            work: Some("kernel 6.12.9".to_owned()),
            seconds: None,
            boots: None,
        }
    }

    async fn result_of(script: &str) -> DriverResponse {
        let words = ["/bin/sh", "-c", script, "sh", "{host}", "{work}"].map(str::to_owned).to_vec();
        let command = HostCommand { words, time_limit: Duration::from_secs(20) };
        command.perform(&request(), &Arc::default()).await
    }

    #[test]
    fn placeholders_are_filled_once() {
        let request = DriverRequest { host: "{verb}".to_owned(), ..request() };
        let filled = |word| filled(word, &request);
        assert_eq!(filled("{host}"), "{verb}", "a value is not filled again");
        assert_eq!(filled("{verb}:{work}!"), "update_host:kernel 6.12.9!");
        assert_eq!(filled("{other} {"), "{other} {");
    }

    #[tokio::test(flavor = "current_thread")]
    async fn the_exit_code_is_the_result() {
        assert_eq!(
            result_of("cat > /dev/null; test \"$1 $2\" = 'h1 kernel 6.12.9'").await,
            DriverResponse::Done
        );
        let failed = DriverResponse::Failed { message: "no kernel".to_owned() };
        assert_eq!(result_of("echo 'no kernel'; exit 10").await, failed);
        for script in ["exit 1", "kill -9 $$", "echo hello; exit 255"] {
            assert!(matches!(result_of(script).await, DriverResponse::Unknown { .. }), "{script}");
        }
        let nothing =
            HostCommand { words: vec!["/nonexistent".to_owned()], time_limit: Duration::from_secs(5) };
        let result = nothing.perform(&request(), &Arc::default()).await;
        assert!(matches!(result, DriverResponse::Unknown { .. }), "{result:?}");
    }
}
