//! Decisions that are not in the journal yet, and the answers to requests.

use std::collections::BTreeSet;
use std::sync::Arc;

use forewarn_control::notice::Announced;
use forewarn_control::request::Reply;
use forewarn_control::shared::ClusterId;
use forewarn_control::{ControlError, Effect, Record, TrailEntry};
use forewarn_lifecycle::TenantId;
use tokio::sync::oneshot;

/// Decisions that are not in the journal yet.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) records: Vec<Record>,
    pub(super) audit: Vec<Arc<TrailEntry>>,
    pub(super) effects: Vec<Effect>,
    pub(super) publish: BTreeSet<(ClusterId, TenantId)>,
    pub(super) announced: BTreeSet<Announced>,
    pub(super) answers: Answers,
    /// Readers would see something else.
    pub(super) is_visible: bool,
}

impl Batch {
    /// Takes an effect of a record.
    pub(super) fn add(&mut self, effect: Effect) {
        match effect {
            Effect::Announced(id, work) => drop(self.announced.insert((id, work))),
            Effect::Publish(id, tenant) => drop(self.publish.insert((id, tenant))),
            Effect::Unpublish(..)
            | Effect::Perform(..)
            | Effect::Jam(..)
            | Effect::MachineChanged(..)
            | Effect::MachineGone(..)
            | Effect::ClusterCreated(_)
            | Effect::ClusterChanged(_)
            | Effect::ClusterGone(_)
            | Effect::WorkPlanned(_)
            | Effect::WorkFailed(..)
            | Effect::WorkFinished(_) => self.effects.push(effect),
        }
    }
}

/// Answers to requests. They are sent once everything that is due is done, so that a caller who reads after an answer sees what
/// follows from the request.
#[derive(Default)]
pub(super) struct Answers {
    pub(super) replies: Vec<(oneshot::Sender<Result<Reply, ControlError>>, Reply)>,
    /// Callers that wait until everything before their message is done.
    pub(super) waiting: Vec<oneshot::Sender<()>>,
}

impl Answers {
    pub(super) fn extend(&mut self, later: Self) {
        self.replies.extend(later.replies);
        self.waiting.extend(later.waiting);
    }

    pub(super) fn send(self) {
        // The callers may have gone; what was decided stays.
        self.replies.into_iter().for_each(|(reply, result)| drop(reply.send(Ok(result))));
        self.waiting.into_iter().for_each(|reply| reply.send(()).unwrap_or_default());
    }

    /// Rejects requests that could not be written. A caller that waits finds that there will be no answer.
    pub(super) fn reject(self) {
        // The callers may have gone.
        let rejected = self.replies.into_iter();
        rejected.for_each(|(reply, _)| drop(reply.send(Err(ControlError::Unavailable))));
    }
}
