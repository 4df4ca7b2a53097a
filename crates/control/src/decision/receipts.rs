//! Receipts: a request that is repeated under the same key gets the same response.

use forewarn_lifecycle::Now;
use forewarn_types::Moment;

use super::draft::{ClusterDraft, SharedDraft};
use crate::error::ControlError;
use crate::receipts::{FORWARDED, NewReceipt, Receipt, ReceiptContent};
use crate::record::ClusterEntry;
use crate::refusal::Refusal;
use crate::request::{IdempotencyKey, RequestContext, TransactionOutcome};
use crate::resources::Operation;
use crate::shared::{Command, SharedState};
use crate::view::Outcome;

impl ClusterDraft<'_> {
    /// The response to the same request under the same key.
    pub(super) fn receipt(&self, context: &RequestContext) -> Result<Option<Outcome>, ControlError> {
        Ok(self.receipt_content(context)?.map(|content| content.outcome))
    }

    /// The response to the same transaction under the same key. The operation is as it is now.
    pub(super) fn receipt_of_transaction(
        &self,
        context: &RequestContext,
    ) -> Result<Option<TransactionOutcome>, ControlError> {
        let Some(ReceiptContent { outcome, operation }) = self.receipt_content(context)? else {
            return Ok(None);
        };
        let operation = operation.and_then(|name| self.cluster().resources().operation(&name).cloned());
        Ok(Some(TransactionOutcome { outcome, operation }))
    }

    /// Receipts of older versions are all in the shared state. So a key that was used there cannot be used in a cluster.
    fn receipt_content(&self, context: &RequestContext) -> Result<Option<ReceiptContent>, ControlError> {
        let now = self.now();
        response(context, now, |ReceiptName { by, key, .. }| {
            let own = self.cluster().receipts().find(by, key, now.steady);
            own.or_else(|| self.shared.receipts().find(by, key, now.steady))
        })
    }

    /// Stores the response if the request has a key.
    pub(super) fn keep_receipt(
        &mut self,
        context: &RequestContext,
        outcome: &Outcome,
        operation: Option<&Operation>,
    ) -> Result<(), ControlError> {
        let Some(name) = ReceiptName::of(context) else { return Ok(()) };
        let operation = operation.map(|operation| operation.name.clone());
        let new = name.receipt(ReceiptContent { outcome: outcome.clone(), operation });
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
        let Some(name) = once.map(|key| ReceiptName::of_key(by, key)) else { return Ok(()) };
        let new = name.receipt(ReceiptContent { outcome: outcome.clone(), operation: None });
        self.change(&Command::KeepReceipt(new))?;
        Ok(())
    }
}

/// The name under which the response to a request is stored.
struct ReceiptName {
    by: String,
    key: String,
    fingerprint: [u8; 32],
}

impl ReceiptName {
    /// The name that a request has from its caller, or from the server that has forwarded it.
    fn of(context: &RequestContext) -> Option<Self> {
        let RequestContext { by, once, forwarded, .. } = context;
        let own = once.as_ref().map(|key| Self::of_key(by, key));
        own.or_else(|| {
            let key = forwarded.as_ref()?.to_string();
            // No other request has this key.
            Some(Self { by: FORWARDED.to_owned(), key, fingerprint: [0; 32] })
        })
    }

    fn of_key(by: &str, key: &IdempotencyKey) -> Self {
        let IdempotencyKey { key, fingerprint } = key.clone();
        Self { by: by.to_owned(), key, fingerprint }
    }

    fn receipt(self, content: ReceiptContent) -> NewReceipt {
        let Self { by, key, fingerprint } = self;
        NewReceipt { by, key, fingerprint, answer: content.into_stored() }
    }
}

/// The response of the shared state to the same request under the same key.
pub(super) fn shared_receipt(
    shared: &SharedState,
    now: Now,
    context: &RequestContext,
) -> Result<Option<Outcome>, ControlError> {
    let find = |ReceiptName { by, key, .. }: &ReceiptName| shared.receipts().find(by, key, now.steady);
    Ok(response(context, now, find)?.map(|content| content.outcome))
}

fn response<'a>(
    context: &RequestContext,
    now: Now,
    find: impl FnOnce(&ReceiptName) -> Option<&'a Receipt>,
) -> Result<Option<ReceiptContent>, ControlError> {
    let Some(name) = ReceiptName::of(context) else { return Ok(None) };
    let Some(receipt) = find(&name) else { return Ok(None) };
    if receipt.fingerprint != name.fingerprint {
        return Err(Refusal::KeyUsed(name.key).into());
    }
    let unread = || ReceiptContent { outcome: empty_outcome(now), operation: None };
    Ok(Some(ReceiptContent::read(&receipt.answer).unwrap_or_else(unread)))
}

/// The outcome of a request that has changed nothing.
pub(super) fn empty_outcome(now: Now) -> Outcome {
    let (events, unnotified, work, rollouts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (starts, staying) = (Vec::new(), Vec::new());
    let now = Moment(now.wall);
    Outcome { now, changes: 0, events, unnotified, work, starts, rollouts, staying, entry: None }
}
