//! Handle to the driver for the rest of the server.
//!
//! Changes are requests to the driver. Reads use the snapshot of the last commit and never wait for the driver. A
//! request that was planned on a snapshot carries the revision of its cluster: if the cluster has changed, it is
//! planned again.

mod opening;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use forewarn_control::ClusterId;
use forewarn_control::decision::find_refused;
use forewarn_control::request::{
    Administration, ClusterRequest, CommandBatch, DecidedChanges, Reply, Request, RequestContext,
    SharedRequest, Transaction, TransactionOutcome,
};
use forewarn_control::shared::{Progress, SharedState};
use forewarn_control::{
    AuditEntry, Chain, ControlError, ControlState, Environment, HypervisorKind, NamedCommand, Outcome,
    Permit, RefusedCommand, ScaleSetCommand,
};
use forewarn_lifecycle::{Command, Now, Seed};
use forewarn_metadata::Directory;
use forewarn_store::{AuditBatch, AuditQuery, CopyError, ReadError};
use tokio::sync::{Mutex, broadcast, mpsc, oneshot, watch};

use crate::broadcasts::Broadcasts;
use crate::clock::{Clock, ClockKind};
use crate::driver::Driver;
use crate::hypervisor::Hypervisor;
use crate::initial_state::InitialState;
use crate::journal::JournalHandle;
use crate::message::{ClockCommand, Message};
use crate::rejections::RecentRejections;
use crate::snapshot::{Snapshot, State};

/// A handle to the driver, and to one cluster.
#[derive(Clone, Debug)]
pub struct ControlHandle {
    /// The cluster of requests; by default the first one.
    cluster: ClusterId,
    messages: mpsc::Sender<Message>,
    clock: Clock,
    directory: Arc<Directory>,
    broadcasts: Broadcasts,
    hypervisor: HypervisorKind,
    rejections: Arc<RecentRejections>,
    /// Held while a request is planned and decided, so that planned requests do not outdate each other.
    planning: Arc<Mutex<()>>,
}

/// A revision that no state has.
const NO_REVISION: u64 = u64::MAX;

/// Attempts to plan a request while the cluster keeps changing.
const PLANS_MAX: usize = 64;

/// Aborts the process if the driver panics: the service manager restarts it from the journal.
struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!("driver panicked; aborting");
            std::process::abort();
        }
    }
}

/// Messages that wait for the driver.
const MESSAGES_WAITING_MAX: usize = 1_024;

impl ControlHandle {
    /// Starts the driver of a new, simulated cluster in memory.
    #[must_use]
    pub fn simulated(seed: Seed, clock: Clock) -> Self {
        Self::simulated_on(ControlState::new(seed), seed, clock)
    }

    /// Starts the driver of a simulated state in memory.
    #[must_use]
    pub fn simulated_on(state: ControlState, seed: Seed, clock: Clock) -> Self {
        let journal = JournalHandle::in_memory();
        let (control, driving) =
            Self::prepare(InitialState::new(state, seed), journal, clock, Hypervisor::Simulated);
        tokio::spawn(driving);
        control
    }

    /// Starts the driver of a new cluster in memory, on the current runtime.
    #[must_use]
    pub fn in_memory(seed: Seed, clock: Clock, hypervisor: Hypervisor) -> Self {
        let initial = InitialState::new(ControlState::new(seed), seed);
        let (control, driving) = Self::prepare(initial, JournalHandle::in_memory(), clock, hypervisor);
        tokio::spawn(driving);
        control
    }

    fn prepare(
        initial: InitialState,
        journal: JournalHandle,
        clock: Clock,
        hypervisor: Hypervisor,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (messages, inbox) = mpsc::channel(MESSAGES_WAITING_MAX);
        let directory = Arc::new(Directory::default());
        let broadcasts = Broadcasts::new(Snapshot::new(initial.state.clone(), initial.identity));
        broadcasts.set_audit_reader(journal.audit_reader());
        let kind = hypervisor.kind();
        let own = messages.downgrade();
        let machines = (clock.clone(), hypervisor);
        let driver = Driver::new(initial, journal, machines, Arc::clone(&directory), broadcasts.clone(), own);
        let control = Self {
            cluster: ClusterId::DEFAULT,
            messages,
            clock,
            directory,
            broadcasts,
            hypervisor: kind,
            rejections: Arc::default(),
            planning: Arc::default(),
        };
        let driving = async move {
            let _abort_on_panic = AbortOnPanic;
            driver.run(inbox).await;
        };
        (control, driving)
    }

    /// A handle to another cluster, which may not exist.
    #[must_use]
    pub fn of(&self, cluster: ClusterId) -> Self {
        Self { cluster, ..self.clone() }
    }

    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Callers of the metadata endpoint.
    #[must_use]
    pub fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    /// Requests that were rejected lately, for explanations.
    #[must_use]
    pub fn rejections(&self) -> &RecentRejections {
        &self.rejections
    }

    /// Sends a request. The reply comes once the result is durable and published.
    ///
    /// # Errors
    /// Returns an error if the request is rejected, or the journal cannot be written.
    pub async fn request(&self, request: Request) -> Result<Reply, ControlError> {
        self.call(|reply| Message::Request { request, reply }).await?
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
        let _planning = self.planning.lock().await;
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
                Err(ControlError::Outdated) => {}
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
        let _planning = self.planning.lock().await;
        for _ in 0..PLANS_MAX {
            let checked = self.look(&check)?;
            let revision = checked.as_ref().copied().unwrap_or(NO_REVISION);
            match (self.request(request(revision)).await, checked) {
                (Err(ControlError::Outdated), Ok(_)) => {}
                (Err(ControlError::Outdated), Err(failed)) => return Err(failed),
                (reply, _) => return reply.and_then(outcome),
            }
        }
        Err(ControlError::Outdated)
    }

    /// Records that a webhook has confirmed its subscription.
    ///
    /// # Errors
    /// Returns an error if the journal cannot be written.
    pub(crate) async fn confirm_webhook(
        &self,
        webhook: u32,
        per_minute: Option<u32>,
    ) -> Result<(), ControlError> {
        let request = SharedRequest::ConfirmWebhook { webhook, per_minute };
        self.request(Request::Shared(request)).await.map(drop)
    }

    /// Records messages that were delivered to webhooks.
    ///
    /// # Errors
    /// Returns an error if the journal cannot be written.
    pub(crate) async fn advance_webhooks(&self, reports: Vec<(u32, Progress)>) -> Result<(), ControlError> {
        self.request(Request::Shared(SharedRequest::AdvanceWebhooks(reports))).await.map(drop)
    }

    /// The state that clusters share: names, tokens, webhooks, receipts, resources.
    #[must_use]
    pub fn shared(&self) -> Arc<SharedState> {
        self.broadcasts.snapshot.load().state.shared_arc()
    }

    /// Checks that the token behind a permit is still valid, with the same role and scope.
    #[must_use]
    pub fn admits(&self, permit: &Permit) -> bool {
        let shared = self.shared();
        permit.stands(|number| shared.find_token(number), self.clock.now().wall)
    }

    /// A handle to the cluster of that name.
    ///
    /// # Errors
    /// Returns an error if there is none.
    pub fn named(&self, cluster: &str) -> Result<Self, ControlError> {
        let found = self.shared().cluster_named(cluster).ok_or(ControlError::NoSuchCluster);
        found.map(|cluster| self.of(cluster))
    }

    /// Decides commands without carrying them out.
    ///
    /// # Errors
    /// Returns an error if one would be rejected.
    pub fn rehearse(&self, commands: &[NamedCommand]) -> Result<(), ControlError> {
        self.find_refused(commands).map_or(Ok(()), |refused| Err(refused.error))
    }

    /// Finds the first command that would be rejected.
    #[must_use]
    pub fn find_refused(&self, commands: &[NamedCommand]) -> Option<RefusedCommand> {
        let snapshot = self.snapshot();
        let environment = Environment {
            now: self.clock.now(),
            identity: snapshot.identity,
            audit: Chain::default(),
            hypervisor: self.hypervisor,
            revision: 0,
            jammed: &std::collections::BTreeSet::new(),
        };
        find_refused(&snapshot.state, &environment, self.cluster, commands)
    }

    /// Entries that are added to the audit log from now on, of all clusters.
    #[must_use]
    pub fn entries(&self) -> broadcast::Receiver<Arc<AuditEntry>> {
        self.broadcasts.audit_entries.subscribe()
    }

    /// Number of the last audit entry whose consequences are published.
    #[must_use]
    pub(crate) fn published_entry(&self) -> u64 {
        self.broadcasts.published()
    }

    /// Reads the audit log, without the driver.
    ///
    /// # Errors
    /// Returns an error if it cannot be read now.
    pub async fn read_audit_log(&self, query: AuditQuery) -> Result<AuditBatch, ReadError> {
        let (reply, result) = oneshot::channel();
        // The caller may have gone.
        self.broadcasts.reader.load().read_then(query, move |page| drop(reply.send(page)));
        result.await.unwrap_or(Err(ReadError::Closed))
    }

    /// A number that grows with every commit.
    #[must_use]
    pub fn commits(&self) -> watch::Receiver<u64> {
        self.broadcasts.commits.subscribe()
    }

    /// The state after the last commit.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.broadcasts.snapshot.load_full()
    }

    /// Reads the cluster as it was after the last commit. It does not wait for the driver.
    ///
    /// # Errors
    /// Returns an error if there is no such cluster.
    pub fn look<T>(&self, look: impl FnOnce(&State<'_>) -> T) -> Result<T, ControlError> {
        let snapshot = self.snapshot();
        let state = snapshot.cluster(self.cluster, self.clock.now()).ok_or(ControlError::NoSuchCluster)?;
        Ok(look(&state))
    }

    /// Waits until everything that is due now is done.
    ///
    /// # Errors
    /// Returns an error if the driver has ended.
    pub async fn settled(&self) -> Result<(), ControlError> {
        self.call(|reply| Message::Settle { reply }).await
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
        if self.clock.kind() == ClockKind::Real {
            return Err(ControlError::RealClock);
        }
        self.call(|reply| Message::SetClock { command, context, reply }).await?
    }

    /// Reason why the journal cannot be written. None if it can.
    #[must_use]
    pub fn write_error(&self) -> Option<String> {
        self.broadcasts.write_error.borrow().clone()
    }

    /// Number of steps of the wall clock, and of pauses of the process, since the start.
    #[must_use]
    pub fn clock_steps(&self) -> u64 {
        self.broadcasts.clock_steps.load(Ordering::Relaxed)
    }

    /// Copies the journal to a file that does not exist yet.
    ///
    /// # Errors
    /// Returns an error if the journal is in memory, or the copy cannot be written.
    pub async fn copy(&self, to: PathBuf) -> Result<(), CopyError> {
        self.call(|reply| Message::Copy { to, reply }).await.unwrap_or(Err(CopyError::Closed))
    }

    /// Stops the driver: everything that was answered is durable, and the journal is unlocked.
    pub async fn stop(&self) {
        // No reply: it has stopped already.
        drop(self.call(|reply| Message::Stop { reply }).await);
    }

    async fn call<T>(&self, message: impl FnOnce(oneshot::Sender<T>) -> Message) -> Result<T, ControlError> {
        let (reply, result) = oneshot::channel();
        self.messages.send(message(reply)).await.map_err(|_| ControlError::Unavailable)?;
        result.await.map_err(|_| ControlError::Unavailable)
    }
}

fn outcome(reply: Reply) -> Result<Outcome, ControlError> {
    match reply {
        Reply::Outcome(outcome) | Reply::Repeated(outcome) => Ok(outcome),
        Reply::Transacted(transacted) => Ok(transacted.outcome),
        Reply::Decided(_) | Reply::Done => Err(ControlError::Unavailable),
    }
}
