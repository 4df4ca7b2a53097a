//! The handle by which the rest of the server speaks to the driver.
//!
//! Changes are requests, which are data, sent to the driver. Reads use the snapshot of the last commit and never wait for the
//! driver. A request that was planned on a snapshot carries the revision of its cluster: if the cluster has changed, it is
//! planned again.

mod opening;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use forewarn_control::ClusterId;
use forewarn_control::decision::find_refused;
use forewarn_control::request::{
    Administration, ClusterRequest, CommandBatch, Decided, Reply, Request, RequestContext, SharedRequest,
    Transacted, Transaction,
};
use forewarn_control::shared::{Progress, SharedState};
use forewarn_control::{
    AuditEntry, Chain, ControlError, ControlState, Environment, HypervisorKind, NamedCommand, Outcome,
    Permit, RefusedCommand, ScaleSetCommand,
};
use forewarn_lifecycle::{Command, Now, Seed};
use forewarn_metadata::Directory;
use forewarn_store::{AuditBatch, AuditQuery, CopyError, ReadFailed};
use tokio::sync::{Mutex, broadcast, mpsc, oneshot, watch};

use crate::broadcasts::Broadcasts;
use crate::clock::{Clock, Kind};
use crate::driver::Driver;
use crate::found::Found;
use crate::hypervisor::Hypervisor;
use crate::journal::JournalHandle;
use crate::message::{ClockCommand, Message};
use crate::rejections::RecentRejections;
use crate::snapshot::{Snapshot, State};

/// A handle to the driver, and to one cluster.
#[derive(Clone, Debug)]
pub struct ControlHandle {
    /// The cluster that requests are to: the first one, if no other is chosen.
    cluster: ClusterId,
    messages: mpsc::Sender<Message>,
    clock: Clock,
    directory: Arc<Directory>,
    broadcasts: Broadcasts,
    hypervisor: HypervisorKind,
    rejections: Arc<RecentRejections>,
    /// Held while a request is planned and decided: requests that are planned do not outdate each other.
    planning: Arc<Mutex<()>>,
}

/// A revision that no state has.
const NO_REVISION: u64 = u64::MAX;

/// Attempts to plan a request while the cluster keeps changing.
const PLANS_MAX: usize = 64;

/// Ends the process if the driver panics: a supervisor starts another one, which continues from the journal.
struct Lifeline;

impl Drop for Lifeline {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!("the driver has panicked");
            std::process::abort();
        }
    }
}

/// Messages that wait for the driver.
const MESSAGES_WAITING_MAX: usize = 1_024;

impl ControlHandle {
    /// Starts the driver of a new, simulated cluster in memory.
    #[must_use]
    pub fn pretending(seed: Seed, clock: Clock) -> Self {
        Self::pretending_on(ControlState::new(seed), seed, clock)
    }

    /// Starts the driver of a simulated state in memory.
    #[must_use]
    pub fn pretending_on(state: ControlState, seed: Seed, clock: Clock) -> Self {
        let journal = JournalHandle::in_memory();
        let (engine, driving) = Self::prepare(Found::new(state, seed), journal, clock, Hypervisor::Simulated);
        tokio::spawn(driving);
        engine
    }

    /// Starts the driver of a new cluster in memory, on the current runtime.
    #[must_use]
    pub fn in_memory(seed: Seed, clock: Clock, hypervisor: Hypervisor) -> Self {
        let found = Found::new(ControlState::new(seed), seed);
        let (engine, driving) = Self::prepare(found, JournalHandle::in_memory(), clock, hypervisor);
        tokio::spawn(driving);
        engine
    }

    fn prepare(
        found: Found,
        journal: JournalHandle,
        clock: Clock,
        hypervisor: Hypervisor,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (messages, inbox) = mpsc::channel(MESSAGES_WAITING_MAX);
        let directory = Arc::new(Directory::default());
        let broadcasts = Broadcasts::new(Snapshot::new(found.state.clone(), found.identity));
        broadcasts.can_read(journal.trail_reader());
        let kind = hypervisor.kind();
        let own = messages.downgrade();
        let machines = (clock.clone(), hypervisor);
        let driver = Driver::new(found, journal, machines, Arc::clone(&directory), broadcasts.clone(), own);
        let engine = Self {
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
            let _lifeline = Lifeline;
            driver.run(inbox).await;
        };
        (engine, driving)
    }

    /// A handle to another cluster, which need not exist.
    #[must_use]
    pub fn of(&self, cluster: ClusterId) -> Self {
        Self { cluster, ..self.clone() }
    }

    /// The clock.
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
    /// When the request is refused, or nothing can be written.
    pub async fn request(&self, request: Request) -> Result<Reply, ControlError> {
        self.ask(|reply| Message::Request { request, reply }).await?
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
    /// When the rules refuse it, or nothing can be written.
    pub async fn submit(&self, command: Command) -> Result<Decided, ControlError> {
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
    /// When one is refused, or nothing can be written.
    pub async fn order(&self, batch: impl Into<CommandBatch>) -> Result<Outcome, ControlError> {
        self.cluster_request(ClusterRequest::Commands(batch.into())).await.and_then(outcome)
    }

    /// Sends a change of a scale set.
    ///
    /// # Errors
    /// When it is refused, or nothing can be written.
    pub async fn change_scale_set(
        &self,
        wish: ScaleSetCommand,
        context: RequestContext,
    ) -> Result<Outcome, ControlError> {
        self.cluster_request(ClusterRequest::ScaleSet { wish, context }).await.and_then(outcome)
    }

    /// Sends a change of clusters, tokens or webhooks.
    ///
    /// # Errors
    /// When it is refused, or nothing can be written.
    pub async fn administer(
        &self,
        change: Administration,
        context: RequestContext,
    ) -> Result<Outcome, ControlError> {
        let request = SharedRequest::Administer { change, context };
        self.request(Request::Shared(request)).await.and_then(outcome)
    }

    /// Plans a transaction on the state of the cluster, and sends it. If the cluster changes in between, it is planned again.
    ///
    /// # Errors
    /// When it is refused, the cluster changes too often, or nothing can be written. The inner error is that of the plan.
    pub async fn transact<T, E>(
        &self,
        context: RequestContext,
        plan: impl Fn(&State<'_>) -> Result<(Transaction, T), E>,
    ) -> Result<Result<(Transacted, T), E>, ControlError> {
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

    /// Checks a condition on the state of the cluster, and sends a request for the revision that the check returns. If the state
    /// changes in between, the condition is checked again. A request that was carried out before, under the same key, gets the
    /// same answer although the condition no longer holds.
    ///
    /// # Errors
    /// When the condition does not hold, the request is refused, the state changes too often, or nothing can be written.
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

    /// Records that a webhook wants messages.
    ///
    /// # Errors
    /// When nothing can be written.
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
    /// When nothing can be written.
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
    /// When there is none.
    pub fn named(&self, cluster: &str) -> Result<Self, ControlError> {
        let found = self.shared().cluster_named(cluster).ok_or(ControlError::NoSuchCluster);
        found.map(|cluster| self.of(cluster))
    }

    /// Decides commands without carrying them out.
    ///
    /// # Errors
    /// When one would be refused.
    pub fn rehearse(&self, commands: &[NamedCommand]) -> Result<(), ControlError> {
        self.find_refused(commands).map_or(Ok(()), |refused| Err(refused.error))
    }

    /// Finds the first command that would be refused.
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
        self.broadcasts.trail.subscribe()
    }

    /// Number of the last audit entry whose consequences are published.
    #[must_use]
    pub(crate) fn published_entry(&self) -> u64 {
        self.broadcasts.published()
    }

    /// Reads the audit log, without the driver.
    ///
    /// # Errors
    /// When it cannot be read now.
    pub async fn read_trail(&self, query: AuditQuery) -> Result<AuditBatch, ReadFailed> {
        let (reply, answer) = oneshot::channel();
        // The caller may have gone.
        self.broadcasts.reader.load().read_then(query, move |page| drop(reply.send(page)));
        answer.await.unwrap_or(Err(ReadFailed::Closed))
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
    /// When there is no such cluster.
    pub fn look<T>(&self, look: impl FnOnce(&State<'_>) -> T) -> Result<T, ControlError> {
        let snapshot = self.snapshot();
        let state = snapshot.cluster(self.cluster, self.clock.now()).ok_or(ControlError::NoSuchCluster)?;
        Ok(look(&state))
    }

    /// Waits until everything that is due now is done.
    ///
    /// # Errors
    /// When the driver has ended.
    pub async fn settled(&self) -> Result<(), ControlError> {
        self.ask(|reply| Message::Settle { reply }).await
    }

    /// Sets a virtual clock. The reply comes once everything that is due on the way is done.
    ///
    /// # Errors
    /// When the clock is real.
    pub async fn drive(&self, command: ClockCommand) -> Result<Now, ControlError> {
        self.drive_for(command, RequestContext::default()).await
    }

    /// Sets a virtual clock for a caller.
    ///
    /// # Errors
    /// When the clock is real.
    pub async fn drive_for(
        &self,
        command: ClockCommand,
        context: RequestContext,
    ) -> Result<Now, ControlError> {
        if self.clock.kind() == Kind::Real {
            return Err(ControlError::RealClock);
        }
        self.ask(|reply| Message::SetClock { command, context, reply }).await?
    }

    /// The reason why nothing can be written at the moment.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.broadcasts.trouble.borrow().clone()
    }

    /// Number of steps of the wall clock, and of pauses of the process, since the start.
    #[must_use]
    pub fn clock_steps(&self) -> u64 {
        self.broadcasts.clock_steps.load(Ordering::Relaxed)
    }

    /// Copies the journal to a file that does not exist yet.
    ///
    /// # Errors
    /// When the journal is in memory, or the copy cannot be written.
    pub async fn copy(&self, to: PathBuf) -> Result<(), CopyError> {
        self.ask(|reply| Message::Copy { to, reply }).await.unwrap_or(Err(CopyError::Closed))
    }

    /// Stops the driver: everything that was answered is durable, and the journal is free for another.
    pub async fn stop(&self) {
        // If there is no answer, it has stopped already.
        drop(self.ask(|reply| Message::Stop { reply }).await);
    }

    async fn ask<T>(&self, message: impl FnOnce(oneshot::Sender<T>) -> Message) -> Result<T, ControlError> {
        let (reply, answer) = oneshot::channel();
        self.messages.send(message(reply)).await.map_err(|_| ControlError::Unavailable)?;
        answer.await.map_err(|_| ControlError::Unavailable)
    }
}

fn outcome(reply: Reply) -> Result<Outcome, ControlError> {
    match reply {
        Reply::Outcome(outcome) | Reply::Repeated(outcome) => Ok(outcome),
        Reply::Transacted(transacted) => Ok(transacted.outcome),
        Reply::Decided(_) | Reply::Done => Err(ControlError::Unavailable),
    }
}
