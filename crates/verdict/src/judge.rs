//! The verdict: each event that a program could read is to be approved by one of its tenant's machines before it starts.
//!
//! A verdict on nothing is no success: it fails if no machine polled, or no event was shown to one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use forewarn_lifecycle::StartCause;
use serde::Serialize;

use crate::history::{ApprovedBy, EventApproval, EventEnd, EventHistory, Occurrence};
use crate::sentences;
use crate::verdict::{EventVerdict, Finding, Verdict};

/// Everything that was observed besides the audit log.
#[derive(Clone, Debug, Default)]
pub struct Observations {
    /// The machines under test that have polled, each with the number of the last audit entry before the first document
    /// that it read. None if polls were not observed: every announced event counts as read.
    pub polled: Option<BTreeMap<MachineName, u64>>,
    /// Ids of events that machines under test have read, scheduled or started.
    pub shown: BTreeSet<String>,
    /// The machines under test that have read an event while it was scheduled, by the id of the event.
    pub readings: BTreeMap<String, BTreeSet<MachineName>>,
    /// Real time that had passed when an audit entry was written, by its number: the clock stands still while programs
    /// work. Empty if the clock of the server ran by itself.
    pub real_time: BTreeMap<u64, Duration>,
    /// Approvals that are not those of a program under test: the id of the event, and the name of the machine.
    pub scripted: BTreeSet<(String, String)>,
}

/// A machine by its tenant and its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct MachineName {
    /// Name of its tenant.
    pub tenant: String,
    /// Name of the machine.
    pub name: String,
}

/// The requirements of a verdict. By default all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerdictRules {
    /// Approvals of events.
    pub approval: ApprovalRule,
    /// A test of nothing.
    pub untested: UntestedRule,
}

/// The requirement that events are approved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApprovalRule {
    /// Each event that was read is approved before it starts.
    #[default]
    Required,
    /// Events may start without approval.
    Optional,
}

/// The requirement that something is tested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UntestedRule {
    /// A test without a poll, or without an event that was shown, fails.
    #[default]
    Fails,
    /// It passes.
    Passes,
}

/// Judges events.
#[must_use]
pub fn judge(histories: Vec<EventHistory>, observations: &Observations, rules: VerdictRules) -> Verdict {
    let events: Vec<_> = (1..)
        .zip(histories)
        .map(|(number, history)| judge_event(format!("E{number}"), history, observations))
        .collect();
    let mut failures = Vec::new();
    if rules.untested == UntestedRule::Fails {
        failures.extend(untested(&events, observations));
    }
    if rules.approval == ApprovalRule::Required {
        let failed = events.iter().filter(|event| event.finding.is_failure());
        failures.extend(failed.map(|event| event.sentence.clone()));
    }
    Verdict { events, failures }
}

/// The reason why nothing was tested.
fn untested(events: &[EventVerdict], observations: &Observations) -> Option<String> {
    if observations.polled.as_ref().is_some_and(BTreeMap::is_empty) {
        return Some("no machine polled, so nothing was tested".to_owned());
    }
    let is_shown = |event: &EventVerdict| match (&event.finding, &observations.polled) {
        (Finding::Approved { .. }, _) => true,
        (_, None) => event.history.announced.is_some(),
        (_, Some(_)) => !event.readers.is_empty() || observations.shown.contains(&event.history.id),
    };
    let is_shown = events.iter().any(is_shown);
    (!is_shown).then(|| match events.iter().any(|event| event.history.announced.is_some()) {
        true => "no machine read an event, so nothing was tested".to_owned(),
        false => "no event was announced, so nothing was tested".to_owned(),
    })
}

fn judge_event(name: String, history: EventHistory, observations: &Observations) -> EventVerdict {
    let readers = observations.readings.get(&history.id).into_iter().flatten();
    let readers: Vec<_> = readers.map(|machine| machine.name.clone()).collect();
    let finding = finding(&history, &readers, observations);
    let mut event = EventVerdict { name, history, readers, finding, sentence: String::new() };
    event.sentence = sentences::about_event(&event);
    event
}

fn finding(history: &EventHistory, readers: &[String], observations: &Observations) -> Finding {
    let is_scripted = |approval: &EventApproval| match &approval.by {
        ApprovedBy::Machine(machine) => {
            observations.scripted.contains(&(history.id.clone(), machine.clone()))
        }
        ApprovedBy::Operator(_) | ApprovedBy::Policy => true,
    };
    if let Some(EventApproval { by: ApprovedBy::Machine(by), when }) =
        history.approvals.iter().find(|approval| !is_scripted(approval))
    {
        let (after, before) = times(history, *when, observations);
        return Finding::Approved { by: by.clone(), after, before };
    }
    let has_notice = match history.start.map(|start| start.cause) {
        Some(StartCause::Automatic | StartCause::Failure | StartCause::Forced | StartCause::AtOnce) => false,
        Some(StartCause::Approved | StartCause::Expired) | None => history.announced.is_some(),
    };
    let start = history.start.map_or(u64::MAX, |start| start.when.entry);
    let is_in_time =
        |(machine, first): (&MachineName, &u64)| machine.tenant == history.tenant && *first < start;
    let is_concerned = observations.polled.as_ref().is_none_or(|polled| polled.iter().any(is_in_time));
    if matches!(history.end, Some(EventEnd::Withdrawn { .. })) {
        Finding::Withdrawn
    } else if !has_notice {
        Finding::WithoutNotice
    } else if !is_concerned {
        Finding::Unconcerned
    } else if observations.polled.is_some() && readers.is_empty() {
        Finding::Unread
    } else if let Some(approval) = history.approvals.first() {
        Finding::ApprovedByOther { by: sentences::approver(&approval.by) }
    } else if history.start.is_some() {
        Finding::Unapproved
    } else {
        Finding::Pending
    }
}

/// The time from the announcement to an occurrence, and from there to NotBefore.
fn times(history: &EventHistory, when: Occurrence, observations: &Observations) -> (Duration, Duration) {
    let real_time = |entry: u64| observations.real_time.get(&entry).copied().unwrap_or_default();
    let Some(announced) = history.announced else { return Default::default() };
    let stood = real_time(when.entry).saturating_sub(real_time(announced.entry));
    let after = when.at.0.since(announced.at.0).saturating_add(stood);
    let notice = history.not_before.map(|end| end.0.since(announced.at.0)).unwrap_or_default();
    // Whole seconds, so that both times together are the notice.
    let after = Duration::from_secs(after.as_secs());
    (after, notice.saturating_sub(after))
}
