//! Requests and reads of a server in a realm: a request goes to the owner of its cluster, a read waits until the copy of
//! this server contains everything that was committed before.
//!
//! ```text
//!   request ──▶ owner, another server ──▶ decision, and the number of its batch ──▶ copied here ──▶ reply
//! ```
//!
//! So whoever reads the state after a reply finds what the request has done, on every server.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use forewarn_control::request::{ClusterRequest, IdempotencyKey, Reply, Request};
use forewarn_control::{ClusterId, ControlError, Stream};
use forewarn_lifecycle::Name;
use forewarn_peers::{ForwardOutcome, OwnerDecision, PeerClient};
use forewarn_realm::Realm;
use tokio::sync::watch;
use tokio::time::Instant;

use super::administration::RealmAdmin;
use super::confirmation::{COPY_WAIT, Confirmations, StreamNumbers, contains, copied};
use super::owners::{ClusterOwner, Owners};
use crate::broadcasts::Broadcasts;
use crate::clusters::ClusterLink;
use crate::message::ClusterMessage;

/// Longest wait for an owner, and pause between two attempts.
const OWNER_WAIT: Duration = Duration::from_secs(3);
const ATTEMPT_PAUSE: Duration = Duration::from_millis(50);

/// Longest wait for the decision of a driver of this server: about a request of a VM, and about one of an operator, which
/// may be large.
const VM_DECISION_WAIT: Duration = Duration::from_secs(2);
const DECISION_WAIT: Duration = Duration::from_secs(30);

/// Longest wait until this server has copied the decision about a request of a VM, which then gets its answer anyway: it
/// reads its documents only.
const VM_COPY_WAIT: Duration = Duration::from_millis(250);

/// Connections to the other servers.
pub(crate) type PeerClients = Arc<ArcSwap<BTreeMap<Name, Arc<PeerClient>>>>;

/// The realm, for requests and reads.
#[derive(Clone)]
pub(crate) struct RealmHandle {
    pub(crate) realm: Realm,
    /// Name of this server.
    pub(crate) own: Name,
    /// Random number of its process.
    pub(crate) process: u64,
    pub(crate) owners: watch::Receiver<Arc<Owners>>,
    pub(crate) clients: PeerClients,
    pub(crate) confirmations: Confirmations,
    /// Set before the server takes requests.
    pub(crate) admin: Arc<OnceLock<RealmAdmin>>,
}

impl RealmHandle {
    /// Sends a request to the owner of its cluster: here, or another server. While the owner changes, it waits. The reply
    /// comes once the published state contains what was decided.
    pub(crate) async fn request(
        &self,
        (link, broadcasts): (&ClusterLink, &Broadcasts),
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
                    let wait = Requester::of(&request).decision_wait();
                    match tokio::time::timeout(wait, link.request(request.clone())).await {
                        Ok(Err(ControlError::Elsewhere)) => None,
                        Ok(answer) => Some(answer),
                        // The engine does not answer. The request may still be carried out.
                        Err(_) => Some(Err(ControlError::Unavailable)),
                    }
                }
                Some(owner) => {
                    let forwarded = Arc::new(Request::Cluster(id, request.clone()));
                    match self.forward(&owner, forwarded).await {
                        Some(Ok(decision)) => {
                            Some(once_copied((link, broadcasts), id, Requester::of(&request), decision).await)
                        }
                        Some(Err(error)) => Some(Err(error)),
                        None => None,
                    }
                }
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
    ) -> Option<Result<OwnerDecision, ControlError>> {
        let client = self.clients.load().get(&owner.server).cloned()?;
        let outcome = client.forward(owner.term, &request).await;
        let may_repeat = outcome.may_repeat(&request);
        match outcome {
            ForwardOutcome::Answered(decision) => Some(Ok(*decision)),
            ForwardOutcome::NotSent(_) | ForwardOutcome::NotOwner(_) | ForwardOutcome::Unknown(_) => {
                (!may_repeat).then_some(Err(ControlError::Unavailable))
            }
        }
    }
}

/// The result of a decision of another server, once the published state contains it. If it is not copied in time, it is
/// unknown here whether the request was carried out, as after a lost answer.
async fn once_copied(
    (link, broadcasts): (&ClusterLink, &Broadcasts),
    id: ClusterId,
    requester: Requester,
    OwnerDecision { result, published }: OwnerDecision,
) -> Result<Reply, ControlError> {
    let numbers = StreamNumbers::from([(Stream::Cluster(id), published)]);
    if contains(&broadcasts.snapshot.load(), &numbers) {
        return result;
    }
    // Announcements that the owner has shown are shown here, too.
    link.post(ClusterMessage::PublishedByOwner(published));
    match requester {
        Requester::Vm => drop(copied(broadcasts, &numbers, VM_COPY_WAIT).await),
        Requester::Operator => copied(broadcasts, &numbers, COPY_WAIT).await?,
    }
    result
}

/// The kind of caller that waits for the reply to a request.
#[derive(Clone, Copy)]
enum Requester {
    /// A VM reads its documents only.
    Vm,
    /// An operator, an Azure client, or the server itself: it reads the state after the reply.
    Operator,
}

impl Requester {
    fn of(request: &ClusterRequest) -> Self {
        match request {
            ClusterRequest::Rules(_) => Self::Vm,
            ClusterRequest::Commands(_)
            | ClusterRequest::ScaleSet { .. }
            | ClusterRequest::Transaction { .. }
            | ClusterRequest::Report { .. }
            | ClusterRequest::Suspend { .. }
            | ClusterRequest::Remind { .. }
            | ClusterRequest::Sweep
            | ClusterRequest::AdvanceWebhooks(_)
            | ClusterRequest::Close { .. } => Self::Operator,
        }
    }

    /// Longest wait for the decision of a driver of this server.
    fn decision_wait(self) -> Duration {
        match self {
            Self::Vm => VM_DECISION_WAIT,
            Self::Operator => DECISION_WAIT,
        }
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
