//! Notice counts from the moment at which VMs can read an announcement, not from the decision.
//!
//! ```text
//!   decide ──▶ commit ──▶ enough notice left? ──yes──▶ publish ──▶ enough notice left? ──no──▶ the start waits
//!                ▲              │ no
//!                └─ move time ──┘ no VM has read it
//! ```
//!
//! A batch with announcements ends with a record that names them. A journal that ends with such a record was closed,
//! or its process ended, before a later batch showed that VMs could read them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forewarn_control::Record;
use forewarn_control::notice::MovedTimes;
use forewarn_control::request::{ClusterRequest, Reply};
use forewarn_lifecycle::{Command, Exposure, MaintenanceId, Now};

use super::batch::Batch;
use super::{Driver, Role};
use crate::initial_state::Readers;
use crate::realm_log::CommitError;
use crate::role::RealmScope;

/// Commits that take longer than this are worth a warning.
const COMMIT_USUAL_MAX: Duration = Duration::from_secs(1);

impl Driver {
    /// Writes a batch. Announcements that become durable with less than their minimum notice get another time in the
    /// next commit, and again if that commit is slow too.
    pub(super) async fn make_durable(&mut self, batch: &mut Batch) -> Result<(), CommitError> {
        if batch.is_empty() {
            return Ok(());
        }
        let unread: Vec<_> = self.unread.union(&batch.announced).copied().collect();
        let clock = self.context.clock.clone();
        let (mut began, mut started) = (clock.now(), Instant::now());
        batch.records.extend(Record::unread(began, self.id, &unread));
        self.add_position(&mut batch.records).await;
        if !batch.announced.is_empty() {
            self.journal.hide_entries_after(self.audit_shown.number);
        }
        let first_position =
            self.journal.append(&mut batch.records, &batch.audit, &clock).await?.first_position;
        self.durable = Some((first_position, batch.audit.clone()));
        self.logged = (Arc::clone(&self.state), self.audit_end);
        if self.runtime.scope == RealmScope::Realm {
            // The commit has written it into the head.
            self.recorded_clock = began;
        }
        let mut margin = Duration::ZERO;
        loop {
            let now = clock.now();
            let announced = &batch.announced;
            let mut times = MovedTimes::decide(self.id, &self.state, now, margin, announced, &batch.records);
            if times.is_empty() {
                return Ok(());
            }
            // A disk that was slow once may have recovered. A disk that is slow again, or a fast clock, stays so.
            margin = margin.saturating_mul(2).max(now.steady.since(began.steady));
            report_slow_commit(started.elapsed(), times.len());
            let replies = batch.pending.replies.iter_mut().filter_map(|(_, reply)| reply.as_mut().ok());
            replies.for_each(|reply| times.show_in_reply(reply));
            let mut records = std::mem::take(&mut times.records);
            self.apply(&records).into_iter().for_each(|effect| batch.add(effect));
            records.extend(Record::unread(now, self.id, &unread));
            self.add_position(&mut records).await;
            let moved = times.move_in_audit(&mut batch.audit, self.audit_shown);
            let first = moved.map_or(batch.audit.len(), |(first, _)| first);
            self.audit_end = moved.map_or(self.audit_end, |(_, end)| end);
            (began, started) = (now, Instant::now());
            self.journal.rewrite(&records, &batch.audit[first..], &clock).await?;
            self.logged = (Arc::clone(&self.state), self.audit_end);
            self.durable = Some((first_position, batch.audit.clone()));
            batch.records.extend(records);
        }
    }

    /// VMs can read the announcements of a batch. If that took so long that less than the minimum notice is left, it
    /// is unknown which VMs have read them: their starts wait.
    pub(super) fn after_publication(&mut self, announced: BTreeSet<MaintenanceId>, readable: Now) {
        match self.readers {
            Readers::Absent => self.unread.extend(announced),
            Readers::Present => self.hold_starts(readable, announced),
        }
    }

    /// VMs can read documents from now on: announcements that none may have read before give a whole notice.
    pub(super) fn documents_became_readable(&mut self) {
        self.readers = Readers::Present;
        if self.journal.role() == Role::Follower {
            return;
        }
        // A broken journal names them when it is opened again.
        if !self.journal.is_broken() {
            let unread = std::mem::take(&mut self.unread);
            self.hold_starts(self.context.clock.now(), unread);
        }
    }

    fn hold_starts(&mut self, now: Now, announced: BTreeSet<MaintenanceId>) {
        let starts = self.extend_notice(now, announced);
        if starts > 0 {
            tracing::warn!(starts, "starts delayed: VMs may not have read their events");
        }
    }

    /// Lets the starts of announcements wait for their minimum notice from now on. Returns the number of those that would
    /// have been earlier.
    pub(super) fn extend_notice(&mut self, now: Now, announced: BTreeSet<MaintenanceId>) -> usize {
        if announced.is_empty() {
            return 0;
        }
        let (maintenances, exposure) = (announced.into_iter().collect(), Exposure::PerhapsRead);
        let command = Command::EnsureNotice { maintenances, exposure };
        match self.decide(now, &ClusterRequest::Rules(command)) {
            Ok(Reply::Decided(decided)) => decided.changes.len(),
            Ok(_) => 0,
            // The cluster may be closed, with nothing in it.
            Err(error) => {
                tracing::debug!(%error, "cannot extend the notice");
                0
            }
        }
    }
}

fn report_slow_commit(took: Duration, announcements: usize) {
    if took > COMMIT_USUAL_MAX {
        tracing::warn!(?took, announcements, "slow commit; announcements moved to a later time");
    } else {
        tracing::debug!(?took, announcements, "announcements moved to a later time");
    }
}
