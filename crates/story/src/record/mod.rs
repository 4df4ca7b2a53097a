//! Recording: a story from what happened on a server.
//!
//! The audit log has the commands, the approvals of machines and the first poll of each tenant. Each becomes a statement
//! at its time, which is run against the rules at once: so events have the names that they get when the story runs, and
//! a statement that does not work here becomes a comment.

mod history;
mod phrases;
mod recorder;

use forewarn_control::{AuditEntry, MachineView, NamedCommand};
use forewarn_lifecycle::Timestamp;

use recorder::Recorder;

/// What is known about a server.
#[derive(Clone, Debug)]
pub struct ServerHistory {
    /// The audit log of the cluster, oldest entry first.
    pub entries: Vec<AuditEntry>,
    /// The number of the first entry that becomes part of the story. Of entries before it, only the fleet does.
    pub since: u64,
    /// The commands that make the present fleet, if the log does not begin with its first entry.
    pub fleet: Vec<NamedCommand>,
    /// The present time of the server.
    pub now: Timestamp,
    /// The present documents of tenants.
    pub documents: Vec<(String, Vec<u8>)>,
    /// The present machines.
    pub machines: Vec<MachineView>,
}

/// A recorded story.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// The text of the story.
    pub story: String,
    /// What the story could not express, or what differs when it runs.
    pub warnings: Vec<String>,
}

/// Writes a story from the history of a server.
#[must_use]
pub fn record(history: &ServerHistory) -> Recording {
    Recorder::record(history)
}
