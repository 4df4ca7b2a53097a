//! The driver of a cluster: the one task that owns its state.
//!
//! It takes messages in batches. It decides each request, appends the records of the batch to the journal, and then
//! publishes, replies and acts. Between batches it sleeps until something is due. While a commit is under way, further
//! messages wait; drivers of other clusters go on.

mod batch;
mod claims;
mod clock_hold;
mod context;
#[cfg(test)]
mod fold_tests;
mod following;
#[cfg(test)]
mod following_tests;
mod installing;
#[cfg(test)]
mod isolation_tests;
mod notice;
mod publication;
#[cfg(test)]
mod realm_tests;
mod recovery;
#[cfg(test)]
mod refusal_tests;
mod shown;
mod task;
#[cfg(test)]
mod tests;
mod time;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use forewarn_control::request::{ClusterRequest, Reply};
use forewarn_control::{
    AuditEntry, Chain, ClusterId, ClusterState, ControlError, Decision, Environment, decide_in_cluster,
};
use forewarn_hypervisor::DriverRequest;
use forewarn_lifecycle::{Action, MaintenanceId, Now, Target, simulator};
use forewarn_store::StreamState;
use tokio::sync::{Notify, mpsc, oneshot};

use crate::cluster_runtime::ClusterRuntime;
use crate::host_reminder::HostReminder;
use crate::hypervisor::Performer;
use crate::impact_task::ImpactTask;
use crate::initial_state::Readers;
use crate::journal::StreamJournal;
use crate::long_work::{drop_in_background, run_long_work};
use crate::message::{ClusterMessage, ImpactEnd, PendingReplies, ReplySender};
use crate::role::Role;
use batch::Batch;
pub(crate) use context::DriverContext;
use following::HeldBatches;
pub(crate) use following::announced_at_end;
pub(crate) use recovery::first_revision;
use shown::UnshownBatches;
pub(crate) use task::start_cluster;
#[cfg(test)]
pub(crate) use tests::{SlowDisk, solo_restart};

pub(crate) struct Driver {
    id: ClusterId,
    state: Arc<ClusterState>,
    journal: StreamJournal,
    context: DriverContext,
    runtime: ClusterRuntime,
    own: mpsc::WeakSender<ClusterMessage>,
    stopping: Option<Stopping>,
    /// The caller that waits for the end of the driver of a state that is replaced.
    replaced: Option<oneshot::Sender<()>>,
    /// The end of the audit log of the cluster.
    audit_end: Chain,
    /// The last audit entry that readers may see.
    audit_shown: Chain,
    /// Announcements of earlier batches that no VM may have read.
    unread: BTreeSet<MaintenanceId>,
    readers: Readers,
    /// The clocks as they were last recorded.
    recorded_clock: Now,
    batch: Batch,
    /// Replies to requests that are durable and published.
    replies: PendingReplies,
    /// Replies to requests whose batch is in the log, after another server has taken over: sent once the batch with that
    /// number is copied and published.
    logged_replies: Option<(u64, PendingReplies)>,
    /// A violated invariant: the driver decides nothing more.
    violation: Option<String>,
    /// Audit entries that are durable and not broadcast, after the position of the first.
    durable: Option<(u64, Vec<Arc<AuditEntry>>)>,
    /// Batches that are in the log and not published.
    held: HeldBatches,
    /// The state after the last append, and the end of its audit log.
    logged: (Arc<ClusterState>, Chain),
    /// Announcements that another server may not show.
    unshown: UnshownBatches,
    /// The last batch after which the owner has published its state.
    published_by_owner: u64,
    /// The last batch at the start, whose announcements the owner may not have shown.
    unsettled: Option<u64>,
    /// The audit log says that no event starts for the sake of the clock.
    is_hold_noted: bool,
}

/// A driver that fails between a commit and its publication leaves no gap in the audit log: readers of all clusters
/// would wait for it.
impl Drop for Driver {
    fn drop(&mut self) {
        // The next batch of the log may replace those that a follower hides, also after a restart.
        if self.journal.role() == Role::Owner || std::thread::panicking() {
            self.journal.show_all_entries();
        }
        if let Some((first_position, entries)) = self.durable.take() {
            self.context.broadcasts.publish_entries(first_position, entries);
        }
        // The cluster was removed, or has failed.
        self.settle_start();
    }
}

/// A caller that waits for the end of the driver.
struct Stopping {
    reply: oneshot::Sender<()>,
    /// Deadline of driver programs.
    until: Instant,
}

/// Records of a commit that take long to drop.
const MANY_RECORDS_MIN: usize = 256;

/// Messages in one batch.
const BATCH_MAX: usize = 256;

impl Driver {
    /// Runs until it is stopped, or no handle is left. Fails if an invariant is violated.
    pub(crate) async fn run(mut self, inbox: &mut mpsc::Receiver<ClusterMessage>) -> Result<(), String> {
        let mut messages = Vec::with_capacity(BATCH_MAX);
        {
            let _clock_stands = self.context.clock_gate.enter().await;
            self.resume().await;
        }
        loop {
            let sleep = tokio::time::sleep(self.until_next());
            tokio::select! {
                received = inbox.recv_many(&mut messages, BATCH_MAX) => {
                    if received == 0 {
                        return Ok(());
                    }
                }
                () = sleep => {}
            }
            let _clock_stands = self.context.clock_gate.enter().await;
            self.record_time_if_due().await;
            self.follow_readers();
            for message in messages.drain(..) {
                self.handle(message).await;
            }
            if let Some(reply) = self.replaced.take() {
                self.runtime.wake_impact_tasks();
                drop(self);
                // The caller may have gone.
                reply.send(()).ok();
                return Ok(());
            }
            if self.has_stopped().await {
                return Ok(());
            }
            self.check_journal();
            self.settle(self.context.clock.now()).await;
            if let Some(violation) = self.violation.take() {
                return Err(violation);
            }
        }
    }

    async fn handle(&mut self, message: ClusterMessage) {
        match message {
            ClusterMessage::Request { request, reply } => self.handle_request(request.into(), reply).await,
            ClusterMessage::DocumentsReadable { reply } => {
                self.documents_became_readable();
                self.batch.pending.waiting.push(reply);
            }
            ClusterMessage::Settle { reply } => {
                self.settle(self.context.clock.now()).await;
                reply.send(()).ok();
            }
            ClusterMessage::ImpactOver { work, target, end } => {
                self.batch.is_visible |= self.runtime.end_impact(work, target, end);
                // A suspended or barred action may have been wanted again before its task had ended.
                let is_open = end != ImpactEnd::Reported && !*self.context.stop.borrow();
                if let Some(action) = self.wanted_action(work, target).filter(|_| is_open) {
                    self.perform(self.context.clock.now(), action);
                }
            }
            ClusterMessage::IsWanted { work, target, reply } => {
                // The task may have ended.
                reply.send(self.wanted_action(work, target).is_some()).unwrap_or_default();
            }
            ClusterMessage::ImpactDelayed { work, target, reason } => {
                self.runtime.delay_impact(work, target, reason);
                self.runtime.times.is_unknown(work, target, self.context.clock.now().steady);
                self.batch.is_visible = true;
            }
            ClusterMessage::Logged(batch) => self.follow(*batch).await,
            ClusterMessage::Install(state) => self.install(*state).await,
            ClusterMessage::WrittenLog { limits, reply } => {
                // The caller may have gone.
                reply.send(self.written_log(&limits).await).ok();
            }
            ClusterMessage::PublishedByOwner(number) => self.follow_publication(number),
            ClusterMessage::ShownByOthers(number) => self.shown_by_others(number),
            ClusterMessage::Own { ownership, reply } => {
                let owns = self.begin_ownership(ownership).await;
                // The caller may have gone.
                reply.send(owns).ok();
            }
            ClusterMessage::Position { reply } => drop(reply.send(self.log_position())),
            ClusterMessage::Disown => self.end_ownership(),
            // The task of the realm may have ended.
            ClusterMessage::HandOver { to, reply } => drop(reply.send(self.hand_over(&to).await)),
            ClusterMessage::Reopened { start, reply } => {
                self.reopen(start).await;
                reply.send(()).ok();
            }
            ClusterMessage::Stop { reply } => {
                let until = Instant::now() + self.context.hypervisor.time_to_stop();
                self.stopping = Some(Stopping { reply, until });
            }
            ClusterMessage::End { reply } => self.replaced = Some(reply),
            #[cfg(test)]
            ClusterMessage::Panic => panic!("a test has made the driver panic"),
            #[cfg(test)]
            ClusterMessage::Hang(until) => drop(until.await),
            #[cfg(test)]
            ClusterMessage::BreakChain => self.audit_end.number += 1,
        }
    }

    /// An action that is still to be carried out: not suspended, and not barred by the fence of a failed host.
    fn wanted_action(&self, work: MaintenanceId, target: Target) -> Option<Action> {
        let rules = self.state.rules();
        let known = rules
            .maintenance(work)
            .filter(|_| self.journal.role() == Role::Owner)
            .filter(|known| !known.is_suspended(target));
        known.and_then(|known| known.action_on(target)).filter(|action| rules.barred_by(*action).is_none())
    }

    async fn handle_request(&mut self, request: Arc<ClusterRequest>, reply: ReplySender) {
        // The callers of refused requests may have gone; nothing has changed.
        if self.journal.role() == Role::Follower {
            return drop(reply.send(Err(ControlError::Elsewhere)));
        }
        if self.journal.is_broken() || self.journal.failure().is_some() {
            return drop(reply.send(Err(ControlError::Unavailable)));
        }
        match self.decide_request(&request).await {
            Err(ControlError::Unclaimed) => {
                let result = self.decide_with_claims(&request).await;
                // The caller of a refused request may use the groups in another cluster: they are released first.
                self.batch.pending.replies.push((reply, result));
            }
            // It may be refused because of a decision that is not durable yet.
            Err(error) if !self.batch.is_empty() => self.batch.pending.replies.push((reply, Err(error))),
            Err(error) => drop(reply.send(Err(error))),
            result => self.batch.pending.replies.push((reply, result)),
        }
        if request.is_large() {
            drop_in_background(request);
        }
    }

    /// Stops if requested, once no driver program is running or their time is over. An unfinished action is repeated
    /// by the next server.
    async fn has_stopped(&mut self) -> bool {
        let tasks = &self.runtime.impact_tasks;
        let is_over = |stopping: &Stopping| tasks.is_empty() || stopping.until <= Instant::now();
        if !self.stopping.as_ref().is_some_and(is_over) {
            return false;
        }
        for (maintenance, target) in tasks.keys() {
            tracing::warn!(%maintenance, order = %target, "stopping with a driver program still running");
        }
        // Nothing new starts: the next server does what is due.
        self.commit().await;
        std::mem::take(&mut self.replies).send();
        // The caller may have gone.
        self.stopping.take().into_iter().for_each(|stopping| stopping.reply.send(()).unwrap_or_default());
        true
    }

    /// Decides a request: a large one on another thread, so that others are not delayed by it.
    async fn decide_request(&mut self, request: &Arc<ClusterRequest>) -> Result<Reply, ControlError> {
        let now = self.context.clock.now();
        if !request.is_large() {
            let decision = self.decision(now, request)?;
            self.check_hold(&decision.records)?;
            return Ok(self.add_decision(now, decision));
        }
        let (id, state, shared) = (self.id, Arc::clone(&self.state), self.context.broadcasts.shared());
        let Environment { now, audit, hypervisor, revision, jammed } = self.environment(now);
        let (jammed, request) = (jammed.clone(), Arc::clone(request));
        let decided = run_long_work(move || {
            let environment = Environment { now, audit, hypervisor, revision, jammed: &jammed };
            decide_in_cluster(id, &state, &shared, &environment, &request)
        });
        let decision = decided.await?;
        self.check_hold(&decision.records)?;
        Ok(self.add_decision(now, decision))
    }

    /// Decides a request of the driver itself. The result becomes visible with [`Self::commit`].
    fn decide(&mut self, now: Now, request: &ClusterRequest) -> Result<Reply, ControlError> {
        let decision = self.decision(now, request)?;
        Ok(self.add_decision(now, decision))
    }

    fn decision(&self, now: Now, request: &ClusterRequest) -> Result<Decision<ClusterState>, ControlError> {
        let shared = self.context.broadcasts.shared();
        decide_in_cluster(self.id, &self.state, &shared, &self.environment(now), request)
    }

    fn environment(&self, now: Now) -> Environment<'_> {
        Environment {
            now,
            audit: self.audit_end,
            hypervisor: self.context.hypervisor.kind(),
            revision: self.runtime.revision,
            jammed: &self.runtime.jammed,
        }
    }

    /// Adds a decision to the batch.
    fn add_decision(&mut self, now: Now, decision: Decision<ClusterState>) -> Reply {
        let Decision { state, records, effects, audit, audit_end, reply } = decision;
        (self.state, self.audit_end) = (state, audit_end);
        if !records.is_empty() {
            self.runtime.revision += 1;
        }
        self.batch.decided = Some(now);
        self.batch.records.extend(records);
        self.batch.audit.extend(audit);
        effects.into_iter().for_each(|effect| self.prepare(effect));
        reply
    }

    /// Commits the batch: first durable, then published, answered and carried out. If the journal cannot be written,
    /// nothing of it happens.
    async fn commit(&mut self) {
        if self.journal.role() == Role::Follower {
            // It has decided nothing, and publishes what it follows.
            return self.replies.extend(std::mem::take(&mut self.batch).pending);
        }
        loop {
            let mut batch = std::mem::take(&mut self.batch);
            if let Err(error) = self.make_durable(&mut batch).await {
                return self.handle_commit_error(&error, batch);
            }
            self.publish_batch(&mut batch);
            self.journal.show_all_entries();
            let readable = self.context.clock.now();
            self.audit_shown = self.audit_end;
            self.replies.extend(batch.pending);
            if let Some((first_position, entries)) = self.durable.take() {
                self.context.broadcasts.publish_entries(first_position, entries);
                // A fold drops the record at the end that names announcements which no VM may have read.
                if self.unread.is_empty() && batch.announced.is_empty() {
                    self.fold_if_wanted();
                }
            }
            let began = batch.decided.unwrap_or(readable);
            batch.actions.into_iter().for_each(|action| self.perform(began, action));
            self.remember_unshown(&batch.announced);
            if !batch.announced.is_empty() {
                self.context.broadcasts.announcements.send_replace(());
            }
            self.after_publication(batch.announced, readable);
            if batch.records.len() >= MANY_RECORDS_MIN {
                drop_in_background((batch.records, batch.audit));
            }
            if batch.claims_changed {
                self.repair_claims().await;
            }
            if self.batch.records.is_empty() {
                return;
            }
        }
    }

    fn fold_if_wanted(&self) {
        self.journal.fold_if_wanted(|| StreamState::Cluster(Arc::clone(&self.state)));
    }

    fn perform(&mut self, now: Now, action: Action) {
        let rules = self.state.rules();
        self.batch.is_visible |= self.runtime.times.begin(&action, now.steady);
        match self.context.hypervisor.performer(&action) {
            Performer::Simulated => {
                self.runtime.simulator.begin(rules, action, now.steady);
                self.batch.is_visible = true;
            }
            performer @ (Performer::Program(_) | Performer::Command(_) | Performer::Person { .. }) => {
                let key = (action.maintenance, action.target);
                if let Some(wake) = self.runtime.impact_tasks.get(&key) {
                    return wake.notify_one();
                }
                if self.stopping.is_none() {
                    let (order, wake) = (DriverRequest::of(rules, action), Arc::<Notify>::default());
                    self.runtime.impact_tasks.insert(key, Arc::clone(&wake));
                    let (driver, stop) = (self.own.clone(), self.context.stop.subscribe());
                    let reminder = self.reminder(&performer);
                    tokio::spawn(ImpactTask { performer, reminder, order, action, driver, stop, wake }.run());
                }
            }
        }
    }

    /// The source of reminders, if a person carries out an action.
    fn reminder(&self, performer: &Performer) -> Option<HostReminder> {
        match performer {
            Performer::Simulated | Performer::Program(_) | Performer::Command(_) => None,
            Performer::Person { reminder: interval } => Some(HostReminder {
                cluster: self.id,
                clock: self.context.clock.clone(),
                broadcasts: self.context.broadcasts.clone(),
                interval: *interval,
            }),
        }
    }

    /// Does everything that is due at a time, and commits it.
    async fn settle(&mut self, now: Now) {
        self.note_clock_hold(now);
        self.commit().await;
        if self.hold_unshown(now) {
            self.commit().await;
        }
        while self.step(now) {
            self.commit().await;
        }
        if self.batch.is_visible {
            self.commit().await;
        }
        std::mem::take(&mut self.replies).send();
    }

    /// Does the first thing that is due. Returns false if nothing is.
    fn step(&mut self, now: Now) -> bool {
        let is_idle = self.journal.role() == Role::Follower
            || self.readers == Readers::Absent
            || self.context.clock_hold.is_held();
        if is_idle || self.journal.is_broken() || self.violation.is_some() {
            return false;
        }
        let Some(command) = simulator::due(self.state.rules(), now, &mut self.runtime) else {
            return self.sweep(now);
        };
        // The next deadline is another one, also if nothing changes: an operator may have ended the action before.
        self.batch.is_visible = true;
        match self.decide(now, &ClusterRequest::Rules(command)) {
            Ok(_) => true,
            Err(error) => {
                self.violation = Some(format!("the rules rejected their own command: {error}"));
                false
            }
        }
    }

    /// Removes a resource that is being deleted.
    fn sweep(&mut self, now: Now) -> bool {
        if self.state.resources().leaving().next().is_none() {
            return false;
        }
        let before = self.batch.records.len();
        self.decide(now, &ClusterRequest::Sweep).is_ok() && self.batch.records.len() > before
    }
}
