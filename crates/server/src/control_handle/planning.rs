//! Requests that are planned on the state of a cluster. If it changes before they are decided, they are planned again.

use std::sync::Arc;
use std::time::Duration;

use forewarn_control::request::{
    ClusterRequest, Reply, Request, RequestContext, Transaction, TransactionOutcome,
};
use forewarn_control::{ControlError, Outcome};

use super::{ControlHandle, outcome};
use crate::snapshot::State;

/// A revision that no state has.
const NO_REVISION: u64 = u64::MAX;

/// Attempts to plan a request while the cluster keeps changing.
const PLANS_MAX: usize = 64;

/// Longest wait, before another attempt, until this server shows that the cluster has changed.
const CHANGE_WAIT: Duration = Duration::from_millis(100);

impl ControlHandle {
    /// Plans a transaction on the state of the cluster, and sends it. If the cluster changes in between, it is planned
    /// again.
    ///
    /// # Errors
    /// Returns an error if it is rejected, the cluster changes too often, or the journal cannot be written. The inner
    /// error is that of the plan.
    pub async fn transact<T, E>(
        &self,
        context: RequestContext,
        plan: impl Fn(&State<'_>) -> Result<(Transaction, T), E>,
    ) -> Result<Result<(TransactionOutcome, T), E>, ControlError> {
        let planning = self.link(self.cluster)?.planning;
        let _planning = planning.lock().await;
        for _ in 0..PLANS_MAX {
            let (planned, revision) = self.look(|state| (plan(state), state.revision))?;
            let (transaction, besides) = match planned {
                Ok(planned) => planned,
                Err(refused) => return Ok(Err(refused)),
            };
            let context = RequestContext { if_revision: Some(revision), ..context.clone() };
            match self.cluster_request(ClusterRequest::Transaction { transaction, context }).await {
                Ok(Reply::Transacted(transacted)) => return Ok(Ok((transacted, besides))),
                Ok(_) => return Err(ControlError::Unavailable),
                Err(ControlError::Outdated) => {
                    self.wait_for_change(|| self.look(|state| state.revision) != Ok(revision)).await;
                }
                Err(error) => return Err(error),
            }
        }
        Err(ControlError::Outdated)
    }

    /// Checks a condition on the state of the cluster, and sends a request for the revision that the check returns. If
    /// the state changes in between, the condition is checked again. A request that was carried out before, under the
    /// same key, gets the same response although the condition no longer holds.
    ///
    /// # Errors
    /// Returns an error if the condition does not hold, the request is rejected, the state changes too often, or the
    /// journal cannot be written.
    pub async fn request_if(
        &self,
        check: impl Fn(&State<'_>) -> Result<u64, ControlError>,
        request: impl Fn(u64) -> Request,
    ) -> Result<Outcome, ControlError> {
        let planning = match request(NO_REVISION) {
            Request::Cluster(id, _) => self.link(id)?.planning,
            Request::Shared(_) => Arc::clone(&self.parts.planning),
        };
        let _planning = planning.lock().await;
        for _ in 0..PLANS_MAX {
            let checked = self.look(&check)?;
            let revision = checked.as_ref().copied().unwrap_or(NO_REVISION);
            match (self.request(request(revision)).await, checked) {
                (Err(ControlError::Outdated), Ok(_)) => {
                    self.wait_for_change(|| self.look(&check) != Ok(Ok(revision))).await;
                }
                (Err(ControlError::Outdated), Err(failed)) => return Err(failed),
                (reply, _) => return reply.and_then(outcome),
            }
        }
        Err(ControlError::Outdated)
    }

    /// Waits until the published state has changed, for a while: its driver was ahead of it.
    async fn wait_for_change(&self, has_changed: impl Fn() -> bool) {
        let mut commits = self.commits();
        let changed = async { while !has_changed() && commits.changed().await.is_ok() {} };
        // Another attempt may succeed all the same: the driver may have rolled back.
        drop(tokio::time::timeout(CHANGE_WAIT, changed).await);
    }
}
