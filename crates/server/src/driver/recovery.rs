//! Starting from a journal, and again after the journal has failed.

use std::sync::Arc;

use forewarn_control::{ClusterId, ClusterState, ControlError, Effect, Entry, Record, Stream};
use forewarn_realm::CommitFate;
use forewarn_store::AppendError;
use tokio::sync::mpsc;

use super::batch::Batch;
use super::following::HeldBatches;
use super::shown::UnshownBatches;
use super::{Driver, DriverContext, Role};
use crate::cluster_runtime::ClusterRuntime;
use crate::initial_state::{Readers, StreamStart};
use crate::message::{ClusterMessage, PendingReplies};
use crate::realm_log::CommitError;

impl Driver {
    /// A driver of a cluster. Everything is published when this returns.
    pub(crate) fn new(
        id: ClusterId,
        start: StreamStart<ClusterState>,
        context: DriverContext,
        own: mpsc::WeakSender<ClusterMessage>,
    ) -> Self {
        let StreamStart { state, journal, audit_end, unread, recorded } = start;
        let readers = context.readers();
        let now = context.clock.now().steady;
        let mut runtime = ClusterRuntime::new(id, Arc::clone(&context.directory), now);
        runtime.revision = first_revision(*context.broadcasts.replacements.borrow());
        runtime.scope = journal.scope();
        runtime.peer_polls = Some(Arc::clone(&context.peer_polls));
        let logged = (Arc::clone(&state), audit_end);
        let mut driver = Self {
            id,
            state,
            journal,
            context,
            runtime,
            own,
            stopping: None,
            replaced: None,
            audit_end,
            audit_shown: audit_end,
            unread: unread.into_iter().collect(),
            readers,
            recorded_clock: recorded,
            batch: Batch::default(),
            replies: PendingReplies::default(),
            logged_replies: None,
            violation: None,
            durable: None,
            held: HeldBatches::default(),
            logged,
            unshown: UnshownBatches::default(),
            published_by_owner: 0,
            unsettled: None,
            is_hold_noted: false,
        };
        driver.publish_all();
        driver.note_start_of_follower();
        driver
    }

    /// Notes announcements at the end of the copy, of which it is unknown if their owner has shown them, and which servers
    /// do.
    fn note_start_of_follower(&mut self) {
        if self.journal.role() == Role::Follower && !self.unread.is_empty() {
            self.unsettled = Some(self.state.log_number());
            self.context.unsettled.add(self.id);
            self.remember_unshown(&self.unread.clone());
        }
    }

    /// Continues from the state of the journal: unfinished actions are carried out again, unused claims released.
    pub(super) async fn resume(&mut self) {
        if self.journal.role() == Role::Follower {
            return;
        }
        let now = self.context.clock.now();
        let unfinished: Vec<_> = self.state.rules().unfinished().collect();
        unfinished.into_iter().for_each(|action| self.perform(now, action));
        if let Some(boot) = self.context.clock.boot().filter(|boot| self.state.boot() != Some(*boot))
            && self.journal.is_durable()
        {
            self.record(Record::booted(now, Stream::Cluster(self.id), boot));
        }
        if self.readers == Readers::Present {
            self.documents_became_readable();
        }
        self.batch.claims_changed = true;
        self.commit().await;
    }

    /// Adds a record that no request has made to the batch.
    pub(super) fn record(&mut self, record: Record) {
        self.apply(std::slice::from_ref(&record)).into_iter().for_each(|effect| self.batch.add(effect));
        self.batch.records.push(record);
    }

    /// Applies records that no request has made: the only place where the driver changes its state itself.
    pub(super) fn apply(&mut self, records: &[Record]) -> Vec<Effect> {
        let state = Arc::make_mut(&mut self.state);
        let mut effects = Vec::new();
        for record in records {
            if let Entry::Cluster(id, entry) = &record.entry {
                effects.extend(state.apply(*id, record.now, entry));
            }
        }
        effects
    }

    /// Handles a commit that has failed. Requests that another server has to decide are sent there by their callers.
    pub(super) fn handle_commit_error(&mut self, error: &CommitError, mut batch: Batch) {
        let pending = std::mem::take(&mut batch.pending);
        match error {
            CommitError::Journal(error) => {
                self.handle_append_error(error);
                pending.reject(&ControlError::Unavailable);
            }
            CommitError::Fenced(fate) => {
                let number = self.state.log_number();
                self.return_to_log(batch);
                self.end_ownership();
                match fate {
                    // The batch comes with the log.
                    CommitFate::Applied => self.logged_replies = Some((number, pending)),
                    CommitFate::NotApplied => pending.reject(&ControlError::Elsewhere),
                    CommitFate::Unknown => pending.reject(&ControlError::Unavailable),
                }
            }
            CommitError::Behind | CommitError::NotCommitted(_) => {
                tracing::warn!(cluster = self.id.0, %error, "commit failed");
                self.return_to_log(batch);
                self.show_held_as_owner();
                pending.reject(&ControlError::Unavailable);
            }
        }
    }

    /// Handles an append that has failed: unwritten decisions are rolled back, published state stays. The journal has
    /// failed, or the cluster alone.
    pub(super) fn handle_append_error(&mut self, error: &AppendError) {
        self.roll_back();
        if error.is_of_the_append() {
            self.violation = Some(format!("the journal rejected a commit: {error}"));
            return;
        }
        // The supervisor broadcasts those that turn out to be durable.
        self.durable = None;
        if !self.journal.is_broken() {
            self.journal.give_up(error);
            self.context.broadcasts.set_write_error(Some(error.to_string()));
        }
    }

    /// Goes back to the state that was published last: later decisions are not durable.
    fn roll_back(&mut self) {
        let published = self.context.broadcasts.snapshot.load();
        if let Some(state) = published.state.cluster_arc(self.id) {
            self.state = state;
        }
        self.audit_end = self.audit_shown;
    }

    /// VMs can read documents since another driver has learned it.
    pub(super) fn follow_readers(&mut self) {
        if self.readers == Readers::Absent && self.context.readers() == Readers::Present {
            self.documents_became_readable();
        }
    }

    /// Handles a failure that the journal found by itself, or through another driver.
    pub(super) fn check_journal(&mut self) {
        if let Some(error) = self.journal.failure() {
            self.handle_append_error(&error);
            std::mem::take(&mut self.batch).pending.reject(&ControlError::Unavailable);
        }
    }

    /// Continues from the state of the journal that was opened again.
    pub(super) async fn reopen(&mut self, start: StreamStart<ClusterState>) {
        let StreamStart { state, journal, audit_end, unread, recorded } = start;
        self.logged = (Arc::clone(&state), audit_end);
        (self.state, self.journal, self.recorded_clock) = (state, journal, recorded);
        (self.audit_end, self.audit_shown) = (audit_end, audit_end);
        self.unread = unread.into_iter().collect();
        std::mem::take(&mut self.batch).pending.reject(&ControlError::Unavailable);
        self.durable = None;
        self.publish_reopened();
        // It may fail again at once.
        self.resume().await;
    }
}

/// The first revision of a cluster after so many replacements of the state: no plan that was made on a former state fits
/// the new one.
pub(crate) fn first_revision(replacements: u64) -> u64 {
    replacements << 32
}
