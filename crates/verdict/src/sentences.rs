//! The verdict in sentences, for somebody who reads one for the first time.

use std::time::Duration;

use forewarn_lifecycle::StartCause;
use forewarn_types::show_duration;

use crate::history::{ApprovedBy, EventEnd, EventHistory};
use crate::verdict::{EventVerdict, Finding, Verdict};

/// Names in a list.
const NAMES_MAX: usize = 5;

/// A number of things: `1 event`, `3 events`.
#[must_use]
pub fn count_words(count: usize, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

/// A time after the announcement.
#[must_use]
pub fn after_words(after: Duration) -> String {
    match after.as_secs() {
        0 => "less than 1 s after the announcement".to_owned(),
        seconds @ 1..60 => format!("{seconds} s after the announcement"),
        _ => format!("{} after the announcement", show_duration(after)),
    }
}

/// The approver in words.
pub(crate) fn approver(by: &ApprovedBy) -> String {
    match by {
        ApprovedBy::Machine(machine) => format!("{machine}, by the story and not by the program"),
        ApprovedBy::Operator(caller) => format!("an operator ({caller})"),
        ApprovedBy::Policy => "the policy of its tenant".to_owned(),
    }
}

/// The event in words, beside the machines that the sentence is about: `E1 (Reboot)`, `E1 (Reboot of web_1)`.
fn event_words(name: &str, history: &EventHistory, beside: &[String]) -> String {
    let is_same = history.machines.len() == beside.len()
        && history.machines.iter().all(|machine| beside.contains(machine));
    match is_same || history.machines.is_empty() {
        true => format!("{name} ({})", history.kind),
        false => format!("{name} ({} of {})", history.kind, list(&history.machines)),
    }
}

fn list(names: &[String]) -> String {
    match names {
        [] => "no machine".to_owned(),
        [only] => only.clone(),
        [first @ .., last] if names.len() <= NAMES_MAX => format!("{} and {last}", first.join(", ")),
        _ => format!("{} and {} more", names[..NAMES_MAX].join(", "), names.len() - NAMES_MAX),
    }
}

/// The impact on machines, in the past.
fn impact(history: &EventHistory) -> &'static str {
    match history.kind.as_str() {
        "Freeze" => "frozen",
        "Reboot" => "restarted",
        "Redeploy" => "redeployed",
        "Preempt" => "evicted",
        "Terminate" => "deleted",
        _ => "interrupted",
    }
}

/// `it was restarted at NotBefore`, beside the machines that the sentence is about.
fn interruption(history: &EventHistory, beside: &[String]) -> String {
    let subject = if history.machines == beside {
        if history.machines.len() == 1 { "it was".to_owned() } else { "they were".to_owned() }
    } else {
        let verb = if history.machines.len() == 1 { "was" } else { "were" };
        format!("{} {verb}", list(&history.machines))
    };
    let when = match history.start.map(|start| start.cause) {
        Some(StartCause::Expired) => " at NotBefore",
        Some(StartCause::Approved) => " after that approval",
        Some(StartCause::Failure) => " because the host failed",
        Some(StartCause::Forced) => " at the request of an operator",
        Some(StartCause::Automatic) => " by the policy of its tenant",
        Some(StartCause::AtOnce) => " without notice",
        None => return "it has not started".to_owned(),
    };
    format!("{subject} {}{when}", impact(history))
}

pub(crate) fn about_event(event: &EventVerdict) -> String {
    let EventVerdict { name, history, readers, .. } = event;
    let readers = if readers.is_empty() { &history.machines } else { readers };
    let words = event_words(name, history, readers);
    let (machines, interrupted) = (list(readers), interruption(history, readers));
    match &event.finding {
        Finding::Approved { by, after, before } => {
            let words = event_words(name, history, std::slice::from_ref(by));
            let left = match before.as_secs() {
                0 => "just before NotBefore".to_owned(),
                _ => format!("{} before NotBefore", show_duration(*before)),
            };
            let failed = match &history.end {
                Some(EventEnd::Failed { reason, .. }) => format!("; the work failed for {reason}"),
                Some(EventEnd::Completed(_) | EventEnd::Withdrawn { .. }) | None => String::new(),
            };
            format!("{by} approved {words} {}, {left}{failed}", after_words(*after))
        }
        Finding::ApprovedByOther { by } => {
            format!("{machines} did not approve {words}; it was approved by {by}")
        }
        Finding::Unapproved => format!("{machines} did not approve {words}; {interrupted}"),
        Finding::Unread => {
            format!("{machines} did not poll while {words} was scheduled; {interrupted}")
        }
        Finding::Pending => format!("{machines} has not approved {words}, which is still scheduled"),
        Finding::Withdrawn => format!("{words} was withdrawn before it started"),
        Finding::WithoutNotice => format!("{words} had no notice to wait for: {interrupted}"),
        Finding::Unconcerned => {
            format!("{words} concerns {}, for which no program had polled", history.tenant)
        }
    }
}

/// The sentence about interruptions, if there were any, and all of them were approved.
fn about_interruptions(events: &[EventVerdict]) -> Option<String> {
    let mut started = events.iter().filter(|event| event.history.start.is_some()).peekable();
    started.peek()?;
    let all = started.all(|event| matches!(event.finding, Finding::Approved { .. }));
    all.then(|| "nothing was interrupted before it was drained".to_owned())
}

impl Verdict {
    /// The verdict as a person reads it: a sentence for each event.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let mut all: Vec<_> = self.events.iter().map(|event| event.sentence.clone()).collect();
        all.extend(about_interruptions(&self.events));
        all
    }

    /// The last line: `PASSED` or `FAILED`, and the reason.
    #[must_use]
    pub fn conclusion(&self) -> String {
        match self.failures.as_slice() {
            [] => {
                let announced = self.events.iter().filter(|event| event.history.announced.is_some()).count();
                let is_approved = |event: &&EventVerdict| matches!(event.finding, Finding::Approved { .. });
                let approved = self.events.iter().filter(is_approved).count();
                format!(
                    "PASSED: {} announced, {approved} approved before the start",
                    count_words(announced, "event")
                )
            }
            [only] => format!("FAILED: {only}"),
            [first, others @ ..] => {
                format!("FAILED: {first} (and {})", count_words(others.len(), "other failure"))
            }
        }
    }
}
