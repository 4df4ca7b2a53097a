//! The driver: the one task that owns the state.
//!
//! It takes messages in batches. It decides each request, appends the records of the batch to the journal, and then
//! publishes, replies and acts. Between batches it sleeps until something is due.

mod batch;
mod notice;
mod publication;
mod recovery;
#[cfg(test)]
mod tests;
mod virtual_clock;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use forewarn_control::ClusterId;
use forewarn_control::notice::AnnouncedWork;
use forewarn_control::request::{ClusterRequest, Reply, Request};
use forewarn_control::{Chain, ControlError, ControlState, Decision, Environment, decide};
use forewarn_hypervisor::DriverRequest;
use forewarn_lifecycle::{Action, MachineId, Now, Seed, simulator};
use forewarn_metadata::Directory;
use tokio::sync::{mpsc, oneshot, watch};

use crate::broadcasts::Broadcasts;
use crate::clock::Clock;
use crate::clock_watch::ClockWatch;
use crate::cluster_runtime::ClusterRuntime;
use crate::hypervisor::Hypervisor;
use crate::impact_task::ImpactTask;
use crate::initial_state::Readers;
use crate::journal::JournalHandle;
use crate::message::{Message, PendingReplies};
use batch::Batch;
#[cfg(test)]
pub(crate) use tests::SlowDisk;

pub(crate) struct Driver {
    state: ControlState,
    journal: JournalHandle,
    /// Seed of machine ids and operation names.
    identity: Seed,
    clock: Clock,
    hypervisor: Hypervisor,
    runtimes: BTreeMap<ClusterId, ClusterRuntime>,
    own: mpsc::WeakSender<Message>,
    stopping: Option<Stopping>,
    stop: watch::Sender<bool>,
    directory: Arc<Directory>,
    broadcasts: Broadcasts,
    /// The end of the audit log.
    audit_end: Chain,
    /// The last audit entry that readers may see.
    audit_shown: Chain,
    /// Announcements of earlier batches that no VM may have read.
    unread: BTreeSet<AnnouncedWork>,
    readers: Readers,
    /// The clocks as they were last recorded.
    recorded_clock: Now,
    clock_watch: ClockWatch,
    /// Number of decisions that have changed anything.
    revision: u64,
    batch: Batch,
    /// Replies to requests that are durable and published.
    replies: PendingReplies,
}

/// A caller that waits for the end of the driver.
struct Stopping {
    reply: oneshot::Sender<()>,
    /// Deadline of driver programs.
    until: Instant,
}

/// The simulated machines whose next action fails, of a request to no cluster.
static NONE_JAMMED: BTreeSet<MachineId> = BTreeSet::new();

/// Messages in one batch.
const BATCH_MAX: usize = 256;

/// Maximum sleep: no timer is trusted for longer.
const SLEEP_MAX: Duration = Duration::from_secs(1);

impl Driver {
    /// Runs until it is stopped, or no handle is left.
    pub(crate) async fn run(mut self, mut inbox: mpsc::Receiver<Message>) {
        let mut messages = Vec::with_capacity(BATCH_MAX);
        self.resume();
        loop {
            let sleep = tokio::time::sleep(self.until_next());
            tokio::select! {
                received = inbox.recv_many(&mut messages, BATCH_MAX) => {
                    if received == 0 {
                        return;
                    }
                }
                () = sleep => {}
            }
            self.record_time_if_due();
            messages.drain(..).for_each(|message| self.handle(message));
            if self.has_stopped() {
                return;
            }
            if self.clock_watch.report(&self.clock) {
                self.broadcasts.count_clock_step();
            }
            self.check_journal();
            self.reopen_journal();
            self.settle(self.clock.now());
        }
    }

    fn handle(&mut self, message: Message) {
        let message = if self.journal.is_broken() { message.reject_without_journal() } else { Some(message) };
        match message {
            None => {}
            Some(Message::Request { request, reply }) => match self.decide(self.clock.now(), &request) {
                Ok(result) => self.batch.pending.replies.push((reply, result)),
                // The caller may have gone; nothing has changed.
                Err(error) => drop(reply.send(Err(error))),
            },
            Some(Message::SetClock { command, context, reply }) => {
                // The caller may have gone.
                reply.send(self.set_clock(command, &context)).ok();
            }
            Some(Message::Copy { to, reply }) => {
                self.commit();
                self.journal.copy(&to, reply);
            }
            Some(Message::DocumentsReadable { reply }) => {
                self.documents_became_readable();
                self.batch.pending.waiting.push(reply);
            }
            Some(Message::Settle { reply }) => {
                self.settle(self.clock.now());
                reply.send(()).ok();
            }
            Some(Message::ImpactOver { cluster, work, machine }) => {
                self.batch.is_visible |= self.runtime(cluster).end_impact(work, machine);
            }
            Some(Message::ImpactDelayed { cluster, work, machine, reason }) => {
                self.runtime(cluster).delay_impact(work, machine, reason);
                self.batch.is_visible = true;
            }
            Some(Message::Stop { reply }) => {
                self.stop.send_replace(true);
                let until = Instant::now() + self.hypervisor.time_to_stop();
                self.stopping = Some(Stopping { reply, until });
            }
        }
    }

    /// Stops if requested, once no driver program is running or their time is over. An unfinished action is repeated
    /// by the next server.
    fn has_stopped(&mut self) -> bool {
        let tasks: Vec<_> = self.runtimes.values().flat_map(|one| &one.impact_tasks).copied().collect();
        let is_over = |stopping: &Stopping| tasks.is_empty() || stopping.until <= Instant::now();
        if !self.stopping.as_ref().is_some_and(is_over) {
            return false;
        }
        for (maintenance, machine) in tasks {
            tracing::warn!(%maintenance, %machine, "stopping with a driver program still running");
        }
        // Nothing new starts: the next server does what is due.
        self.commit();
        std::mem::take(&mut self.replies).send();
        self.journal.close();
        // The caller may have gone.
        self.stopping.take().into_iter().for_each(|stopping| stopping.reply.send(()).unwrap_or_default());
        true
    }

    fn runtime(&mut self, id: ClusterId) -> &mut ClusterRuntime {
        self.runtimes.entry(id).or_default()
    }

    /// Decides a request. The result becomes visible with [`Self::commit`].
    fn decide(&mut self, now: Now, request: &Request) -> Result<Reply, ControlError> {
        let target = match request {
            Request::Cluster(id, _) => Some(*id),
            Request::Shared(_) => None,
        };
        let (identity, audit, hypervisor) = (self.identity, self.audit_end, self.hypervisor.kind());
        let runtime = target.and_then(|id| self.runtimes.get(&id));
        let of_cluster = runtime.map_or(0, |runtime| runtime.revision);
        let revision = if target.is_some() { of_cluster } else { self.revision };
        let jammed = runtime.map_or(&NONE_JAMMED, |runtime| &runtime.jammed);
        let environment = Environment { now, identity, audit, hypervisor, revision, jammed };
        let Decision { state, records, effects, audit, audit_end, reply } =
            decide(&self.state, &environment, request)?;
        (self.state, self.audit_end) = (state, audit_end);
        if !records.is_empty() {
            self.revision += 1;
            target.into_iter().for_each(|id| self.runtime(id).revision += 1);
        }
        self.batch.decided = Some(now);
        self.batch.records.extend(records);
        self.batch.audit.extend(audit);
        effects.into_iter().for_each(|effect| self.prepare(effect));
        Ok(reply)
    }

    /// Commits the batch: first durable, then published, answered and carried out. If the journal cannot be written,
    /// nothing of it happens.
    fn commit(&mut self) {
        let mut batch = std::mem::take(&mut self.batch);
        if let Err(error) = self.make_durable(&mut batch) {
            self.handle_journal_failure(&error);
            batch.pending.reject();
            return;
        }
        let has_written = !batch.records.is_empty() || !batch.audit.is_empty();
        let actions = self.publish_batch(&batch);
        self.journal.show_all_entries();
        let readable = self.clock.now();
        self.audit_shown = self.audit_end;
        if has_written || batch.is_visible {
            self.publish_snapshot();
        }
        self.replies.extend(batch.pending);
        if has_written {
            self.broadcasts.publish_entries(batch.audit);
            self.journal.fold_if_wanted(&self.state);
        }
        let began = batch.decided.unwrap_or(readable);
        actions.into_iter().for_each(|(id, action)| self.perform(began, id, action));
        self.after_publication(batch.announced, readable);
        if !self.batch.records.is_empty() {
            self.commit();
        }
    }

    fn perform(&mut self, now: Now, id: ClusterId, action: Action) {
        let Some(cluster) = self.state.cluster(id) else { return };
        let runtime = self.runtimes.entry(id).or_default();
        match &self.hypervisor {
            Hypervisor::Simulated => {
                runtime.simulator.begin(cluster.rules(), action, now.steady);
                self.batch.is_visible = true;
            }
            Hypervisor::Program(program) => {
                if self.stopping.is_none()
                    && runtime.impact_tasks.insert((action.maintenance, action.machine))
                {
                    let order = DriverRequest::of(cluster.rules(), action);
                    let (program, driver, stop) = (program.clone(), self.own.clone(), self.stop.subscribe());
                    tokio::spawn(ImpactTask { program, order, cluster: id, action, driver, stop }.run());
                }
            }
        }
    }

    /// Does everything that is due at a time, and commits it.
    fn settle(&mut self, now: Now) {
        self.commit();
        while self.step(now) {
            self.commit();
        }
        if self.batch.is_visible {
            self.commit();
        }
        std::mem::take(&mut self.replies).send();
    }

    /// Does the first thing that is due. Returns false if nothing is.
    fn step(&mut self, now: Now) -> bool {
        if self.journal.is_broken() || self.readers == Readers::Absent {
            return false;
        }
        let due = {
            let (runtimes, mut clusters) = (&mut self.runtimes, self.state.clusters());
            clusters
                .find_map(|(id, one)| Some((id, simulator::due(one.rules(), now, runtimes.get_mut(&id)?)?)))
        };
        let Some((id, command)) = due else { return self.sweep(now) };
        match self.decide(now, &Request::Cluster(id, ClusterRequest::Rules(command))) {
            Ok(_) => true,
            Err(error) => {
                tracing::error!(cluster = id.0, %error, "rules rejected their own command");
                false
            }
        }
    }

    /// Removes a resource that is being deleted, in any cluster.
    fn sweep(&mut self, now: Now) -> bool {
        let before = self.batch.records.len();
        let clusters = self.state.clusters_to_sweep();
        clusters.into_iter().any(|id| {
            let swept = self.decide(now, &Request::Cluster(id, ClusterRequest::Sweep));
            swept.is_ok() && self.batch.records.len() > before
        })
    }
}
