//! What happened on a server, read from its audit log.

use std::collections::BTreeMap;

use forewarn_control::{AuditEntry, NamedCommand};
use forewarn_lifecycle::Timestamp;
use forewarn_lifecycle::limits::SILENCE_MAX;
use serde_json::Value;

use crate::program::POLL_INTERVAL_MAX;

/// Something that was done to the server, at its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) at: Timestamp,
    pub(super) kind: StepKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StepKind {
    Command(Box<NamedCommand>),
    /// A request that is no command of the language: its text.
    Other(String),
    /// A machine of the tenant polled.
    Poll {
        tenant: String,
    },
    /// This machine polled, and a rollout had waited for it.
    MachinePoll {
        machine: String,
    },
    /// A machine approved events.
    Approval {
        machine: String,
        events: Vec<String>,
    },
}

/// The steps of the log, in order.
pub(super) fn steps(entries: &[AuditEntry]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    // The entry after which an approval of the same request may follow.
    let mut last_approval = None;
    for entry in entries {
        let at = entry.at.0;
        match (entry.kind.as_str(), entry.by.strip_prefix("machine ")) {
            ("command", _) => steps.extend(commands(entry).into_iter().map(|kind| Step { at, kind })),
            // Without a command as its cause, a poll was the cause.
            ("enrolled", _) if entry.because.is_none() => {
                let polls = entry.tenants.iter().map(|tenant| StepKind::Poll { tenant: tenant.clone() });
                steps.extend(polls.map(|kind| Step { at, kind }));
            }
            ("polled", _) => {
                let polls = entry.machines.iter().cloned().map(|machine| StepKind::MachinePoll { machine });
                steps.extend(polls.map(|kind| Step { at, kind }));
            }
            ("approved", Some(machine)) => {
                let is_same = last_approval == Some(entry.number - 1);
                match steps.last_mut() {
                    Some(Step { at: before, kind: StepKind::Approval { machine: by, events } })
                        if is_same && *before == at && by == machine =>
                    {
                        events.extend(entry.events.iter().cloned());
                    }
                    Some(_) | None => {
                        let kind =
                            StepKind::Approval { machine: machine.to_owned(), events: entry.events.clone() };
                        steps.push(Step { at, kind });
                    }
                }
                last_approval = Some(entry.number);
            }
            (_, _) => {}
        }
    }
    steps
}

/// The commands of an entry: one, or those of a fleet that was applied.
fn commands(entry: &AuditEntry) -> Vec<StepKind> {
    let other = || vec![StepKind::Other(entry.text.clone())];
    let Some(value) = entry.command.as_ref().map(forewarn_control::CommandJson::to_value) else {
        return other();
    };
    let read = |value: &Value| serde_json::from_value::<NamedCommand>(value.clone()).ok();
    let command = |command: Option<NamedCommand>| command.map(|command| StepKind::Command(Box::new(command)));
    match &value["commands"] {
        Value::Array(all) => all
            .iter()
            .map(|value| command(read(value)).unwrap_or_else(|| StepKind::Other(entry.text.clone())))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            command(read(&value)).map_or_else(other, |kind| vec![kind])
        }
    }
}

/// Adds polls to the steps, so that tenants stay enrolled as long as they were: the log has only the first poll.
pub(super) fn keep_enrolled(steps: &mut Vec<Step>, entries: &[AuditEntry], end: Timestamp) {
    let mut spans: Vec<EnrolledSpan> = Vec::new();
    for entry in entries {
        let at = entry.at.0;
        for tenant in &entry.tenants {
            let open = spans.iter_mut().rfind(|span| span.tenant == *tenant && span.end.is_none());
            match (entry.kind.as_str(), open) {
                ("enrolled", None) if entry.because.is_none() => {
                    spans.push(EnrolledSpan { tenant: tenant.clone(), requests: vec![at], end: None });
                }
                ("disabled", Some(span)) => span.end = Some(at),
                ("polled", Some(span)) => span.requests.push(at),
                ("approved", Some(span)) if entry.by.starts_with("machine ") => span.requests.push(at),
                (_, _) => {}
            }
        }
    }
    for span in spans {
        let tenant = &span.tenant;
        steps.extend(
            span.missing_polls(end)
                .into_iter()
                .map(|at| Step { at, kind: StepKind::Poll { tenant: tenant.clone() } }),
        );
    }
    steps.sort_by_key(|step| step.at);
}

/// The time for which a tenant was enrolled, and its known requests.
struct EnrolledSpan {
    tenant: String,
    requests: Vec<Timestamp>,
    /// None if it was enrolled to the end.
    end: Option<Timestamp>,
}

impl EnrolledSpan {
    /// Times of polls that must have happened.
    fn missing_polls(&self, end: Timestamp) -> Vec<Timestamp> {
        let mut missing = Vec::new();
        let silence = i64::try_from(SILENCE_MAX.as_millis()).unwrap_or(i64::MAX);
        // A tenant that was disabled has sent its last request a day before, or earlier if an event kept it enrolled.
        let last = self.end.map(|end| Timestamp::from_millis(end.millis().saturating_sub(silence)));
        let target = last.unwrap_or(end);
        let mut heard = self.requests.first().copied().unwrap_or(target);
        for next in self.requests.iter().copied().skip(1).chain([target]) {
            while next.since(heard) >= SILENCE_MAX {
                heard = heard.plus(POLL_INTERVAL_MAX);
                missing.push(heard);
            }
            heard = heard.max(next);
        }
        let is_known = |last: &Timestamp| self.requests.iter().any(|request| request >= last);
        missing.extend(last.filter(|last| !is_known(last)));
        missing
    }
}

/// The events of the log: the tenant of each, and its number among the events of that tenant. Ids differ between
/// servers, these numbers do not.
#[derive(Default)]
pub(super) struct EventNumbers {
    by_id: BTreeMap<String, (String, usize)>,
    ids: BTreeMap<String, Vec<String>>,
}

impl EventNumbers {
    pub(super) fn read(&mut self, entries: &[AuditEntry]) {
        for notice in entries.iter().flat_map(|entry| &entry.notices) {
            if !self.by_id.contains_key(&notice.event) {
                let ids = self.ids.entry(notice.tenant.clone()).or_default();
                self.by_id.insert(notice.event.clone(), (notice.tenant.clone(), ids.len()));
                ids.push(notice.event.clone());
            }
        }
    }

    /// The event of this log that has the place of an event of the other.
    pub(super) fn counterpart(&self, other: &Self, id: &str) -> Option<&str> {
        let (tenant, number) = other.by_id.get(id)?;
        self.ids.get(tenant)?.get(*number).map(String::as_str)
    }
}
