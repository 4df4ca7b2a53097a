//! Jobs for tests.

use std::time::Duration;

use forewarn_agent_core::{ObservedEvent, Phase, Run, Status, Task};
use forewarn_types::{EventId, Moment, Steady, Timestamp};
use tokio::sync::watch;

use super::{HookRuntime, Job};

/// Deadline for conditions in tests, longer than any of them takes.
pub(super) const TIMEOUT: Duration = Duration::from_secs(60);

/// A job with a limit of twenty seconds.
pub(super) fn job(hook: &str, phase: Phase) -> Job {
    let id = EventId::parse("28512af7-c957-4500-9bc4-842d6fb531e4").unwrap();
    let observed = ObservedEvent {
        id,
        status: Status::Scheduled,
        kind: "Reboot".to_owned(),
        resource_type: "VirtualMachine".to_owned(),
        resources: vec!["web_0".to_owned()],
        not_before: Some(Moment(Timestamp::from_millis(1_516_828_844_000))),
        description: Some("Host server is undergoing maintenance.".to_owned()),
        source: None,
        duration_seconds: None,
    };
    let run = Run {
        task: Task { event: id, phase, hook: hook.to_owned() },
        attempt: 1,
        until: Steady::from_millis(20_000),
        observed,
        deadline: None,
        outcome: None,
        pending_undo: Some(id),
        memory: None,
    };
    Job { run, limit: Duration::from_secs(20), left: None, me: "web_0".to_owned() }
}

/// A runtime with a temporary directory and short pauses.
pub(super) fn runtime() -> (HookRuntime, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let mut runtime = HookRuntime::new(directory.path().join("notes"));
    runtime.pauses = (Duration::from_millis(5), Duration::from_millis(50));
    (runtime, directory)
}

/// A stop signal that is never sent.
pub(super) fn never_stop() -> watch::Receiver<bool> {
    watch::channel(false).1
}

/// Polls a condition until it holds.
pub(super) async fn until<T>(what: &str, mut check: impl FnMut() -> Option<T>) -> T {
    let begin = std::time::Instant::now();
    loop {
        if let Some(observed) = check() {
            return observed;
        }
        assert!(begin.elapsed() < TIMEOUT, "timed out waiting for: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// An executable script in a directory.
pub(super) fn script(directory: &std::path::Path, name: &str, text: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = directory.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Errors as one, or none.
pub(super) fn all_or_none(errors: &[String]) -> Result<(), String> {
    if errors.is_empty() { Ok(()) } else { Err(errors.join("\n")) }
}
