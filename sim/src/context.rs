//! The surroundings of one step: the time, the messages that it sends, and the observer.

use std::sync::Arc;

use forewarn_control::shared::SharedState;
use forewarn_ownership::BatchId;

use crate::checks::Checks;
use crate::message::{Message, Node};
use crate::omission::Omission;
use crate::step_log::StepLog;

/// The surroundings of one step.
pub(crate) struct Context<'a> {
    /// Milliseconds since the beginning.
    pub(crate) now: u64,
    pub(crate) omission: Option<Omission>,
    pub(crate) shared: &'a Arc<SharedState>,
    pub(crate) checks: &'a mut Checks,
    pub(crate) step_log: &'a mut StepLog,
    pub(crate) last_id: &'a mut u64,
    pub(crate) out: Vec<(Node, Message)>,
}

impl Context<'_> {
    /// A number that no other thing of this simulation has.
    pub(crate) fn new_id(&mut self) -> u64 {
        *self.last_id += 1;
        *self.last_id
    }

    pub(crate) fn new_batch_id(&mut self) -> BatchId {
        BatchId(u128::from(self.new_id()).to_be_bytes())
    }

    pub(crate) fn omits(&self, omission: Omission) -> bool {
        self.omission == Some(omission)
    }

    pub(crate) fn send(&mut self, to: Node, message: Message) {
        self.out.push((to, message));
    }
}
