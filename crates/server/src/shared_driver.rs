//! The driver of the shared stream: names of clusters, tokens, webhooks and claims. It starts and ends the drivers of
//! clusters, and never waits for one of them.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use forewarn_control::request::{Reply, SharedRequest};
use forewarn_control::shared::SharedState;
use forewarn_control::{
    AuditEntry, Chain, ClusterId, ClusterState, ControlError, ControlState, Decision, Effect, Entry,
    Environment, Record, Stream, decide_shared,
};
use forewarn_lifecycle::{Now, Seed};
use forewarn_realm::{Batch as LoggedBatch, KnownHead, StreamContent, StreamStart as RealmStart};
use forewarn_store::{AppendError, InstalledState, StreamState};
use tokio::sync::{mpsc, oneshot};

use crate::cluster_runtime::ClusterRuntime;
use crate::clusters::ClusterRegistry;
use crate::driver::{DriverContext, first_revision, start_cluster};
use crate::initial_state::StreamStart;
use crate::journal::StreamJournal;
use crate::log_length::{LogLimits, WrittenLog};
use crate::message::{LoggedState, PendingReplies, ReplySender, SharedMessage};
use crate::realm_log::{CommitError, place, realm_revision};
use crate::role::{RealmScope, Role};
use crate::snapshot::Snapshot;

pub(crate) struct SharedDriver {
    state: Arc<SharedState>,
    journal: StreamJournal,
    context: DriverContext,
    clusters: ClusterRegistry,
    /// The end of the audit log of the stream.
    audit_end: Chain,
    /// The last audit entry that readers may see.
    audit_shown: Chain,
    /// Number of decisions that have changed anything.
    revision: u64,
    batch: SharedBatch,
}

/// Decisions that are not in the journal yet.
#[derive(Default)]
struct SharedBatch {
    /// The requests that were decided, in the order of their replies.
    requests: Vec<SharedRequest>,
    records: Vec<Record>,
    audit: Vec<Arc<AuditEntry>>,
    effects: Vec<Effect>,
    pending: PendingReplies,
    /// Callers that wait for a record of the clock.
    recorded: Vec<oneshot::Sender<Result<(), ControlError>>>,
}

/// Messages in one batch.
const BATCH_MAX: usize = 256;

impl SharedDriver {
    /// A driver that has published its state, and started the drivers of all clusters.
    pub(crate) fn start(
        start: StreamStart<SharedState>,
        clusters: Vec<(ClusterId, StreamStart<ClusterState>)>,
        context: DriverContext,
        registry: ClusterRegistry,
    ) -> Self {
        let StreamStart { state, journal, audit_end, .. } = start;
        for (id, start) in clusters {
            registry.add(id, &start_cluster(id, start, context.clone()));
        }
        let batch = SharedBatch::default();
        Self {
            state,
            journal,
            context,
            clusters: registry,
            audit_end,
            audit_shown: audit_end,
            revision: 0,
            batch,
        }
    }

    /// Runs until it is stopped, or no handle is left.
    pub(crate) async fn run(mut self, mut inbox: mpsc::Receiver<SharedMessage>) {
        let mut messages = Vec::with_capacity(BATCH_MAX);
        self.record_boot();
        self.commit().await;
        while inbox.recv_many(&mut messages, BATCH_MAX).await > 0 {
            let mut stopping = None;
            for message in messages.drain(..) {
                match message {
                    SharedMessage::Request { request, reply } => self.handle_request(request, reply),
                    SharedMessage::Logged(batch) => {
                        // Decisions before it are committed first, or again after it.
                        self.commit().await;
                        self.follow(*batch).await;
                    }
                    SharedMessage::Read(content) => {
                        self.commit().await;
                        self.follow_content(*content).await;
                    }
                    SharedMessage::WrittenLog { head, limits, reply } => {
                        self.commit().await;
                        // The caller may have gone.
                        reply.send(self.written_log(head, &limits).await).ok();
                    }
                    SharedMessage::Position { reply } => {
                        // The end of the audit log is that of the log.
                        self.commit().await;
                        let at = place(self.state.position().unwrap_or_default(), self.audit_end);
                        // The caller may have gone.
                        reply.send(at).ok();
                    }
                    SharedMessage::RecordClock { now, reply } => {
                        self.record(Record::clock(now));
                        self.batch.recorded.push(reply);
                    }
                    SharedMessage::Reopened { start, clusters, reply } => {
                        // The caller may have gone.
                        reply.send(self.reopen(start, clusters)).ok();
                    }
                    SharedMessage::Replaced { start, clusters, identity, reply } => {
                        self.replace(start, clusters, identity);
                        // The caller may have gone.
                        reply.send(()).ok();
                    }
                    SharedMessage::Copy { to, reply } => self.journal.copy(&to, reply),
                    // The driver responds.
                    SharedMessage::Ping { reply } => reply.send(()).unwrap_or_default(),
                    SharedMessage::Stop { reply } => stopping = Some(reply),
                }
            }
            self.commit().await;
            if let Some(reply) = stopping {
                return reply.send(()).unwrap_or_default();
            }
        }
    }

    fn handle_request(&mut self, request: Box<SharedRequest>, reply: ReplySender) {
        // The callers of refused requests may have gone; nothing has changed.
        if self.journal.is_broken() {
            return drop(reply.send(Err(ControlError::Unavailable)));
        }
        let environment = Environment {
            now: self.context.clock.now(),
            audit: self.audit_end,
            hypervisor: self.context.hypervisor.kind(),
            revision: self.revision,
            jammed: &BTreeSet::new(),
        };
        match decide_shared(&self.state, &environment, &request) {
            // It may be refused because of a decision that is not durable yet.
            Err(error) if !self.batch.is_empty() => self.batch.add(request, reply, Err(error)),
            Err(error) => drop(reply.send(Err(error))),
            Ok(Decision { state, records, effects, audit, audit_end, reply: result }) => {
                (self.state, self.audit_end) = (state, audit_end);
                if !records.is_empty() {
                    self.revision += 1;
                }
                self.batch.records.extend(records);
                self.batch.audit.extend(audit);
                self.batch.effects.extend(effects);
                self.batch.add(request, reply, Ok(result));
            }
        }
    }

    /// Adds a record that no request has made.
    fn record(&mut self, record: Record) {
        if let Entry::Shared(change) = &record.entry {
            let effects = Arc::make_mut(&mut self.state).apply(record.now, change);
            self.batch.effects.extend(effects);
        }
        self.batch.records.push(record);
    }

    fn record_boot(&mut self) {
        if let Some(boot) = self.context.clock.boot().filter(|boot| self.state.boot() != Some(*boot))
            && self.journal.is_durable()
            && self.journal.scope() == RealmScope::Alone
        {
            self.record(Record::booted(self.context.clock.now(), Stream::Shared, boot));
        }
    }

    /// Commits the batch: first durable, then published and answered.
    async fn commit(&mut self) {
        let mut batch = std::mem::take(&mut self.batch);
        if batch.is_empty() {
            return batch.finish();
        }
        match self.journal.shared_number().await.map(|number| number.cmp(&self.state.log_number())) {
            // Batches of other servers have arrived and are applied: the place of the next one is behind them.
            Some(Ordering::Less) => return Box::pin(self.decide_again(batch)).await,
            // The copy lacks a batch, because the journal had failed. It is completed first.
            Some(Ordering::Greater) => {
                self.roll_back();
                return batch.reject();
            }
            Some(Ordering::Equal) | None => {}
        }
        self.add_position(&mut batch).await;
        match self.journal.append(&mut batch.records, &batch.audit, &self.context.clock).await {
            Err(CommitError::Behind) => Box::pin(self.decide_again(batch)).await,
            Err(error) => {
                self.handle_commit_error(&error);
                batch.reject();
            }
            Ok(appended) => {
                let entries = std::mem::take(&mut batch.audit);
                self.publish_committed(appended.first_position, &batch.effects, entries);
                batch.finish();
            }
        }
    }

    /// Publishes the state after a commit, with its effects and audit entries.
    fn publish_committed(&mut self, first_position: u64, effects: &[Effect], entries: Vec<Arc<AuditEntry>>) {
        self.audit_shown = self.audit_end;
        self.publish_snapshot();
        effects.iter().for_each(|effect| self.carry_out(effect));
        self.context.broadcasts.publish_entries(first_position, entries);
        self.journal.fold_if_wanted(|| StreamState::Shared(Arc::clone(&self.state)));
    }

    fn publish_snapshot(&mut self) {
        if self.journal.scope() == RealmScope::Realm {
            self.revision = realm_revision(self.state.log_number());
        }
        let (state, revision) = (&self.state, self.revision);
        self.context.broadcasts.publish(|snapshot| {
            snapshot.state = snapshot.state.with_shared(Arc::clone(state));
            snapshot.revision = revision;
        });
    }

    fn carry_out(&self, effect: &Effect) {
        match effect {
            Effect::ClusterCreated(id) => self.start_cluster(*id),
            Effect::ClusterGone(id) => self.remove_cluster(*id),
            Effect::ClusterChanged(_) => self.context.directory.names_changed(),
            Effect::Publish(..)
            | Effect::Unpublish(..)
            | Effect::Perform(..)
            | Effect::Announced(..)
            | Effect::MachineChanged(..)
            | Effect::MachineGone(..)
            | Effect::Jam(..)
            | Effect::ClaimsChanged(_)
            | Effect::ClusterClosed(_)
            | Effect::WorkPlanned(_)
            | Effect::WorkFailed(..)
            | Effect::WorkFinished(_) => {}
        }
    }

    fn start_cluster(&self, id: ClusterId) {
        let Some(state) = self.state.initial_cluster(id).map(Arc::new) else { return };
        let start = StreamStart {
            state,
            journal: self.journal.of(Stream::Cluster(id)),
            audit_end: Chain::default(),
            unread: Vec::new(),
            recorded: Now::at_millis(0),
        };
        self.begin_cluster(id, start);
    }

    fn begin_cluster(&self, id: ClusterId, start: StreamStart<ClusterState>) {
        let state = start.state();
        self.context.broadcasts.publish(|snapshot| {
            snapshot.state = snapshot.state.with_cluster(id, Arc::clone(&state));
        });
        self.clusters.add(id, &start_cluster(id, start, self.context.clone()));
        self.context.directory.names_changed();
    }

    fn remove_cluster(&self, id: ClusterId) {
        self.clusters.remove(id);
        self.context.broadcasts.publish(|snapshot| snapshot.remove_cluster(id));
        self.context.directory.names_changed();
        self.journal.of(Stream::Cluster(id)).forget();
    }

    fn handle_commit_error(&mut self, error: &CommitError) {
        match error {
            CommitError::Journal(error) => self.handle_journal_failure(error),
            CommitError::Fenced(_) | CommitError::Behind | CommitError::NotCommitted(_) => {
                self.roll_back();
                tracing::error!(%error, "the log rejected a commit of the shared stream");
            }
        }
    }

    fn roll_back(&mut self) {
        self.state = self.context.broadcasts.shared();
        self.audit_end = self.audit_shown;
    }

    /// Handles a failure of the journal: unwritten decisions are rolled back, published state stays.
    fn handle_journal_failure(&mut self, error: &AppendError) {
        self.roll_back();
        if error.is_of_the_append() {
            tracing::error!(%error, "journal rejected a commit of the shared stream");
        } else if !self.journal.is_broken() {
            self.journal.give_up(error);
            self.context.broadcasts.set_write_error(Some(error.to_string()));
        }
    }

    /// Continues from another state, whose clusters start. Readers see all of it at once.
    fn replace(
        &mut self,
        start: StreamStart<SharedState>,
        clusters: Vec<(ClusterId, StreamStart<ClusterState>)>,
        identity: Seed,
    ) {
        let StreamStart { state, journal, audit_end, .. } = start;
        std::mem::take(&mut self.batch).reject();
        (self.state, self.journal) = (state, journal);
        (self.audit_end, self.audit_shown) = (audit_end, audit_end);
        self.revision += 1;
        let states = clusters.iter().map(|(id, start)| (*id, start.state()));
        let state = ControlState::from_parts(Arc::clone(&self.state), states);
        let mut snapshot = Snapshot { revision: self.revision, ..Snapshot::new(state, identity) };
        let (directory, now) = (&self.context.directory, self.context.clock.now().steady);
        for (id, start) in &clusters {
            let mut runtime = ClusterRuntime::new(*id, Arc::clone(directory), now);
            runtime.revision = first_revision(*self.context.broadcasts.replacements.borrow());
            snapshot.show_runtime(*id, &Arc::new(runtime.view(Role::Owner, start.audit_end.number)));
        }
        self.context.broadcasts.snapshot.store(Arc::new(snapshot));
        directory.restart(&self.context.broadcasts);
        let start = |(id, start)| (id, start_cluster(id, start, self.context.clone()));
        self.clusters.replace(clusters.into_iter().map(start).collect());
    }

    /// Continues from the state of the journal that was opened again. A commit that was taken for failed may be in it:
    /// its clusters start or end now. Returns those that have started.
    fn reopen(
        &mut self,
        start: StreamStart<SharedState>,
        clusters: Vec<(ClusterId, StreamStart<ClusterState>)>,
    ) -> BTreeSet<ClusterId> {
        let StreamStart { state, journal, audit_end, .. } = start;
        std::mem::take(&mut self.batch).reject();
        (self.state, self.journal) = (state, journal);
        (self.audit_end, self.audit_shown) = (audit_end, audit_end);
        self.revision += 1;
        self.publish_snapshot();
        let running = self.clusters.all();
        let gone = running.keys().filter(|id| self.state.cluster_name(**id).is_none());
        gone.for_each(|id| self.remove_cluster(*id));
        let new = clusters.into_iter().filter(|(id, _)| !running.contains_key(id));
        let mut begun = BTreeSet::new();
        for (id, start) in new {
            self.begin_cluster(id, start);
            begun.insert(id);
        }
        self.context.directory.names_changed();
        self.record_boot();
        begun
    }
}

/// In a realm, every server writes the shared stream, and copies the batches of the others.
impl SharedDriver {
    /// Copies a batch that another server has written. One that the state contains already is ignored.
    async fn follow(&mut self, logged: LoggedBatch) {
        if logged.number != self.state.log_number() + 1 {
            return;
        }
        let copied = match self.journal.copy_batch(&logged).await {
            Ok(copied) => copied,
            Err(error) => return self.handle_journal_failure(&error),
        };
        let mut effects = Vec::new();
        for record in &logged.records {
            if let Entry::Shared(change) = &record.entry {
                effects.extend(Arc::make_mut(&mut self.state).apply(record.now, change));
            }
        }
        let end = logged.entries.last().and_then(|entry| Chain::at(entry).ok());
        self.audit_end = end.unwrap_or(self.audit_end);
        self.revision += 1;
        self.publish_committed(copied.first_position, &effects, logged.entries);
    }

    /// Copies everything that another read of the log has found: a state, if the log no longer has the batches before it.
    async fn follow_content(&mut self, content: StreamContent) {
        let clock = content.clock();
        if let RealmStart::State(StreamState::Shared(state), position) = content.start {
            self.install(LoggedState { state, position, clock }).await;
        }
        for batch in content.batches {
            self.follow(batch).await;
        }
    }

    /// Continues from a later state of the log. Clusters that have appeared or gone start or end.
    async fn install(&mut self, LoggedState { state, position, clock }: LoggedState<SharedState>) {
        if position.number <= self.state.log_number() {
            return;
        }
        let (records, chain) = (position.records, position.chain);
        let installed =
            InstalledState { state: StreamState::Shared(Arc::clone(&state)), records, chain, clock };
        match self.journal.install(installed).await {
            Ok(installed) => self.context.broadcasts.skip_entries(installed.first_position - 1),
            Err(error) => return self.handle_journal_failure(&error),
        }
        self.state = state;
        (self.audit_end, self.audit_shown) = (position.chain, position.chain);
        self.publish_snapshot();
        let running = self.clusters.all();
        let gone = running.keys().filter(|id| self.state.cluster_name(**id).is_none());
        gone.for_each(|id| self.remove_cluster(*id));
        let new: Vec<_> = self.state.clusters().map(|(id, _)| id).collect();
        new.into_iter().filter(|id| !running.contains_key(id)).for_each(|id| self.start_cluster(id));
        self.context.directory.names_changed();
        self.context.broadcasts.commits.send_modify(|commits| *commits += 1);
    }

    /// The log, and the beginning of a stored state if it is long and ends with this head.
    async fn written_log(&self, head: KnownHead, limits: &LogLimits) -> Option<WrittenLog> {
        let number = self.state.log_number();
        if self.journal.is_broken() || head.head.number != number {
            return None;
        }
        let log = self.journal.log().clone();
        log.follow_head(head).await;
        let state = || StreamState::Shared(Arc::clone(&self.state));
        let writing = log.begin_snapshot(limits, number, state).await;
        Some(WrittenLog { log, clock: self.context.clock.clone(), writing })
    }

    /// Decides the requests of a batch again, after the batches that another server has written first.
    async fn decide_again(&mut self, batch: SharedBatch) {
        self.roll_back();
        match self.journal.missing_content().await {
            Ok(Some(missing)) => self.follow_content(missing).await,
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot read the shared stream");
                return batch.reject();
            }
        }
        let SharedBatch { requests, pending, recorded, .. } = batch;
        self.batch.recorded = recorded;
        for (request, (reply, _)) in requests.into_iter().zip(pending.replies) {
            self.handle_request(Box::new(request), reply);
        }
        self.commit().await;
    }

    /// Puts the place of a batch in the log of a realm before its records.
    async fn add_position(&mut self, batch: &mut SharedBatch) {
        if let Some(position) = self.journal.next_position(batch.records.len() + 1).await {
            let record = Record::positioned(self.context.clock.now(), Stream::Shared, position);
            if let Entry::Shared(change) = &record.entry {
                Arc::make_mut(&mut self.state).apply(record.now, change);
            }
            batch.records.insert(0, record);
        }
    }
}

impl SharedBatch {
    /// Returns true if there is nothing to write.
    fn is_empty(&self) -> bool {
        self.records.is_empty() && self.audit.is_empty()
    }

    fn add(&mut self, request: Box<SharedRequest>, reply: ReplySender, result: Result<Reply, ControlError>) {
        self.requests.push(*request);
        self.pending.replies.push((reply, result));
    }

    fn finish(self) {
        // The callers may have gone.
        self.recorded.into_iter().for_each(|reply| reply.send(Ok(())).unwrap_or_default());
        self.pending.send();
    }

    fn reject(self) {
        // The callers may have gone.
        let recorded = self.recorded.into_iter();
        recorded.for_each(|reply| reply.send(Err(ControlError::Unavailable)).unwrap_or_default());
        self.pending.reject(&ControlError::Unavailable);
    }
}
