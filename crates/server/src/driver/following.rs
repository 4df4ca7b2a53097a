//! Following: while another server of the realm owns the cluster, the driver copies the batches of its log into the
//! journal of this server, applies and publishes them. It decides nothing and carries out nothing.
//!
//! ```text
//!   follower ──takes over, or gets the cluster──▶ owner ──is fenced, or gives the cluster──▶ follower
//! ```
//!
//! A batch with announcements is shown once the owner has shown it, or the next batch follows: the owner may still move
//! their times, in announcements that no VM has read. A server that starts shows everything that it has copied before,
//! but VMs cannot read it until the last announcements are settled ([`UnsettledClusters`]).
//!
//! [`UnsettledClusters`]: crate::unsettled::UnsettledClusters

use std::cmp::Ordering;
use std::sync::Arc;

use forewarn_control::{Chain, ClusterEntry, ClusterState, ControlError, Entry, Record, Stream};
use forewarn_lifecycle::MaintenanceId;
use forewarn_realm::{AuditMode, Batch as LoggedBatch, OwnerRecord, ServerName};
use forewarn_store::AppendError;

use super::Driver;
use super::batch::Batch;
use crate::cluster_runtime::ClusterRuntime;
use crate::realm_log::{CommitError, NewOwnership, StreamLog, place};
use crate::role::Role;

/// Batches of the log that are applied and not published.
#[derive(Default)]
pub(super) struct HeldBatches {
    batch: Batch,
    /// Position of the first entry in the audit log of this server.
    first_position: Option<u64>,
    /// The journal was opened again, and had them: the whole state is published with them.
    were_reopened: bool,
}

impl Driver {
    /// The place of the copy in the log.
    pub(super) fn log_position(&self) -> forewarn_realm::StreamPosition {
        place(self.state.position().unwrap_or_default(), self.audit_end)
    }

    /// Puts the place of a batch in the log of a realm before its records.
    pub(super) async fn add_position(&mut self, records: &mut Vec<Record>) {
        if let Some(position) = self.journal.next_position(records.len() + 1).await {
            let now = self.context.clock.now();
            let record = Record::positioned(now, Stream::Cluster(self.id), position);
            self.apply(std::slice::from_ref(&record));
            records.insert(0, record);
        }
    }

    /// Copies a batch of the log. One that the state contains already is ignored; after a gap, the caller sends what is
    /// missing.
    pub(super) async fn follow(&mut self, logged: LoggedBatch) {
        if self.journal.role() != Role::Follower || logged.number != self.state.log_number() + 1 {
            return;
        }
        let announced = announced_at_end(&logged.records);
        if !announced.is_empty() {
            self.journal.hide_entries_after(self.audit_shown.number);
        }
        let copied = match self.journal.copy_batch(&logged).await {
            Ok(copied) => copied,
            Err(error) => return self.handle_copy_error(&error),
        };
        let effects = self.apply(&logged.records);
        self.logged.0 = Arc::clone(&self.state);
        effects.into_iter().for_each(|effect| self.held.batch.add(effect));
        self.held.first_position.get_or_insert(copied.first_position);
        let unpublished = &mut self.held.batch.audit;
        if logged.mode == AuditMode::Rewrite {
            unpublished.truncate(unpublished.len().saturating_sub(logged.entries.len()));
        }
        unpublished.extend(logged.entries);
        self.audit_end =
            self.held.batch.audit.last().and_then(|entry| Chain::at(entry).ok()).unwrap_or(self.audit_end);
        self.logged.1 = self.audit_end;
        self.held.batch.is_visible = true;
        self.unread = announced.into_iter().collect();
        self.remember_unshown(&self.unread.clone());
        if self.unread.is_empty() || logged.number == self.published_by_owner {
            self.unread.clear();
            self.show_held();
        }
    }

    /// The owner has published its state after that batch. An earlier batch is not shown: it may contain times that the
    /// owner has moved in a later one.
    pub(super) fn follow_publication(&mut self, number: u64) {
        self.published_by_owner = self.published_by_owner.max(number);
        if self.journal.role() == Role::Owner {
            return;
        }
        match self.unsettled.map(|last| number.cmp(&last)) {
            Some(Ordering::Less) => self.context.unsettled.add(self.id),
            Some(Ordering::Equal) => self.settle_start(),
            // The next batch is on its way: it may have moved times.
            Some(Ordering::Greater) | None => {}
        }
        let is_held = self.holds_batches() || !self.unread.is_empty();
        if is_held && self.state.log_number() == number {
            self.unread.clear();
            self.show_held();
        }
    }

    /// The times that this server has published since its start are final.
    pub(super) fn settle_start(&mut self) {
        if self.unsettled.take().is_some() {
            self.context.unsettled.settle(self.id);
        }
    }

    /// Publishes the state of the journal that was opened again. It may end with announcements that the owner has not
    /// shown: these are held, as if they had just been copied.
    pub(super) fn publish_reopened(&mut self) {
        let snapshot = self.context.broadcasts.snapshot.load();
        let published = snapshot.state.cluster(self.id).map(ClusterState::log_number);
        let is_shown = self.unread.is_empty() || published == Some(self.state.log_number());
        self.held = HeldBatches::default();
        if self.journal.role() == Role::Owner || is_shown {
            self.publish_all();
        } else {
            self.held.were_reopened = true;
            self.context.broadcasts.publish(|snapshot| snapshot.set_role(self.id, Role::Follower));
        }
    }

    /// Goes back to the state of the log after a failed commit. A part of the batch may be in the log: it is held.
    pub(super) fn return_to_log(&mut self, batch: Batch) {
        (self.state, self.audit_end) = (Arc::clone(&self.logged.0), self.logged.1);
        let Some((first_position, audit)) = self.durable.take() else { return };
        let Batch { changes, work, actions, announced, claims_changed, .. } = batch;
        let batch = Batch { audit, changes, work, actions, is_visible: true, ..Batch::default() };
        self.held = HeldBatches { batch, first_position: Some(first_position), were_reopened: false };
        self.batch.claims_changed |= claims_changed;
        self.unread.extend(announced);
    }

    /// Publishes the batches that an owner holds after a failed commit, and begins their actions. Their events get their
    /// whole notice from now on.
    pub(super) fn show_held_as_owner(&mut self) {
        if !self.holds_batches() {
            return;
        }
        let (unread, now) = (std::mem::take(&mut self.unread), self.context.clock.now());
        let actions = std::mem::take(&mut self.held.batch.actions);
        self.show_held();
        actions.into_iter().for_each(|action| self.perform(now, action));
        self.after_publication(unread, now);
    }

    /// Publishes the batches that are held.
    fn show_held(&mut self) {
        let HeldBatches { mut batch, first_position, were_reopened } = std::mem::take(&mut self.held);
        batch.actions.clear();
        if were_reopened {
            self.publish_all();
        }
        self.publish_batch(&mut batch);
        self.journal.show_all_entries();
        self.audit_shown = self.audit_end;
        if let Some(first_position) = first_position {
            self.context.broadcasts.publish_entries(first_position, batch.audit);
        }
        if self.unread.is_empty() {
            self.fold_if_wanted();
        }
        self.settle_start();
    }

    /// Returns true if batches of the log are applied and not published.
    pub(super) fn holds_batches(&self) -> bool {
        self.held.first_position.is_some() || self.held.were_reopened
    }

    pub(super) fn handle_copy_error(&mut self, error: &AppendError) {
        tracing::error!(cluster = self.id.0, %error, "cannot copy a batch of the log");
        if !self.journal.is_broken() {
            self.journal.give_up(error);
            self.context.broadcasts.set_write_error(Some(error.to_string()));
        }
    }

    /// Begins to decide: the state contains every batch of the log. Everything unfinished is carried out again; events
    /// that no VM may have read get their whole notice.
    pub(super) async fn begin_ownership(&mut self, ownership: NewOwnership) -> bool {
        let NewOwnership { log, number, clock } = ownership;
        if self.journal.role() == Role::Owner || self.state.log_number() != number || self.journal.is_broken()
        {
            return false;
        }
        self.journal.set_log(StreamLog::Owned(log));
        self.context.clock = self.context.clock.continued_from(clock);
        self.recorded_clock = self.context.clock.now();
        self.show_held();
        self.restart_runtime();
        self.publish_all();
        self.remember_unshown_as_owner();
        self.resume().await;
        self.journal.role() == Role::Owner
    }

    /// Gives the cluster to another server, once everything that was decided is committed and published. Requests that
    /// wait go there. None if this server keeps the cluster, or has lost it.
    pub(super) async fn hand_over(&mut self, to: &ServerName) -> Option<OwnerRecord> {
        self.commit().await;
        std::mem::take(&mut self.replies).send();
        if self.journal.role() == Role::Follower || self.journal.is_broken() {
            return None;
        }
        match self.journal.hand_over(to, &self.context.clock).await {
            Ok(owner) => {
                self.end_ownership();
                Some(owner)
            }
            Err(CommitError::Fenced(_)) => {
                self.end_ownership();
                None
            }
            Err(error @ (CommitError::Journal(_) | CommitError::Behind | CommitError::NotCommitted(_))) => {
                tracing::warn!(cluster = self.id.0, %to, %error, "cannot give the cluster to another server");
                None
            }
        }
    }

    /// Another server owns the cluster now. Decisions that are not in the log have not happened.
    pub(super) fn end_ownership(&mut self) {
        if self.journal.role() == Role::Follower {
            return;
        }
        tracing::info!(cluster = self.id.0, "another server owns the cluster");
        let undone = std::mem::take(&mut self.batch);
        (self.state, self.audit_end) = (Arc::clone(&self.logged.0), self.logged.1);
        undone.pending.reject(&ControlError::Elsewhere);
        self.journal.set_log(StreamLog::Followed);
        self.runtime.wake_impact_tasks();
        self.restart_runtime();
        // Announcements that are held are not shown yet.
        if !self.holds_batches() {
            self.publish_snapshot();
        }
    }

    /// Forgets actions under way: they are those of the owner. A driver program that still runs is known until it ends, so
    /// that it does not run twice if this server gets the cluster back.
    fn restart_runtime(&mut self) {
        let now = self.context.clock.now().steady;
        let impact_tasks = std::mem::take(&mut self.runtime.impact_tasks);
        let ClusterRuntime { revision, scope, .. } = self.runtime;
        let peer_polls = Some(Arc::clone(&self.context.peer_polls));
        self.runtime = ClusterRuntime::new(self.id, Arc::clone(&self.context.directory), now);
        (self.runtime.revision, self.runtime.scope, self.runtime.peer_polls) = (revision, scope, peer_polls);
        self.runtime.impact_tasks = impact_tasks;
    }
}

/// Announcements that the last records of a batch name.
pub(crate) fn announced_at_end(records: &[Record]) -> Vec<MaintenanceId> {
    let mut announced = Vec::new();
    for record in records {
        match &record.entry {
            Entry::Cluster(_, ClusterEntry::Unread(more)) => announced.extend(more),
            Entry::Cluster(..) | Entry::Shared(_) => announced.clear(),
        }
    }
    announced
}
