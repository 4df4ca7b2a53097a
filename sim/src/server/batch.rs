//! Decisions on their way into the log.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use forewarn_control::request::Reply;
use forewarn_control::{AuditEntry, ControlError, Effect, Record};
use forewarn_lifecycle::{Action, MaintenanceId, Now};
use forewarn_ownership::{BatchId, StreamWriter};

use crate::engine::{HeadDetails, Payload};

/// The recipient of a reply: a server, and the number of its attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReplyTo {
    pub(crate) server: usize,
    pub(crate) attempt: u64,
}

/// Decisions that are not in the log yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    pub(crate) records: Vec<Record>,
    pub(crate) audit: Vec<Arc<AuditEntry>>,
    pub(crate) actions: Vec<Action>,
    pub(crate) announced: BTreeSet<MaintenanceId>,
    pub(crate) pending: Vec<(ReplyTo, Result<Reply, ControlError>)>,
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.audit.is_empty()
    }

    pub(crate) fn add(&mut self, effect: &Effect) {
        match effect {
            Effect::Announced(_, work) => drop(self.announced.insert(*work)),
            Effect::Perform(_, action) => self.actions.push(*action),
            // The whole state is published after each commit.
            Effect::Publish(..)
            | Effect::Unpublish(..)
            | Effect::MachineChanged(..)
            | Effect::MachineGone(..)
            | Effect::ClusterCreated(_)
            | Effect::ClusterChanged(_)
            | Effect::ClusterGone(_)
            | Effect::ClaimsChanged(_)
            | Effect::ClusterClosed(_)
            | Effect::Jam(..)
            | Effect::WorkPlanned(_)
            | Effect::WorkFailed(..)
            | Effect::WorkFinished(_) => {}
        }
    }
}

/// A batch whose commit is in flight.
pub(crate) struct PendingCommit {
    pub(super) batch: Batch,
    pub(super) unread: Vec<MaintenanceId>,
    pub(super) began: Now,
    pub(super) margin: Duration,
    pub(super) stage: CommitStage,
    pub(super) id: BatchId,
    /// The writer before the commit, for the omission of rule 2.
    pub(super) before: Box<StreamWriter<HeadDetails, Payload>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommitStage {
    First,
    /// The batch is in the log, and moves times of announcements before they are shown.
    MovesTimes,
}

impl CommitStage {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::First => "decisions",
            Self::MovesTimes => "later times of announcements",
        }
    }
}
