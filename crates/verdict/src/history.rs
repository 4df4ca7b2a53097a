//! Histories of events, from audit entries.

use std::collections::BTreeMap;

use forewarn_control::push::{Notice, NoticeStatus};
use forewarn_control::{AuditEntry, Stream};
use forewarn_lifecycle::StartCause;
use forewarn_types::Moment;
use serde::Serialize;

/// Everything that has happened to an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EventHistory {
    /// Id of the event.
    pub id: String,
    /// Type of the event: `Freeze`, `Reboot`, `Redeploy`, `Preempt`, `Terminate`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Tenant of its machines.
    pub tenant: String,
    /// Names of its machines, without the tenant.
    pub machines: Vec<String>,
    /// Its announcement as `Scheduled`. None if it started at once: no machine could approve it.
    pub announced: Option<Occurrence>,
    /// The earliest start without approval, as it was announced.
    pub not_before: Option<Moment>,
    /// Its approvals, in the order in which they came.
    pub approvals: Vec<EventApproval>,
    /// Its start. None while it is scheduled, and if it was withdrawn.
    pub start: Option<EventStart>,
    /// Its end. None until then.
    pub end: Option<EventEnd>,
}

/// Something that happened to an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Occurrence {
    /// Time of it.
    pub at: Moment,
    /// Number of its audit entry.
    pub entry: u64,
}

/// An approval of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EventApproval {
    /// The approver.
    pub by: ApprovedBy,
    /// Time of the approval.
    #[serde(flatten)]
    pub when: Occurrence,
}

/// The approver of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovedBy {
    /// A machine of the tenant, by a request to the metadata endpoint; its name without the tenant.
    Machine(String),
    /// The owner of the machines or an operator, by a command; its caller, such as `token alice`.
    Operator(String),
    /// The policy of the tenant, without a request.
    Policy,
}

/// The start of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct EventStart {
    /// Time of the start.
    #[serde(flatten)]
    pub when: Occurrence,
    /// Cause of the start.
    #[serde(serialize_with = "write_cause")]
    pub cause: StartCause,
}

/// The end of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "result")]
pub enum EventEnd {
    /// Its work is done.
    Completed(Occurrence),
    /// Its work is done, but failed for some machine.
    Failed {
        /// Time of the end.
        #[serde(flatten)]
        when: Occurrence,
        /// The first machine and the reason.
        reason: String,
    },
    /// It was withdrawn before it started.
    Withdrawn {
        /// Time of the withdrawal.
        #[serde(flatten)]
        when: Occurrence,
        /// The audit entry in words.
        reason: String,
    },
}

impl EventEnd {
    /// Time of the end.
    #[must_use]
    pub fn when(&self) -> Occurrence {
        match self {
            Self::Completed(when) | Self::Failed { when, .. } | Self::Withdrawn { when, .. } => *when,
        }
    }
}

impl EventHistory {
    /// Returns true if the event has been approved before its start, or has not started.
    #[must_use]
    pub fn is_approved(&self) -> bool {
        !self.approvals.is_empty()
    }

    /// Returns true if that machine itself has approved the event.
    #[must_use]
    pub fn is_approved_by(&self, machine: &str) -> bool {
        self.approvals.iter().any(|approval| approval.by == ApprovedBy::Machine(machine.to_owned()))
    }

    /// Returns true if the event was announced, and has started without an approval.
    #[must_use]
    pub fn has_started_unapproved(&self) -> bool {
        self.announced.is_some() && self.start.is_some() && self.approvals.is_empty()
    }

    /// Returns true if nothing more will happen to the event.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.end.is_some()
    }

    fn new(notice: &Notice) -> Self {
        Self {
            id: notice.event.clone(),
            kind: notice.kind.clone(),
            tenant: notice.tenant.clone(),
            machines: notice.resources.clone(),
            announced: None,
            not_before: None,
            approvals: Vec::new(),
            start: None,
            end: None,
        }
    }

    fn follow(&mut self, entry: &AuditEntry, notice: &Notice) {
        let when = occurrence(entry);
        match notice.status {
            NoticeStatus::Scheduled => {
                self.announced.get_or_insert(when);
                self.not_before = notice.not_before.or(self.not_before);
            }
            NoticeStatus::Started => {
                let cause = entry.start_cause().unwrap_or(StartCause::AtOnce);
                if cause == StartCause::Automatic {
                    self.approvals.push(EventApproval { by: ApprovedBy::Policy, when });
                }
                self.start.get_or_insert(EventStart { when, cause });
            }
            NoticeStatus::Completed => {
                self.end = Some(match notice.failures.first() {
                    None => EventEnd::Completed(when),
                    Some(failure) => {
                        let reason = format!("{}: {}", failure.machine, failure.reason);
                        EventEnd::Failed { when, reason }
                    }
                });
            }
            NoticeStatus::Canceled => {
                self.end = Some(EventEnd::Withdrawn { when, reason: entry.text.clone() });
            }
        }
    }
}

fn occurrence(entry: &AuditEntry) -> Occurrence {
    Occurrence { at: entry.at, entry: entry.number }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn write_cause<S: serde::Serializer>(cause: &StartCause, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match cause {
        StartCause::Approved => "approved",
        StartCause::Expired => "not_before",
        StartCause::Automatic => "policy",
        StartCause::Failure => "host_failure",
        StartCause::Forced => "operator",
        StartCause::AtOnce => "at_once",
    })
}

/// The histories of all events that the entries are about, in the order in which the events appeared. The entries come
/// oldest first. An event whose first entry is missing has the rest of its history.
#[must_use]
pub fn event_histories<'a>(entries: impl IntoIterator<Item = &'a AuditEntry>) -> Vec<EventHistory> {
    let mut histories = Histories::default();
    entries.into_iter().for_each(|entry| histories.follow(entry));
    histories.all
}

#[derive(Default)]
struct Histories {
    all: Vec<EventHistory>,
    places: BTreeMap<String, usize>,
    /// Callers of commands, by the stream and the number of the entry.
    callers: BTreeMap<(Option<Stream>, u64), String>,
}

impl Histories {
    fn follow(&mut self, entry: &AuditEntry) {
        match entry.kind.as_str() {
            "command" => drop(self.callers.insert((entry.stream, entry.number), entry.by.clone())),
            "approved" => self.approve(entry),
            _ => {}
        }
        for notice in &entry.notices {
            let (all, places) = (&mut self.all, &mut self.places);
            let place = *places.entry(notice.event.clone()).or_insert_with(|| {
                all.push(EventHistory::new(notice));
                all.len() - 1
            });
            all[place].follow(entry, notice);
        }
    }

    fn approve(&mut self, entry: &AuditEntry) {
        let by = match entry.by.strip_prefix("machine ") {
            Some(machine) => {
                let name = machine.rsplit_once('/').map_or(machine, |(_, name)| name);
                ApprovedBy::Machine(name.to_owned())
            }
            None => {
                let caller = entry.because.and_then(|command| self.callers.get(&(entry.stream, command)));
                ApprovedBy::Operator(caller.unwrap_or(&entry.by).clone())
            }
        };
        let approval = EventApproval { by, when: occurrence(entry) };
        for event in &entry.events {
            if let Some(place) = self.places.get(event) {
                self.all[*place].approvals.push(approval.clone());
            }
        }
    }
}
