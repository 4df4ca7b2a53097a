//! Log entries of events: a line of the log, and a line of the event log if one is configured.
//!
//! Texts of a document are untrusted: control characters are made visible.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use forewarn_agent_core::{EventLogEntry, EventLogKind, ObservedEvent};
use forewarn_cli_support::table::some;
use forewarn_cli_support::visible::{flat, one_line};
use forewarn_types::{EventId, Moment};
use serde_json::{Map, Value, json};

use crate::clock;
use crate::obstacles::{NotApproved, after_failure};

/// Writes log entries of events.
#[derive(Debug)]
pub(super) struct EventLog {
    event_log: Option<PathBuf>,
    /// True if the last line of the event log could be written.
    is_written: bool,
}

impl EventLog {
    pub(super) fn new(event_log: Option<PathBuf>) -> Self {
        Self { event_log, is_written: true }
    }

    pub(super) fn write(&mut self, entry: &EventLogEntry) {
        log(entry);
        let Some(path) = &self.event_log else { return };
        // Opened for every line, so that the file can be rotated.
        let file = OpenOptions::new().create(true).append(true).mode(0o640).open(path);
        let written = file.and_then(|mut file| file.write_all(format!("{}\n", record(entry)).as_bytes()));
        match written {
            Ok(()) => self.is_written = true,
            Err(error) if self.is_written => {
                self.is_written = false;
                tracing::error!(%error, path = %path.display(), "cannot write the event log");
            }
            Err(_) => {}
        }
    }
}

/// One line of the event log.
fn record(entry: &EventLogEntry) -> Value {
    let EventLogEntry { observed, kind } = entry;
    let mut record = Map::new();
    record.insert("time".to_owned(), json!(Moment(clock::wall())));
    record.insert("what".to_owned(), json!(name(kind)));
    record.insert("event".to_owned(), json!(observed.id.to_string()));
    record.insert("type".to_owned(), json!(observed.kind));
    record.insert("status".to_owned(), json!(observed.status.as_str()));
    record.insert("resources".to_owned(), json!(observed.resources));
    record.insert("not_before".to_owned(), json!(observed.not_before));
    record.insert("source".to_owned(), json!(observed.source));
    record.insert("duration_seconds".to_owned(), json!(observed.duration_seconds));
    record.insert("description".to_owned(), json!(observed.description));
    for (key, value) in extra_fields(observed.id, kind) {
        record.insert(key.to_owned(), value);
    }
    Value::Object(record)
}

/// The name of an entry in the event log.
fn name(kind: &EventLogKind) -> &'static str {
    match kind {
        EventLogKind::Observed { .. } => "seen",
        EventLogKind::Ignored => "ignored",
        EventLogKind::UnknownType => "unknown-type",
        EventLogKind::TooLate => "too-late",
        EventLogKind::WaitsForTurn { .. } => "waits",
        EventLogKind::Preparing => "preparing",
        EventLogKind::HookFailed { .. } => "hook-failed",
        EventLogKind::Ready => "ready",
        EventLogKind::Held => "held",
        EventLogKind::NotApproving { .. } => "not-approving",
        EventLogKind::Approving { .. } => "approving",
        EventLogKind::Approved => "approved",
        EventLogKind::Unapproved { .. } => "unapproved",
        EventLogKind::Started => "started",
        EventLogKind::Completed => "completed",
        EventLogKind::Cancelled => "cancelled",
        EventLogKind::Undoing => "undoing",
        EventLogKind::Undone => "undone",
        EventLogKind::UndoFailed { .. } => "undo-failed",
    }
}

/// Additional fields of an entry.
fn extra_fields(event: EventId, kind: &EventLogKind) -> Vec<(&'static str, Value)> {
    match kind {
        EventLogKind::WaitsForTurn { behind } => vec![("behind", json!(behind))],
        EventLogKind::NotApproving { obstacle } => {
            let NotApproved { reason, waits_for, .. } = NotApproved::new(obstacle, event);
            vec![("reason", json!(reason)), ("waits_for", json!(waits_for))]
        }
        EventLogKind::Observed { mine } => vec![("mine", json!(mine))],
        EventLogKind::HookFailed { phase, hook, reason } => {
            vec![("phase", json!(phase.as_str())), ("hook", json!(hook)), ("reason", json!(reason))]
        }
        EventLogKind::Approving { without } => vec![("without", json!(without))],
        EventLogKind::Unapproved { reason } => vec![("reason", json!(reason))],
        EventLogKind::UndoFailed { hook, reason } => vec![("hook", json!(hook)), ("reason", json!(reason))],
        EventLogKind::Ignored
        | EventLogKind::UnknownType
        | EventLogKind::TooLate
        | EventLogKind::Preparing
        | EventLogKind::Ready
        | EventLogKind::Held
        | EventLogKind::Approved
        | EventLogKind::Started
        | EventLogKind::Completed
        | EventLogKind::Cancelled
        | EventLogKind::Undoing
        | EventLogKind::Undone => Vec::new(),
    }
}

fn log(entry: &EventLogEntry) {
    let event = entry.observed.id;
    match &entry.kind {
        EventLogKind::Observed { mine } => announced(&entry.observed, *mine),
        EventLogKind::Ignored => tracing::info!(%event, "event ignored by a rule"),
        EventLogKind::UnknownType => {
            let kind = one_line(&entry.observed.kind);
            tracing::warn!(%event, kind, "unknown event type: this machine never approves the event");
        }
        EventLogKind::TooLate => tracing::warn!(%event, "event started before this machine could prepare"),
        EventLogKind::WaitsForTurn { behind } if behind.is_empty() => {
            tracing::info!(%event, "waiting for a turn: asking the peers");
        }
        EventLogKind::WaitsForTurn { behind } => {
            let machines = one_line(&some(behind));
            tracing::info!(%event, machines, "waiting for a turn: other machines come first");
        }
        EventLogKind::Preparing => tracing::info!(%event, "preparing for event"),
        EventLogKind::HookFailed { phase, hook, reason } => {
            let (phase, reason) = (phase.as_str(), flat(reason));
            tracing::error!(%event, phase, hook, reason, "hook failed");
        }
        EventLogKind::Ready => tracing::info!(%event, "ready for event"),
        EventLogKind::Held => {
            let hint = after_failure(event);
            tracing::warn!(%event, hint, "hooks failed: this machine does not approve the event");
        }
        EventLogKind::NotApproving { obstacle } => {
            let NotApproved { reason, hint, .. } = NotApproved::new(obstacle, event);
            let (reason, hint) = (flat(&reason), hint.unwrap_or_default());
            tracing::info!(%event, reason, hint, "event not approved by this machine");
        }
        EventLogKind::Approving { without } if without.is_empty() => {
            tracing::info!(%event, "approving event: all machines are ready");
        }
        EventLogKind::Approving { without } => {
            let without = one_line(&some(without));
            tracing::warn!(%event, without, "approving event without silent machines");
        }
        EventLogKind::Approved => tracing::info!(%event, "approval accepted"),
        EventLogKind::Unapproved { reason } => {
            tracing::warn!(%event, reason = flat(reason), "approval not accepted, retrying");
        }
        EventLogKind::Started => tracing::info!(%event, "event started"),
        EventLogKind::Completed => tracing::info!(%event, "event completed"),
        EventLogKind::Cancelled => tracing::info!(%event, "event cancelled"),
        EventLogKind::Undoing => tracing::info!(%event, "undo started"),
        EventLogKind::Undone => tracing::info!(%event, "undo completed"),
        EventLogKind::UndoFailed { hook, reason } => {
            tracing::error!(%event, hook, reason = flat(reason), "undo failed");
        }
    }
}

fn announced(observed: &ObservedEvent, mine: bool) {
    let event = observed.id;
    let (kind, status, resources) =
        (one_line(&observed.kind), observed.status.as_str(), one_line(&some(&observed.resources)));
    let not_before = observed.not_before.map(|at| at.to_string()).unwrap_or_default();
    if mine {
        tracing::info!(%event, kind, status, resources, not_before, "event of this machine");
    } else {
        tracing::info!(%event, kind, status, resources, not_before, "event of other machines");
    }
}
