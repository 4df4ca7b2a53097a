//! Following the log, and the beginning of an ownership.

use std::collections::BTreeSet;
use std::sync::Arc;

use forewarn_control::shared::Boot;
use forewarn_control::{Chain, ClusterEntry, Entry, Record, Stream};
use forewarn_lifecycle::MaintenanceId;
use forewarn_ownership::{StreamClock, StreamWriter};

use super::driver::{Driver, Local, Ownership, Role};
use crate::context::Context;
use crate::engine::{HeadDetails, LogBatch, Payload};
use crate::omission::Omission;

impl Driver {
    /// Copies a batch of the log. One that the state contains already is ignored, as is one after a gap.
    pub(crate) fn follow(
        &mut self,
        local: &mut Local<'_>,
        context: &mut Context<'_>,
        (number, logged): (u64, &Payload),
    ) {
        if matches!(self.role, Role::Owner(_)) || number != self.state.log_number() + 1 {
            return;
        }
        local.journal.push(Arc::clone(logged));
        self.apply(&logged.records);
        self.audit_end = end_of_audit(self.audit_end, logged);
        self.logged = (Arc::clone(&self.state), self.audit_end);
        self.unread = announced_at_end(&logged.records);
        self.is_held = true;
        if self.unread.is_empty() {
            self.show_held(local, context);
        }
    }

    /// The owner has published its state after that batch. One before it may hold times that the owner has moved since.
    pub(crate) fn follow_publication(&mut self, local: &Local<'_>, context: &mut Context<'_>, number: u64) {
        let is_follower = matches!(self.role, Role::Follower | Role::TakingOver(_));
        let at = self.state.log_number();
        let is_shown = at == number || context.omits(Omission::ShownByOwner) && at < number;
        if is_follower && self.is_held && is_shown {
            self.unread.clear();
            self.show_held(local, context);
        }
    }

    fn show_held(&mut self, local: &Local<'_>, context: &mut Context<'_>) {
        if std::mem::take(&mut self.is_held) {
            self.publish(local, context);
        }
    }

    /// Begins to decide. Everything unfinished is carried out again; events that no VM may have read get their whole
    /// notice.
    pub(crate) fn begin_ownership(
        &mut self,
        local: &mut Local<'_>,
        context: &mut Context<'_>,
        writer: StreamWriter<HeadDetails, Payload>,
        clock: StreamClock,
    ) {
        let term = writer.head().term;
        context.checks.count("takeovers");
        context.step_log.add(context.now, local.name.as_str(), || {
            format!("owns cluster {} in term {term}, after batch {}", self.id, self.state.log_number())
        });
        self.role = Role::Owner(Box::new(Ownership { writer, clock, commit: None, is_moving: false }));
        self.is_held = false;
        self.publish(local, context);
        let now = local.clock.read(&clock, context.now);
        self.recorded = now.steady;
        let unfinished: Vec<_> = self.state.rules().unfinished().collect();
        unfinished.into_iter().for_each(|action| self.perform(local, context, action));
        let uptime = local.clock.uptime(context.now);
        let offset_millis = now.steady.millis().cast_signed() - uptime.millis().cast_signed();
        let boot = Boot { id: local.clock.boot.0, offset_millis };
        if self.state.boot() != Some(boot) {
            self.record(Record::booted(now, Stream::Cluster(self.id), boot));
        }
        let unread = std::mem::take(&mut self.unread);
        if !Self::forgets_unread(context) {
            self.hold_starts(context, now, unread);
        }
        self.pump(local, context);
    }
}

/// The end of an audit log after a batch.
pub(crate) fn end_of_audit(before: Chain, batch: &LogBatch) -> Chain {
    batch.entries.last().and_then(|entry| Chain::at(entry).ok()).unwrap_or(before)
}

/// Announcements that the last records of a batch name.
pub(crate) fn announced_at_end(records: &[Record]) -> BTreeSet<MaintenanceId> {
    let mut announced = BTreeSet::new();
    for record in records {
        match &record.entry {
            Entry::Cluster(_, ClusterEntry::Unread(more)) => announced.extend(more.iter().copied()),
            Entry::Cluster(..) | Entry::Shared(_) => announced.clear(),
        }
    }
    announced
}
