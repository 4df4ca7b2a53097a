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
use forewarn_control::request::{ClusterRequest, ForwardId, Reply, Request};
use forewarn_control::{ClusterId, ControlError, Stream};
use forewarn_lifecycle::Name;
use forewarn_peers::{ForwardOutcome, OwnerDecision, PeerClient, SeenNumbers};
use forewarn_realm::Realm;
use tokio::sync::watch;
use tokio::time::Instant;

use super::administration::RealmAdmin;
use super::confirmation::{
    COPY_WAIT, Confirmations, StreamNumbers, contains, published_numbers, wait_for_copy,
};
use super::owners::{ClusterOwner, Owners};
use crate::broadcasts::Broadcasts;
use crate::clusters::{ClusterLink, ClusterRegistry};
use crate::message::ClusterMessage;

/// Longest wait until an owner takes a request, from the time at which it is known; pause between two attempts.
const OWNER_WAIT: Duration = Duration::from_secs(3);
const ATTEMPT_PAUSE: Duration = Duration::from_millis(50);

/// Time after which no further attempt begins. The receipt of a forwarded request is stored for much longer.
const ATTEMPTS_MAX: Duration = Duration::from_secs(60);

/// Longest wait for the decision of a driver of this server: about a request of a VM, and about one of an operator, which
/// may be large.
const VM_DECISION_WAIT: Duration = Duration::from_secs(2);
const DECISION_WAIT: Duration = Duration::from_secs(30);

/// Time without an answer of the engine after which nothing waits for it: it usually answers every second.
const ENGINE_SILENCE_MAX: Duration = Duration::from_secs(2);

/// Time for the engine to answer a server that was suspended.
const ENGINE_GRACE: Duration = Duration::from_millis(200);

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

    /// Sends a request to the owner of its cluster: here, or another server. While the owner changes, it waits. The reply
    /// comes once the published state contains what was decided.
    pub(crate) async fn request(
        &self,
        (link, broadcasts): (&ClusterLink, &Broadcasts),
        id: ClusterId,
        mut request: ClusterRequest,
    ) -> Result<Reply, ControlError> {
        let mut owners = self.owners.clone();
        let mut wait = OwnerWait::begin();
        loop {
            let owner = owners.borrow_and_update().get(&id).cloned();
            wait.follow(owner.as_ref());
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
                    give_id(&mut request)?;
                    let forwarded = Arc::new(Request::Cluster(id, request.clone()));
                    let seen = published_numbers(broadcasts, id);
                    match self.forward(&owner, &mut owners, seen, &forwarded).await {
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
            // There may be another owner since.
            wait.follow(owners.borrow().get(&id));
            if wait.is_over() {
                return Err(ControlError::Unavailable);
            }
            // Either is a reason to try again.
            drop(tokio::time::timeout(ATTEMPT_PAUSE, owners.changed()).await);
        }
    }

    /// Forwards a request. None if it was not carried out, or may be repeated. An owner that hangs is given up once
    /// there is another one, but not before: a large request takes long at a healthy owner.
    async fn forward(
        &self,
        owner: &ClusterOwner,
        owners: &mut watch::Receiver<Arc<Owners>>,
        seen: SeenNumbers,
        request: &Arc<Request>,
    ) -> Option<Result<OwnerDecision, ControlError>> {
        let client = self.clients.load().get(&owner.server).cloned()?;
        let answered = client.forward(owner.term, seen, request);
        let outcome = if let Request::Cluster(id, _) = **request
            && request.is_repeatable()
        {
            tokio::select! {
                outcome = answered => outcome,
                () = replaced(owners, id, owner.term) => return None,
            }
        } else {
            answered.await
        };
        let may_repeat = outcome.may_repeat(request);
        match outcome {
            ForwardOutcome::Answered(decision) => Some(Ok(*decision)),
            ForwardOutcome::NotSent(_) | ForwardOutcome::NotOwner(_) | ForwardOutcome::Unknown(_) => {
                (!may_repeat).then_some(Err(ControlError::Unavailable))
            }
        }
    }
}

/// The wait of a request until an owner takes it. A new owner has the whole time: the former one may have hung.
struct OwnerWait {
    term: u64,
    until: Instant,
    end: Instant,
}

impl OwnerWait {
    fn begin() -> Self {
        let now = Instant::now();
        Self { term: 0, until: now + OWNER_WAIT, end: now + ATTEMPTS_MAX }
    }

    fn follow(&mut self, owner: Option<&ClusterOwner>) {
        if let Some(owner) = owner.filter(|owner| owner.term > self.term) {
            (self.term, self.until) = (owner.term, Instant::now() + OWNER_WAIT);
        }
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.until.min(self.end)
    }
}

/// Waits until a cluster has an owner of a later term.
async fn replaced(owners: &mut watch::Receiver<Arc<Owners>>, id: ClusterId, term: u64) {
    let is_later = |owners: &Arc<Owners>| owners.get(&id).is_some_and(|owner| owner.term > term);
    if owners.wait_for(is_later).await.is_err() {
        // The task of the realm has ended: nothing changes any more.
        std::future::pending::<()>().await;
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
    if contains(&broadcasts.snapshot.load(), &numbers, None) {
        return result;
    }
    // Announcements that the owner has shown are shown here, too.
    link.post(ClusterMessage::PublishedByOwner(published));
    match requester {
        Requester::Vm => drop(wait_for_copy((broadcasts, None), &numbers, VM_COPY_WAIT).await),
        Requester::Operator => wait_for_copy((broadcasts, None), &numbers, COPY_WAIT).await?,
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

/// Gives a request of an operator without a key an id, so that it can be repeated after a lost answer.
fn give_id(request: &mut ClusterRequest) -> Result<(), ControlError> {
    let Some(context) = request.context_mut().filter(|context| !context.has_receipt()) else { return Ok(()) };
    let mut id = [0; 16];
    getrandom::fill(&mut id).map_err(|_| ControlError::Unavailable)?;
    context.forwarded = Some(ForwardId(id));
    Ok(())
}
