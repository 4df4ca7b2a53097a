//! Events that commands of the user make: their announcement and their notice.

use std::process::Stdio;
use std::time::Duration;

use forewarn_imds::parse_date;
use forewarn_types::EventKind;
use tokio::process::Command;
use tokio::time::timeout;

use crate::Assignment;
use crate::catalogue as c;
use crate::check::Check;
use crate::endpoint::text;
use crate::observer::Observer;
use crate::report::Results;

/// Time between the announcement and the first poll that shows it, at most, and the fraction of a second that `Date`
/// lacks.
const NOTICE_TOLERANCE: Duration = Duration::from_secs(3);

/// Runs each command, and waits for its event.
pub(crate) async fn announce(assignment: &Assignment, observer: &mut Observer<'_>, results: &mut Results) {
    for (kind, command) in &assignment.causes {
        let before: Vec<_> =
            observer.events().iter().map(|event| text(event, "EventId").to_owned()).collect();
        let check = announced(*kind);
        if let Err(why) = run(command, assignment.patience).await {
            results.judge(check, Err(why));
            continue;
        }
        let new = |observer: &Observer<'_>| {
            let mut events = observer.events().iter();
            let is_new = |id: &str| !before.iter().any(|known| known == id);
            let event = events
                .find(|event| text(event, "EventType") == kind.as_str() && is_new(text(event, "EventId")));
            event.map(|event| (text(event, "EventId").to_owned(), text(event, "NotBefore").to_owned()))
        };
        let appeared = observer.until(assignment.patience, results, |observer| new(observer).is_some()).await;
        let Some((id, not_before)) = new(observer).filter(|_| appeared) else {
            let patience = assignment.patience.as_secs();
            results.judge(check, Err(format!("no {} was visible within {patience} s", kind.as_str())));
            continue;
        };
        results.judge(check, Ok(()));
        observer.made.push(id);
        // An invalid time is judged elsewhere.
        if let Some((now, due)) = observer.date().zip(parse_date(&not_before)) {
            let notice = due.since(now);
            let enough = notice + NOTICE_TOLERANCE >= minimum(*kind);
            let why = || format!("{} s for a {}", notice.as_secs(), kind.as_str());
            results.judge(&c::MINIMUM_NOTICE, enough.then_some(()).ok_or_else(why));
        }
    }
}

/// Runs a shell command of the user.
pub(crate) async fn run(command: &str, patience: Duration) -> Result<(), String> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
    let output = timeout(patience, shell.output()).await;
    let output = output.map_err(|_| format!("the command did not end within {} s", patience.as_secs()))?;
    let output = output.map_err(|error| format!("the command could not be started: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("the command failed ({}): {}", output.status, said.lines().next().unwrap_or_default()))
}

fn announced(kind: EventKind) -> &'static Check {
    match kind {
        EventKind::Freeze => &c::FREEZE_ANNOUNCED,
        EventKind::Reboot => &c::REBOOT_ANNOUNCED,
        EventKind::Redeploy => &c::REDEPLOY_ANNOUNCED,
        EventKind::Preempt => &c::PREEMPT_ANNOUNCED,
        EventKind::Terminate => &c::TERMINATE_ANNOUNCED,
    }
}

/// The documented minimum notice.
fn minimum(kind: EventKind) -> Duration {
    Duration::from_secs(match kind {
        EventKind::Freeze | EventKind::Reboot => 900,
        EventKind::Redeploy => 600,
        EventKind::Terminate => 300,
        EventKind::Preempt => 30,
    })
}
