//! Receipts: a request that is repeated under the same key gets the same response.

use forewarn_lifecycle::Now;
use forewarn_types::Moment;

use super::draft::Draft;
use crate::error::ControlError;
use crate::limits::ANSWER_BYTES_MAX;
use crate::receipts::{NewReceipt, Receipt, StoredResponse};
use crate::record::ClusterEntry;
use crate::refusal::Refusal;
use crate::request::{IdempotencyKey, RequestContext};
use crate::shared::Command;
use crate::stream::Stream;
use crate::view::Outcome;

impl Draft<'_> {
    /// The response to the same request under the same key.
    pub(super) fn receipt(
        &self,
        stream: Stream,
        context: &RequestContext,
    ) -> Result<Option<Outcome>, ControlError> {
        let Some(IdempotencyKey { key, fingerprint }) = &context.once else { return Ok(None) };
        let now = self.now();
        let Some(receipt) = self.find_receipt(stream, &context.by, key) else { return Ok(None) };
        if receipt.fingerprint != *fingerprint {
            return Err(Refusal::KeyUsed(key.clone()).into());
        }
        Ok(Some(serde_json::from_slice(&receipt.answer.0).unwrap_or_else(|_| empty_outcome(now))))
    }

    /// Receipts of older versions are all in the shared state. So a key that was used there cannot be used in a
    /// cluster.
    fn find_receipt(&self, stream: Stream, by: &str, key: &str) -> Option<&Receipt> {
        let now = self.now().steady;
        let of_cluster = match stream {
            Stream::Cluster(id) => self.state.cluster(id).and_then(|it| it.receipts().find(by, key, now)),
            Stream::Shared => None,
        };
        of_cluster.or_else(|| self.state.shared().receipts().find(by, key, now))
    }

    /// Stores the response if the request has a key.
    pub(super) fn keep_receipt(
        &mut self,
        stream: Stream,
        context: &RequestContext,
        outcome: &Outcome,
    ) -> Result<(), ControlError> {
        let Some(IdempotencyKey { key, fingerprint }) = context.once.clone() else { return Ok(()) };
        let bytes = |outcome: &Outcome| serde_json::to_vec(outcome).unwrap_or_default();
        let mut answer = bytes(outcome);
        if answer.len() > ANSWER_BYTES_MAX {
            // There are more events than can be stored: a repeated request gets the number of changes only.
            answer = bytes(&Outcome { events: Vec::new(), unnotified: Vec::new(), ..outcome.clone() });
        }
        let new =
            NewReceipt { by: context.by.clone(), key, fingerprint, answer: StoredResponse(answer.into()) };
        match stream {
            Stream::Shared => drop(self.change_shared(&Command::KeepReceipt(new))?),
            Stream::Cluster(id) => {
                if self.cluster(id)?.receipts().check(self.now().steady, &new)? {
                    self.write_in_cluster(id, ClusterEntry::ReceiptKept(new));
                }
            }
        }
        Ok(())
    }
}

/// The outcome of a request that has changed nothing.
pub(super) fn empty_outcome(now: Now) -> Outcome {
    let (events, unnotified, work, rollouts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    Outcome { now: Moment(now.wall), changes: 0, events, unnotified, work, rollouts, entry: None }
}
