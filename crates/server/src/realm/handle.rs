//! Requests and reads of a server in a realm: a request goes to the owner of its cluster, a read waits until the copy of
//! this server contains everything that was committed before.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use forewarn_control::request::{ClusterRequest, IdempotencyKey, Reply, Request};
use forewarn_control::{ClusterId, ControlError};
use forewarn_lifecycle::Name;
use forewarn_peers::{ForwardOutcome, PeerClient};
use forewarn_realm::Realm;
use tokio::sync::watch;
use tokio::time::Instant;

use super::administration::RealmAdmin;
use super::confirmation::Confirmations;
use super::owners::{ClusterOwner, Owners};
use crate::broadcasts::Broadcasts;
use crate::clusters::{ClusterLink, ClusterRegistry};

/// Longest wait for an owner, and pause between two attempts.
const OWNER_WAIT: Duration = Duration::from_secs(3);
const ATTEMPT_PAUSE: Duration = Duration::from_millis(50);

/// Longest wait for the decision of a driver of this server: about a request of a VM, and about one of an operator, which
/// may be large.
const VM_DECISION_WAIT: Duration = Duration::from_secs(2);
const DECISION_WAIT: Duration = Duration::from_secs(30);

/// Time without an answer of the engine after which nothing waits for it: it usually answers every second.
const ENGINE_SILENCE_MAX: Duration = Duration::from_secs(2);

/// Time for the engine to answer a server that was suspended.
const ENGINE_GRACE: Duration = Duration::from_millis(200);

/// Connections to the other servers.
pub(crate) type PeerClients = Arc<ArcSwap<BTreeMap<Name, Arc<PeerClient>>>>;

/// The realm, for requests and reads.
#[derive(Clone)]
pub(crate) struct RealmHandle {
    pub(crate) realm: Realm,
    /// Name of this server.
    pub(crate) own: Name,
    pub(crate) owners: watch::Receiver<Arc<Owners>>,
    pub(crate) clients: PeerClients,
    pub(crate) confirmations: Confirmations,
    /// Set before the server takes requests.
    pub(crate) admin: Arc<OnceLock<RealmAdmin>>,
}

impl RealmHandle {
    /// Waits for a result as long as the engine answers this server. Afterwards, the request may still be carried out.
    pub(crate) async fn while_engine_answers<T>(
        &self,
        work: impl Future<Output = Result<T, ControlError>>,
    ) -> Result<T, ControlError> {
        let time_left = || ENGINE_SILENCE_MAX.saturating_sub(self.realm.engine().silent_for());
        if time_left().is_zero() {
            tokio::time::sleep(ENGINE_GRACE).await;
        }
        let silent = async {
            while !time_left().is_zero() {
                tokio::time::sleep(time_left()).await;
            }
        };
        tokio::select! {
            biased;
            () = silent => Err(ControlError::Unavailable),
            result = work => result,
        }
    }

    /// Waits until the published state contains everything that was committed before this call.
    pub(crate) async fn confirm(
        &self,
        broadcasts: &Broadcasts,
        clusters: &ClusterRegistry,
    ) -> Result<(), ControlError> {
        self.while_engine_answers(self.confirmations.confirm(broadcasts, clusters)).await
    }

    /// Sends a request to the owner of its cluster: here, or another server. While the owner changes, it waits.
    pub(crate) async fn request(
        &self,
        link: &ClusterLink,
        id: ClusterId,
        request: ClusterRequest,
    ) -> Result<Reply, ControlError> {
        let request = with_key(request)?;
        let mut owners = self.owners.clone();
        let deadline = Instant::now() + OWNER_WAIT;
        loop {
            let owner = owners.borrow_and_update().get(&id).cloned();
            let answer = match owner {
                Some(owner) if owner.server == self.own => {
                    match tokio::time::timeout(decision_wait(&request), link.request(request.clone())).await {
                        Ok(Err(ControlError::Elsewhere)) => None,
                        Ok(answer) => Some(answer),
                        // The engine does not answer. The request may still be carried out.
                        Err(_) => Some(Err(ControlError::Unavailable)),
                    }
                }
                Some(owner) => self.forward(&owner, Arc::new(Request::Cluster(id, request.clone()))).await,
                None => None,
            };
            if let Some(answer) = answer {
                return answer;
            }
            if Instant::now() >= deadline {
                return Err(ControlError::Unavailable);
            }
            // Either is a reason to try again.
            drop(tokio::time::timeout(ATTEMPT_PAUSE, owners.changed()).await);
        }
    }

    /// Forwards a request. None if it was not carried out, or may be repeated.
    async fn forward(
        &self,
        owner: &ClusterOwner,
        request: Arc<Request>,
    ) -> Option<Result<Reply, ControlError>> {
        let client = self.clients.load().get(&owner.server).cloned()?;
        let outcome = client.forward(owner.term, &request).await;
        let may_repeat = outcome.may_repeat(&request);
        match outcome {
            ForwardOutcome::Answered(answer) => Some(*answer),
            ForwardOutcome::NotSent(_) | ForwardOutcome::NotOwner(_) | ForwardOutcome::Unknown(_) => {
                (!may_repeat).then_some(Err(ControlError::Unavailable))
            }
        }
    }
}

fn decision_wait(request: &ClusterRequest) -> Duration {
    match request {
        ClusterRequest::Rules(_) => VM_DECISION_WAIT,
        ClusterRequest::Commands(_)
        | ClusterRequest::ScaleSet { .. }
        | ClusterRequest::Transaction { .. }
        | ClusterRequest::Report { .. }
        | ClusterRequest::Suspend { .. }
        | ClusterRequest::Remind { .. }
        | ClusterRequest::Sweep
        | ClusterRequest::AdvanceWebhooks(_)
        | ClusterRequest::Close { .. } => DECISION_WAIT,
    }
}

/// The request with a key, so that it can be repeated after a lost answer.
fn with_key(mut request: ClusterRequest) -> Result<ClusterRequest, ControlError> {
    let context = match &mut request {
        ClusterRequest::Commands(batch) => &mut batch.context,
        ClusterRequest::ScaleSet { context, .. } | ClusterRequest::Transaction { context, .. } => context,
        // Their repetition changes nothing.
        ClusterRequest::Rules(_)
        | ClusterRequest::Report { .. }
        | ClusterRequest::Suspend { .. }
        | ClusterRequest::Remind { .. }
        | ClusterRequest::Sweep
        | ClusterRequest::AdvanceWebhooks(_)
        | ClusterRequest::Close { .. } => return Ok(request),
    };
    if context.once.is_none() {
        context.once = Some(random_key()?);
    }
    Ok(request)
}

fn random_key() -> Result<IdempotencyKey, ControlError> {
    let (mut name, mut fingerprint) = ([0; 16], [0; 32]);
    getrandom::fill(&mut name).map_err(|_| ControlError::Unavailable)?;
    getrandom::fill(&mut fingerprint).map_err(|_| ControlError::Unavailable)?;
    let key = data_encoding::HEXLOWER.encode(&name);
    Ok(IdempotencyKey { key: format!("forwarded-{key}"), fingerprint })
}
