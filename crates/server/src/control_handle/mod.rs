//! Handle to the drivers for the rest of the server.
//!
//! Changes are requests to the driver of a cluster, or to that of the shared stream. Reads use the snapshot of the last
//! commits and never wait for a driver. A request that was planned on a snapshot carries the revision of its cluster:
//! if the cluster has changed, it is planned again.

mod backing_up;
mod cluster_changes;
mod joining;
mod opening;
mod planning;
mod process;
mod reading;
mod replacing;
mod webhook_progress;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arc_swap::ArcSwapOption;
use forewarn_control::request::{
    Administration, ClusterRequest, CommandBatch, DecidedChanges, Reply, Request, RequestContext,
    SharedRequest,
};
use forewarn_control::{ClusterId, ControlError, ControlState, Outcome, ScaleSetCommand};
use forewarn_lifecycle::{Command, Now, Seed};
use forewarn_metadata::Directory;
use forewarn_store::{AuditCheck, CopyError};
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::broadcasts::Broadcasts;
use crate::clock::{Clock, ClockKind};
use crate::clusters::{ClusterLink, ClusterRegistry};
use crate::driver::DriverContext;
use crate::gate::Gate;
use crate::hypervisor::{HostWorker, Hypervisor};
use crate::initial_state::InitialState;
use crate::journal::JournalHandle;
use crate::message::{ClockCommand, ClockMessage, ClusterMessage, SharedMessage};
use crate::realm::{RealmAdmin, RealmHandle};
use crate::rejections::RecentRejections;
use crate::replacement::{ReplacementHooks, ServerState};
use crate::snapshot::Snapshot;
use crate::supervisor::{Inboxes, Supervisor, SupervisorRequest};

/// A handle to the drivers, and to one cluster.
#[derive(Clone)]
pub struct ControlHandle {
    /// The cluster of requests; by default the first one.
    cluster: ClusterId,
    parts: Arc<ControlParts>,
}

/// Everything that the handles of a server share.
struct ControlParts {
    clusters: ClusterRegistry,
    clock_messages: mpsc::Sender<ClockMessage>,
    /// Requests to the supervisor. The server stops when no handle is left.
    requests: mpsc::Sender<SupervisorRequest>,
    /// Closed while the state is replaced.
    gate: Gate,
    /// The state to which a reset returns. None if the server is durable.
    kept_state: ArcSwapOption<ServerState>,
    hooks: ReplacementHooks,
    context: DriverContext,
    /// The journal outlives the process.
    is_durable: bool,
    rejections: RecentRejections,
    /// Held while a request to the shared stream is planned and decided, so that planned requests do not outdate each
    /// other.
    planning: Arc<Mutex<()>>,
    /// The runtime of the drivers.
    runtime: tokio::runtime::Handle,
    /// The realm that this server belongs to.
    realm: Option<RealmHandle>,
}

/// Messages that wait for the driver of the shared stream, or of the clock.
const MESSAGES_WAITING_MAX: usize = 1_024;

impl std::fmt::Debug for ControlHandle {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ControlHandle").field("cluster", &self.cluster).finish_non_exhaustive()
    }
}

impl ControlHandle {
    /// Starts the drivers of a new, simulated server in memory.
    #[must_use]
    pub fn simulated(seed: Seed, clock: Clock) -> Self {
        Self::simulated_on(ControlState::new(seed), seed, clock)
    }

    /// Starts the drivers of a simulated state in memory.
    #[must_use]
    pub fn simulated_on(state: ControlState, seed: Seed, clock: Clock) -> Self {
        Self::spawn(
            &InitialState::new(state, seed),
            JournalHandle::in_memory(),
            clock,
            Hypervisor::simulated(),
        )
    }

    /// Starts the drivers of a new server in memory, on the current runtime.
    #[must_use]
    pub fn in_memory(seed: Seed, clock: Clock, hypervisor: Hypervisor) -> Self {
        let initial = InitialState::new(ControlState::new(seed), seed);
        Self::spawn(&initial, JournalHandle::in_memory(), clock, hypervisor)
    }

    /// Starts the drivers and their supervisor on the current runtime.
    fn spawn(initial: &InitialState, journal: JournalHandle, clock: Clock, hypervisor: Hypervisor) -> Self {
        let (control, supervising) = Self::prepare(initial, journal, clock, hypervisor, None);
        tokio::spawn(supervising);
        control
    }

    /// Starts the drivers on the current runtime. The supervisor has to be run.
    fn prepare(
        initial: &InitialState,
        journal: JournalHandle,
        clock: Clock,
        hypervisor: Hypervisor,
        realm: Option<RealmHandle>,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (shared, shared_inbox) = mpsc::channel(MESSAGES_WAITING_MAX);
        let (clock_messages, clock_inbox) = mpsc::channel(MESSAGES_WAITING_MAX);
        let (requests, supervisor_inbox) = mpsc::channel(1);
        let broadcasts = Broadcasts::new(Snapshot::new(initial.state.clone(), initial.identity));
        broadcasts.begin(journal.audit_reader(), initial.audit_head);
        let (identity, readers) = (initial.identity, initial.readers);
        let kept_state = kept_state(initial, &journal, &clock);
        let gate = Gate::of(&clock);
        let machines = (clock, hypervisor);
        let context = DriverContext::new(identity, machines, broadcasts, shared.downgrade(), readers);
        let parts = ControlParts {
            clusters: ClusterRegistry::default(),
            clock_messages: clock_messages.clone(),
            requests,
            gate,
            kept_state: ArcSwapOption::new(kept_state),
            hooks: ReplacementHooks::default(),
            context: context.clone(),
            is_durable: journal.is_durable(),
            rejections: RecentRejections::default(),
            planning: Arc::default(),
            runtime: tokio::runtime::Handle::current(),
            realm,
        };
        let control = Self { cluster: ClusterId::DEFAULT, parts: Arc::new(parts) };
        let inboxes = Inboxes { shared: shared_inbox, clock: clock_inbox };
        let senders = (shared, clock_messages);
        let clusters = control.parts.clusters.clone();
        let supervisor = Supervisor::start(initial, journal, context, clusters, senders, inboxes);
        (control, supervisor.run(supervisor_inbox))
    }

    /// A handle to another cluster, which may not exist.
    #[must_use]
    pub fn of(&self, cluster: ClusterId) -> Self {
        Self { cluster, parts: Arc::clone(&self.parts) }
    }

    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.parts.context.clock
    }

    /// Returns true if persons carry out the steps on hosts.
    #[must_use]
    pub fn has_manual_host_work(&self) -> bool {
        matches!(self.parts.context.hypervisor.hosts, HostWorker::Person { .. })
    }

    /// Callers of the metadata endpoint.
    #[must_use]
    pub fn directory(&self) -> &Arc<Directory> {
        &self.parts.context.directory
    }

    /// Requests that were rejected lately, for explanations.
    #[must_use]
    pub fn rejections(&self) -> &RecentRejections {
        &self.parts.rejections
    }

    /// Sends a request. The reply comes once the result is durable and published.
    ///
    /// # Errors
    /// Returns an error if the request is rejected, or the journal cannot be written.
    pub async fn request(&self, request: Request) -> Result<Reply, ControlError> {
        self.check_engine()?;
        // Those of a VM go to its owner, which may reach the engine although this server does not.
        let is_of_vm = matches!(request, Request::Cluster(_, ClusterRequest::Rules(_)));
        match self.parts.realm.as_ref().filter(|_| !is_of_vm) {
            None => self.send_request(request).await,
            Some(realm) => realm.while_engine_answers(self.send_request(request)).await,
        }
    }

    async fn send_request(&self, request: Request) -> Result<Reply, ControlError> {
        let open = self.parts.gate.enter().await;
        match request {
            Request::Cluster(id, request) => self.request_cluster(id, request).await,
            Request::Shared(SharedRequest::Administer {
                change: Administration::RemoveCluster(cluster),
                context,
            }) => self.remove_cluster(cluster, context, open).await,
            Request::Shared(SharedRequest::Administer {
                change: Administration::RenameCluster { cluster, name },
                context,
            }) => self.rename_cluster(cluster, name, context).await,
            Request::Shared(request) => self.parts.context.request_shared(request).await,
        }
    }

    /// Sends a request to the owner of a cluster: a driver of this server, or of another one of the realm.
    async fn request_cluster(&self, id: ClusterId, request: ClusterRequest) -> Result<Reply, ControlError> {
        let link = self.link(id)?;
        match &self.parts.realm {
            None => link.request(request).await,
            Some(realm) => realm.request((&link, &self.parts.context.broadcasts), id, request).await,
        }
    }

    /// Waits until reads on this server see everything that was committed before this call, on any server of the realm.
    ///
    /// # Errors
    /// Returns an error if that cannot be known now: the engine of the realm does not answer.
    pub async fn confirm_reads(&self) -> Result<(), ControlError> {
        self.check_engine()?;
        match &self.parts.realm {
            None => Ok(()),
            Some(realm) => realm.confirm(&self.parts.context.broadcasts, &self.parts.clusters).await,
        }
    }

    /// Fails if the engine of the realm was restored from an older backup.
    pub(crate) fn check_engine(&self) -> Result<(), ControlError> {
        let restored = self.realm_admin().ok().and_then(RealmAdmin::restored);
        restored.map_or(Ok(()), |reason| Err(ControlError::EngineRestored(reason)))
    }

    fn link(&self, id: ClusterId) -> Result<ClusterLink, ControlError> {
        self.parts.clusters.get(id).ok_or(ControlError::NoSuchCluster)
    }

    /// A request to the cluster of this handle.
    #[must_use]
    pub fn to_cluster(&self, request: ClusterRequest) -> Request {
        Request::Cluster(self.cluster, request)
    }

    async fn cluster_request(&self, request: ClusterRequest) -> Result<Reply, ControlError> {
        self.request(self.to_cluster(request)).await
    }

    /// Sends a command of the rules.
    ///
    /// # Errors
    /// Returns an error if the rules reject it, or the journal cannot be written.
    pub async fn submit(&self, command: Command) -> Result<DecidedChanges, ControlError> {
        match self.cluster_request(ClusterRequest::Rules(command)).await? {
            Reply::Decided(decided) => Ok(decided),
            Reply::Outcome(_) | Reply::Repeated(_) | Reply::Transacted(_) | Reply::Done => {
                Err(ControlError::Unavailable)
            }
        }
    }

    /// Sends commands by name: all of them are carried out, or none.
    ///
    /// # Errors
    /// Returns an error if one is rejected, or the journal cannot be written.
    pub async fn run_commands(&self, batch: impl Into<CommandBatch>) -> Result<Outcome, ControlError> {
        self.cluster_request(ClusterRequest::Commands(batch.into())).await.and_then(outcome)
    }

    /// Sends a change of a scale set.
    ///
    /// # Errors
    /// Returns an error if it is rejected, or the journal cannot be written.
    pub async fn change_scale_set(
        &self,
        change: ScaleSetCommand,
        context: RequestContext,
    ) -> Result<Outcome, ControlError> {
        self.cluster_request(ClusterRequest::ScaleSet { command: change, context }).await.and_then(outcome)
    }

    /// Sends a change of clusters, tokens or webhooks.
    ///
    /// # Errors
    /// Returns an error if it is rejected, or the journal cannot be written.
    pub async fn administer(
        &self,
        change: Administration,
        context: RequestContext,
    ) -> Result<Outcome, ControlError> {
        let request = SharedRequest::Administer { change, context };
        self.request(Request::Shared(request)).await.and_then(outcome)
    }

    /// Waits until everything that is due now is done, in all clusters that have not failed.
    ///
    /// # Errors
    /// Returns an error if the drivers have ended.
    pub async fn settled(&self) -> Result<(), ControlError> {
        let _open = self.parts.gate.enter().await;
        let running = self.parts.clusters.all();
        let settled = self.parts.clusters.ask_all(|reply| ClusterMessage::Settle { reply }).await;
        let is_running = |link: &ClusterLink| link.failure.get().is_none();
        if settled.is_empty() && running.values().any(is_running) {
            return Err(ControlError::Unavailable);
        }
        Ok(())
    }

    /// Waits until the driver of the shared stream responds.
    ///
    /// # Errors
    /// Returns an error if it has ended, or every cluster has failed.
    pub async fn responds(&self) -> Result<(), ControlError> {
        let failures = self.parts.clusters.failures();
        if let Some((_, reason)) =
            failures.first().filter(|_| failures.len() == self.parts.clusters.all().len())
        {
            return Err(ControlError::ClusterFailed(reason.clone()));
        }
        let shared = self.parts.context.shared.upgrade().ok_or(ControlError::Unavailable)?;
        let (reply, response) = oneshot::channel();
        shared.send(SharedMessage::Ping { reply }).await.map_err(|_| ControlError::Unavailable)?;
        response.await.map_err(|_| ControlError::Unavailable)
    }

    /// The reason why the cluster of this handle has failed, if it has.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.parts.clusters.get(self.cluster)?.failure.get().cloned()
    }

    /// Clusters whose driver has failed, with the reasons.
    #[must_use]
    pub fn failed_clusters(&self) -> Vec<(ClusterId, String)> {
        self.parts.clusters.failures()
    }

    /// Sets a virtual clock. The reply comes once everything that is due on the way is done.
    ///
    /// # Errors
    /// Returns an error if the clock is real.
    pub async fn drive(&self, command: ClockCommand) -> Result<Now, ControlError> {
        self.drive_for(command, RequestContext::default()).await
    }

    /// Sets a virtual clock for a caller.
    ///
    /// # Errors
    /// Returns an error if the clock is real.
    pub async fn drive_for(
        &self,
        command: ClockCommand,
        context: RequestContext,
    ) -> Result<Now, ControlError> {
        if self.parts.context.clock.kind() != ClockKind::Virtual {
            return Err(ControlError::RealClock);
        }
        let _open = self.parts.gate.enter().await;
        let (reply, result) = oneshot::channel();
        let message = ClockMessage::Set { command, context: Box::new(context), reply };
        self.parts.clock_messages.send(message).await.map_err(|_| ControlError::Unavailable)?;
        result.await.map_err(|_| ControlError::Unavailable)?
    }

    /// Reason why the journal cannot be written. None if it can.
    #[must_use]
    pub fn write_error(&self) -> Option<String> {
        self.parts.context.broadcasts.write_error.borrow().clone()
    }

    /// Results of the verification of the audit log since the journal was opened, about a second old.
    #[must_use]
    pub fn audit_check(&self) -> AuditCheck {
        self.parts.context.broadcasts.audit_check.borrow().clone()
    }

    /// Number of steps of the wall clock, and of pauses of the process, since the start.
    #[must_use]
    pub fn clock_steps(&self) -> u64 {
        self.parts.context.broadcasts.clock_steps.load(Ordering::Relaxed)
    }

    /// The number of actions that failed since the start, in all clusters.
    pub(crate) fn failed_actions(&self) -> u64 {
        self.parts.context.broadcasts.failed_actions.load(Ordering::Relaxed)
    }

    /// Copies the journal to a file that does not exist yet.
    ///
    /// # Errors
    /// Returns an error if the journal is in memory, or the copy cannot be written.
    pub async fn copy(&self, to: PathBuf) -> Result<(), CopyError> {
        let (reply, result) = oneshot::channel();
        match self.parts.context.shared.upgrade() {
            Some(shared) => drop(shared.send(SharedMessage::Copy { to, reply }).await),
            None => return Err(CopyError::Closed),
        }
        result.await.unwrap_or(Err(CopyError::Closed))
    }

    /// Stops the drivers: everything that was answered is durable, and the journal is unlocked.
    pub async fn stop(&self) {
        // An engine that does not answer would keep the drivers for ever.
        self.parts.realm.iter().for_each(|realm| realm.realm.give_up_commits());
        let (reply, stopped) = oneshot::channel();
        // No reply: they have stopped already.
        drop(self.parts.requests.send(SupervisorRequest::Stop { reply }).await);
        drop(stopped.await);
    }
}

/// The state to which a reset of a server in memory returns, unless another one is kept.
fn kept_state(initial: &InitialState, journal: &JournalHandle, clock: &Clock) -> Option<Arc<ServerState>> {
    let log = journal.audit_reader().recent_log().filter(|_| !journal.is_durable())?;
    let (clock, speed) = (clock.now(), clock.speed());
    Some(Arc::new(ServerState {
        state: initial.state.clone(),
        identity: initial.identity,
        clock,
        speed,
        log,
    }))
}

fn outcome(reply: Reply) -> Result<Outcome, ControlError> {
    match reply {
        Reply::Outcome(outcome) | Reply::Repeated(outcome) => Ok(outcome),
        Reply::Transacted(transacted) => Ok(transacted.outcome),
        Reply::Decided(_) | Reply::Done => Err(ControlError::Unavailable),
    }
}
