//! Receipts: a request that is repeated under the same key gets the same response.

use forewarn_lifecycle::Now;
use forewarn_types::Moment;

use super::draft::{ClusterDraft, SharedDraft};
use crate::error::ControlError;
use crate::limits::ANSWER_BYTES_MAX;
use crate::receipts::{NewReceipt, Receipt, StoredResponse};
use crate::record::ClusterEntry;
use crate::refusal::Refusal;
use crate::request::{IdempotencyKey, RequestContext};
use crate::shared::{Command, SharedState};
use crate::view::Outcome;

impl ClusterDraft<'_> {
    /// The response to the same request under the same key. Receipts of older versions are all in the shared state. So
    /// a key that was used there cannot be used in a cluster.
    pub(super) fn receipt(&self, context: &RequestContext) -> Result<Option<Outcome>, ControlError> {
        let (now, by) = (self.now(), &context.by);
        response(context, now, |key| {
            let own = self.cluster().receipts().find(by, key, now.steady);
            own.or_else(|| self.shared.receipts().find(by, key, now.steady))
        })
    }

    /// Stores the response if the request has a key.
    pub(super) fn keep_receipt(
        &mut self,
        context: &RequestContext,
        outcome: &Outcome,
    ) -> Result<(), ControlError> {
        let Some(new) = new_receipt(&context.by, context.once.as_ref(), outcome) else { return Ok(()) };
        if self.cluster().receipts().check(self.now().steady, &new)? {
            self.write(ClusterEntry::ReceiptKept(new));
        }
        Ok(())
    }
}

impl SharedDraft<'_> {
    /// The response to the same request under the same key.
    pub(super) fn receipt(&self, context: &RequestContext) -> Result<Option<Outcome>, ControlError> {
        shared_receipt(&self.state, self.now(), context)
    }

    /// Stores the response if the request has a key.
    pub(super) fn keep_receipt(
        &mut self,
        by: &str,
        once: Option<&IdempotencyKey>,
        outcome: &Outcome,
    ) -> Result<(), ControlError> {
        let Some(new) = new_receipt(by, once, outcome) else { return Ok(()) };
        self.change(&Command::KeepReceipt(new))?;
        Ok(())
    }
}

/// The response of the shared state to the same request under the same key.
pub(super) fn shared_receipt(
    shared: &SharedState,
    now: Now,
    context: &RequestContext,
) -> Result<Option<Outcome>, ControlError> {
    response(context, now, |key| shared.receipts().find(&context.by, key, now.steady))
}

fn response<'a>(
    context: &RequestContext,
    now: Now,
    find: impl FnOnce(&str) -> Option<&'a Receipt>,
) -> Result<Option<Outcome>, ControlError> {
    let Some(IdempotencyKey { key, fingerprint }) = &context.once else { return Ok(None) };
    let Some(receipt) = find(key) else { return Ok(None) };
    if receipt.fingerprint != *fingerprint {
        return Err(Refusal::KeyUsed(key.clone()).into());
    }
    Ok(Some(serde_json::from_slice(&receipt.answer.0).unwrap_or_else(|_| empty_outcome(now))))
}

fn new_receipt(by: &str, once: Option<&IdempotencyKey>, outcome: &Outcome) -> Option<NewReceipt> {
    let IdempotencyKey { key, fingerprint } = once?.clone();
    let bytes = |outcome: &Outcome| serde_json::to_vec(outcome).unwrap_or_default();
    let mut answer = bytes(outcome);
    if answer.len() > ANSWER_BYTES_MAX {
        // There are more events than can be stored: a repeated request gets the number of changes only.
        let (events, unnotified, starts) = (Vec::new(), Vec::new(), Vec::new());
        answer = bytes(&Outcome { events, unnotified, starts, ..outcome.clone() });
    }
    Some(NewReceipt { by: by.to_owned(), key, fingerprint, answer: StoredResponse(answer.into()) })
}

/// The outcome of a request that has changed nothing.
pub(super) fn empty_outcome(now: Now) -> Outcome {
    let (events, unnotified, work, rollouts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (starts, staying) = (Vec::new(), Vec::new());
    let now = Moment(now.wall);
    Outcome { now, changes: 0, events, unnotified, work, starts, rollouts, staying, entry: None }
}
