//! Notice that counts from the moment at which VMs can read an announcement, not from the decision.
//!
//! Announcements that become durable with less than their minimum notice get a later time, in everything that is
//! about to be published: documents, replies, receipts and the audit log. No VM has read the former time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use forewarn_lifecycle::{Change, Cluster, Command, Exposure, MaintenanceId, Now, Steady, Timestamp};

use crate::audit::{AuditEntry, Chain, NewAuditEntry, moved};
use crate::receipts::{NewReceipt, ReceiptContent};
use crate::record::{ClusterEntry, Entry, Record};
use crate::request::Reply;
use crate::state::ClusterState;
use crate::stream::ClusterId;
use crate::view::Outcome;

/// Times of announcements of one cluster that have moved.
#[derive(Debug, Default)]
pub struct MovedTimes {
    /// Records of the moves.
    pub records: Vec<Record>,
    /// The former and the new end of each notice.
    by_work: BTreeMap<MaintenanceId, (Timestamp, Timestamp)>,
    /// The new end of the notice of each event, by its id as people read it.
    by_event: BTreeMap<String, (Timestamp, Steady)>,
}

impl MovedTimes {
    /// Moves the times of announcements of a cluster that have less than their minimum notice left. `written` are the
    /// records that announced them: receipts among these that show a time which has moved are stored again, with the
    /// new time.
    #[must_use]
    pub fn decide(
        id: ClusterId,
        state: &ClusterState,
        now: Now,
        margin: Duration,
        announced: &BTreeSet<MaintenanceId>,
        written: &[Record],
    ) -> Self {
        let (mut times, rules) = (Self::default(), state.rules());
        let maintenances = announced.iter().copied().collect();
        let command = Command::EnsureNotice { maintenances, exposure: Exposure::Unread { margin } };
        let changes = rules.decide(now, &command).unwrap_or_default();
        changes.into_iter().for_each(|change| times.record(rules, now, id, change));
        if !times.is_empty() {
            times.move_receipts(now, id, written);
        }
        times
    }

    fn record(&mut self, rules: &Cluster, now: Now, id: ClusterId, change: Change) {
        let Change::NoticeExtended { maintenance, not_before: to, steady_due } = change else { return };
        let Some(known) = rules.maintenance(maintenance) else { return };
        let announcements = known.plan.parts.iter().filter_map(|part| part.announcement.as_ref());
        self.by_event.extend(announcements.map(|one| (one.id.to_string(), (to, steady_due))));
        self.by_work.insert(maintenance, (known.plan.not_before, to));
        self.records.push(Record::rules(now, id, change));
    }

    /// The number of announcements whose time has moved.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_work.len()
    }

    /// Returns true if no time has moved.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_work.is_empty()
    }

    fn move_receipts(&mut self, now: Now, id: ClusterId, written: &[Record]) {
        let mut latest = BTreeMap::new();
        for record in written {
            if let Entry::Cluster(_, ClusterEntry::ReceiptKept(new)) = &record.entry {
                latest.insert((&new.by, &new.key), new);
            }
        }
        for former in latest.into_values() {
            let Some(new) = self.receipt_with_new_times(former) else { continue };
            self.records.push(Record::in_cluster(now, id, ClusterEntry::ReceiptKept(new)));
        }
    }

    /// The receipt with the new times, if it shows a time that has moved.
    fn receipt_with_new_times(&self, receipt: &NewReceipt) -> Option<NewReceipt> {
        let former = ReceiptContent::read(&receipt.answer)?;
        let mut content = former.clone();
        self.show_in(&mut content.outcome);
        (content != former).then(|| NewReceipt { answer: content.into_stored(), ..receipt.clone() })
    }

    /// Seals audit entries again, from the first that shows a time which has moved. `before` is the end of the log
    /// before them. Returns the index of that entry, and the new end of the log.
    pub fn move_in_audit(&self, entries: &mut [Arc<AuditEntry>], before: Chain) -> Option<(usize, Chain)> {
        let moved = |entry: &AuditEntry| self.fact_with_new_time(entry);
        let first = entries.iter().position(|entry| moved(entry).is_some())?;
        let former = first.checked_sub(1).and_then(|former| Chain::at(&entries[former]).ok());
        let mut end = former.unwrap_or(before);
        for entry in &mut entries[first..] {
            let again = moved(entry).unwrap_or_else(|| NewAuditEntry::from(AuditEntry::clone(entry)));
            *entry = Arc::new(end.seal(again));
        }
        Some((first, end))
    }

    fn fact_with_new_time(&self, entry: &AuditEntry) -> Option<NewAuditEntry> {
        let (from, to) = self.by_work.get(&MaintenanceId(entry.work?))?;
        moved(entry, *from, *to)
    }

    /// Shows the new times in a reply.
    pub fn show_in_reply(&self, reply: &mut Reply) {
        match reply {
            Reply::Decided(decided) => {
                decided.changes.iter_mut().for_each(|change| self.show_in_change(change));
            }
            Reply::Outcome(outcome) | Reply::Repeated(outcome) => self.show_in(outcome),
            Reply::Transacted(transacted) => self.show_in(&mut transacted.outcome),
            Reply::Done => {}
        }
    }

    fn show_in(&self, outcome: &mut Outcome) {
        outcome.move_events(|id| self.by_event.get(id).map(|(to, _)| *to));
        outcome.move_starts(|work| self.by_work.get(&work).map(|(_, to)| *to));
    }

    fn show_in_change(&self, change: &mut Change) {
        let Change::Planned(plan) = change else { return };
        let mut announcements = plan.parts.iter().filter_map(|part| part.announcement.as_ref());
        let moved = announcements.find_map(|announcement| self.by_event.get(&announcement.id.to_string()));
        if let Some(end) = moved {
            (plan.not_before, plan.steady_due) = *end;
        }
    }
}
