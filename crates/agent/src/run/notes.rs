//! What there is to tell of an event: a line of the log, and a line of the event log where one is kept.
//!
//! Texts of a document come from elsewhere: whatever could move a cursor or begin another line is made visible.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use forewarn_agent_core::{Note, Seen, What};
use forewarn_cli_support::table::some;
use forewarn_cli_support::visible::{flat, one_line};
use forewarn_types::Moment;
use serde_json::{Map, Value, json};

use crate::clock;

/// Where notes go.
#[derive(Debug)]
pub(super) struct Notes {
    event_log: Option<PathBuf>,
    /// Whether the last line of the event log could be written.
    is_written: bool,
}

impl Notes {
    pub(super) fn new(event_log: Option<PathBuf>) -> Self {
        Self { event_log, is_written: true }
    }

    /// Tells it.
    pub(super) fn tell(&mut self, note: &Note) {
        log(note);
        let Some(path) = &self.event_log else { return };
        // Opened each time: whoever rotates the file may take it away.
        let file = OpenOptions::new().create(true).append(true).mode(0o640).open(path);
        let written = file.and_then(|mut file| file.write_all(format!("{}\n", record(note)).as_bytes()));
        match written {
            Ok(()) => self.is_written = true,
            Err(error) if self.is_written => {
                self.is_written = false;
                tracing::error!(%error, path = %path.display(), "the event log could not be written");
            }
            Err(_) => {}
        }
    }
}

/// One line of the event log.
fn record(note: &Note) -> Value {
    let Note { seen, what } = note;
    let mut record = Map::new();
    record.insert("time".to_owned(), json!(Moment(clock::wall())));
    record.insert("what".to_owned(), json!(word(what)));
    record.insert("event".to_owned(), json!(seen.id.to_string()));
    record.insert("type".to_owned(), json!(seen.kind));
    record.insert("status".to_owned(), json!(seen.status.as_str()));
    record.insert("resources".to_owned(), json!(seen.resources));
    record.insert("not_before".to_owned(), json!(seen.not_before));
    record.insert("source".to_owned(), json!(seen.source));
    record.insert("duration_seconds".to_owned(), json!(seen.duration_seconds));
    record.insert("description".to_owned(), json!(seen.description));
    for (key, value) in more(what) {
        record.insert(key.to_owned(), value);
    }
    Value::Object(record)
}

/// What a note is called.
fn word(what: &What) -> &'static str {
    match what {
        What::Seen { .. } => "seen",
        What::Ignored => "ignored",
        What::UnknownType => "unknown-type",
        What::TooLate => "too-late",
        What::WaitsForTurn => "waits",
        What::Preparing => "preparing",
        What::HookFailed { .. } => "hook-failed",
        What::Ready => "ready",
        What::Held => "held",
        What::Approving { .. } => "approving",
        What::Approved => "approved",
        What::Unapproved { .. } => "unapproved",
        What::Started => "started",
        What::Completed => "completed",
        What::Cancelled => "cancelled",
        What::Undoing => "undoing",
        What::Undone => "undone",
        What::UndoFailed { .. } => "undo-failed",
    }
}

/// What a note says besides.
fn more(what: &What) -> Vec<(&'static str, Value)> {
    match what {
        What::Seen { mine } => vec![("mine", json!(mine))],
        What::HookFailed { phase, hook, why } => {
            vec![("phase", json!(phase.as_str())), ("hook", json!(hook)), ("why", json!(why))]
        }
        What::Approving { without } => vec![("without", json!(without))],
        What::Unapproved { why } => vec![("why", json!(why))],
        What::UndoFailed { hook, why } => vec![("hook", json!(hook)), ("why", json!(why))],
        What::Ignored
        | What::UnknownType
        | What::TooLate
        | What::WaitsForTurn
        | What::Preparing
        | What::Ready
        | What::Held
        | What::Approved
        | What::Started
        | What::Completed
        | What::Cancelled
        | What::Undoing
        | What::Undone => Vec::new(),
    }
}

fn log(note: &Note) {
    let event = note.seen.id;
    match &note.what {
        What::Seen { mine } => announced(&note.seen, *mine),
        What::Ignored => tracing::info!(%event, "a rule says that nothing is done about it"),
        What::UnknownType => {
            let kind = one_line(&note.seen.kind);
            tracing::warn!(%event, kind, "event type is not known: this machine never approves the event");
        }
        What::TooLate => tracing::warn!(%event, "it has started before there was time to prepare"),
        What::WaitsForTurn => {
            tracing::info!(%event, "other machines are drained: this one waits for its turn");
        }
        What::Preparing => tracing::info!(%event, "hooks begin to run"),
        What::HookFailed { phase, hook, why } => {
            let (phase, why) = (phase.as_str(), flat(why));
            tracing::error!(%event, phase, hook, why, "a hook has failed");
        }
        What::Ready => tracing::info!(%event, "this machine is ready"),
        What::Held => {
            tracing::warn!(%event, "hooks have failed: this machine is not ready, and does not approve");
        }
        What::Approving { without } if without.is_empty() => {
            tracing::info!(%event, "everybody is ready: it is approved");
        }
        What::Approving { without } => {
            let without = one_line(&some(without));
            tracing::warn!(%event, without, "it is approved without a word from some machines");
        }
        What::Approved => tracing::info!(%event, "the approval was taken"),
        What::Unapproved { why } => {
            tracing::warn!(%event, why = flat(why), "the approval was not taken: it is tried again");
        }
        What::Started => tracing::info!(%event, "it has started"),
        What::Completed => tracing::info!(%event, "it is over"),
        What::Cancelled => tracing::info!(%event, "it was cancelled"),
        What::Undoing => tracing::info!(%event, "nothing is pending: what was done is undone"),
        What::Undone => tracing::info!(%event, "all of it is undone: back to work"),
        What::UndoFailed { hook, why } => {
            tracing::error!(%event, hook, why = flat(why), "something could not be undone");
        }
    }
}

fn announced(seen: &Seen, mine: bool) {
    let event = seen.id;
    let (kind, status, resources) =
        (one_line(&seen.kind), seen.status.as_str(), one_line(&some(&seen.resources)));
    let not_before = seen.not_before.map(|at| at.to_string()).unwrap_or_default();
    if mine {
        tracing::info!(%event, kind, status, resources, not_before, "an event of this machine");
    } else {
        tracing::info!(%event, kind, status, resources, not_before, "an event of other machines");
    }
}
