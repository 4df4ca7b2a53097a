//! Jobs for tests.

use std::time::Duration;

use forewarn_agent_core::{Phase, Run, Seen, Status, Task};
use forewarn_types::{EventId, Moment, Steady, Timestamp};
use tokio::sync::watch;

use super::{Hands, Job};

/// Longer than anything here takes on the slowest machine. Whoever waits for it has failed already.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// A job of a hook in a phase, with twenty seconds.
pub(super) fn job(hook: &str, phase: Phase) -> Job {
    let id = EventId::parse("28512af7-c957-4500-9bc4-842d6fb531e4").unwrap();
    let seen = Seen {
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
        seen,
        deadline: None,
        outcome: None,
        owed: Some(id),
        memory: None,
    };
    Job { run, limit: Duration::from_secs(20), left: None, me: "web_0".to_owned() }
}

/// Hands with a directory of their own, that do not wait long before they try again.
pub(super) fn hands() -> (Hands, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut hands = Hands::new(folder.path().join("notes"));
    hands.pauses = (Duration::from_millis(5), Duration::from_millis(50));
    (hands, folder)
}

/// Nobody says stop.
pub(super) fn go_on() -> watch::Receiver<bool> {
    watch::channel(false).1
}

/// Looks again and again until there is something to see.
pub(super) async fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = std::time::Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(begin.elapsed() < PATIENCE, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A script in a directory, ready to run.
pub(super) fn script(folder: &std::path::Path, name: &str, text: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}
