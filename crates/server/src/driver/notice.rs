//! Notice counts from the moment at which VMs can read an announcement, not from the decision.
//!
//! ```text
//!   decide ──▶ commit ──▶ enough notice left? ──yes──▶ publish ──▶ enough notice left? ──no──▶ the start waits
//!                ▲              │ no
//!                └─ move time ──┘ nobody has read it
//! ```
//!
//! A batch with announcements ends with a record that names them. A journal that ends with such a record was closed, or its
//! process ended, before a later batch showed that VMs could read them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use forewarn_control::shared::{Answer, Change as CatalogueChange, ClusterId};
use forewarn_control::{Chain, Outcome, Told, TrailEntry, moved};
use forewarn_lifecycle::{Change, Command, Exposure, MaintenanceId, Now, Seed, Steady, TenantId, Timestamp};
use forewarn_store::{AppendFailed, Entry, Record, State as Kept};

use super::{Batch, Driver, Reply};

/// A maintenance of a cluster that is announced.
pub(super) type Announced = (ClusterId, MaintenanceId);

/// Whether VMs can read documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readers {
    /// Not yet: the server starts. Nothing that is due is done.
    Absent,
    /// They can.
    Present,
}

/// The state from which a driver goes on.
pub(crate) struct Found {
    pub(crate) kept: Kept,
    /// Ids of machines are made of it.
    pub(crate) identity: Seed,
    /// The end of the trail.
    pub(crate) chain: Chain,
    /// Announcements that no VM may have read.
    pub(crate) unread: Vec<Announced>,
    pub(crate) readers: Readers,
}

impl Found {
    /// A state without a past.
    pub(crate) fn new(kept: Kept, identity: Seed) -> Self {
        Self { kept, identity, chain: Chain::default(), unread: Vec::new(), readers: Readers::Present }
    }
}

/// The times that one commit moves.
#[derive(Default)]
struct MovedTimes {
    /// The former and the new end of each notice.
    by_work: BTreeMap<Announced, (Timestamp, Timestamp)>,
    /// The new end of the notice of each event, by its id as people read it.
    by_event: BTreeMap<String, (Timestamp, Steady)>,
}

impl Driver {
    /// Writes a batch. Announcements that become durable with less than their minimum notice get another time in the next
    /// commit, and in everything that the batch is about to show: again, if that commit was slow too.
    pub(super) fn make_durable(&mut self, batch: &mut Batch) -> Result<(), AppendFailed> {
        if batch.records.is_empty() && batch.trail.is_empty() {
            return Ok(());
        }
        let unread: Vec<_> = self.unread.union(&batch.announced).copied().collect();
        let (mut began, mut started) = (self.clock.now(), Instant::now());
        batch.records.extend(Record::unread(began, &unread));
        if !batch.announced.is_empty() {
            self.keeping.hide_trail_after(self.shown.number);
        }
        self.keeping.append(&batch.records, &batch.trail)?;
        let mut margin = Duration::ZERO;
        loop {
            let now = self.clock.now();
            let (mut records, times) = self.move_times(now, margin, &batch.announced);
            if times.by_work.is_empty() {
                return Ok(());
            }
            // A disk that was slow once may be well again. One that is slow a second time, or a clock that is fast, stays so.
            margin = margin.saturating_mul(2).max(now.steady.since(began.steady));
            report_slow_commit(started.elapsed(), times.by_work.len());
            batch.publish.extend(self.tenants_of(&times));
            batch.replies.iter_mut().for_each(|reply| reply.show_moved(&times));
            records.extend(self.moved_receipts(now, &batch.records, &times));
            records.extend(Record::unread(now, &unread));
            let first = self.move_in_trail(&mut batch.trail, &times);
            (began, started) = (now, Instant::now());
            self.keeping.rewrite(&records, &batch.trail[first..])?;
            batch.records.extend(records);
        }
    }

    /// Decides and applies which times move.
    fn move_times(
        &mut self,
        now: Now,
        margin: Duration,
        announced: &BTreeSet<Announced>,
    ) -> (Vec<Record>, MovedTimes) {
        let (mut records, mut times) = (Vec::new(), MovedTimes::default());
        for (id, maintenances) in by_cluster(announced) {
            let Some(estate) = self.kept.clusters.get_mut(&id) else { continue };
            let command = Command::EnsureNotice { maintenances, exposure: Exposure::Unread { margin } };
            let Ok(changes) = estate.cluster.decide(now, &command) else { continue };
            for change in changes {
                let Change::NoticeExtended { maintenance, not_before: to, steady_due } = change else {
                    continue;
                };
                let Some(known) = estate.cluster.maintenance(maintenance) else { continue };
                let announcements = known.plan.parts.iter().filter_map(|part| part.announcement.as_ref());
                times.by_event.extend(announcements.map(|one| (one.id.to_string(), (to, steady_due))));
                times.by_work.insert((id, maintenance), (known.plan.not_before, to));
                estate.cluster.evolve(now, &change);
                records.push(Record { now, entry: Entry::Change(id, change) });
            }
        }
        (records, times)
    }

    /// The tenants whose documents show one of these times.
    fn tenants_of(&self, times: &MovedTimes) -> Vec<(ClusterId, TenantId)> {
        let of_work = |(id, maintenance): &Announced| {
            let known = self.estate(*id).ok().and_then(|estate| estate.cluster.maintenance(*maintenance));
            let parts = known.into_iter().flat_map(|known| &known.plan.parts);
            parts.map(|part| (*id, part.tenant)).collect::<Vec<_>>()
        };
        times.by_work.keys().flat_map(of_work).collect()
    }

    /// Receipts of this batch that tell of a time that has moved, kept again.
    fn moved_receipts(&mut self, now: Now, written: &[Record], times: &MovedTimes) -> Vec<Record> {
        let mut latest = BTreeMap::new();
        for record in written {
            if let Entry::Catalogue(CatalogueChange::ReceiptKept { by, key, fingerprint, answer }) =
                &record.entry
            {
                latest.insert((by.clone(), key.clone()), (*fingerprint, answer.clone()));
            }
        }
        let mut records = Vec::new();
        for ((by, key), (fingerprint, answer)) in latest {
            let Ok(told) = serde_json::from_slice::<Outcome>(&answer.0) else { continue };
            let mut outcome = told.clone();
            times.show_in(&mut outcome);
            if outcome == told {
                continue;
            }
            let answer = Answer(serde_json::to_vec(&outcome).unwrap_or_default().into());
            let change = CatalogueChange::ReceiptKept { by, key, fingerprint, answer };
            self.kept.apply_to_catalogue(now, &change);
            records.push(Record { now, entry: Entry::Catalogue(change) });
        }
        records
    }

    /// Seals the entries of a batch again, from the first that tells of a time that has moved. Gives the place of that one.
    fn move_in_trail(&mut self, trail: &mut [Arc<TrailEntry>], times: &MovedTimes) -> usize {
        let told = |entry: &TrailEntry| times.told_in(entry);
        let Some(first) = trail.iter().position(|entry| told(entry).is_some()) else { return trail.len() };
        let before = first.checked_sub(1).and_then(|before| Chain::at(&trail[before]).ok());
        let mut chain = before.unwrap_or(self.shown);
        for entry in &mut trail[first..] {
            let again = told(entry).unwrap_or_else(|| Told::from(TrailEntry::clone(entry)));
            *entry = Arc::new(chain.seal(again));
        }
        self.chain = chain;
        first
    }

    /// VMs can read the announcements of a batch. If that took so long that less than the minimum notice is left, nobody knows
    /// who has read them: their starts wait.
    pub(super) fn after_publication(&mut self, announced: BTreeSet<Announced>, readable: Now) {
        match self.readers {
            Readers::Absent => self.unread.extend(announced),
            Readers::Present => self.hold_starts(readable, &announced),
        }
    }

    /// VMs can read documents from now on: announcements that none may have read before give a whole notice.
    pub(super) fn readers_came(&mut self) {
        self.readers = Readers::Present;
        if self.keeping.is_broken() {
            // The journal that is opened again names them.
            return;
        }
        let unread = std::mem::take(&mut self.unread);
        self.hold_starts(self.clock.now(), &unread);
    }

    fn hold_starts(&mut self, now: Now, announced: &BTreeSet<Announced>) {
        for (id, maintenances) in by_cluster(announced) {
            let command = Command::EnsureNotice { maintenances, exposure: Exposure::PerhapsRead };
            match self.decide(now, id, &command) {
                Ok(changes) if changes.is_empty() => {}
                Ok(changes) => {
                    let starts = changes.len();
                    tracing::warn!(
                        starts,
                        "starts wait for a whole notice: VMs may not have read their events"
                    );
                }
                // The cluster may be gone with everything in it.
                Err(problem) => tracing::debug!(%problem, "no notice is ensured"),
            }
        }
    }
}

impl MovedTimes {
    fn show_in(&self, outcome: &mut Outcome) {
        outcome.move_events(|id| self.by_event.get(id).map(|(to, _)| *to));
    }

    /// The entry of an announcement whose time has moved, with the moved time.
    fn told_in(&self, entry: &TrailEntry) -> Option<Told> {
        let announced = (ClusterId(entry.cluster_number), MaintenanceId(entry.work?));
        let (from, to) = self.by_work.get(&announced)?;
        moved(entry, *from, *to)
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

impl Reply {
    /// Has the answer tell times that have moved.
    fn show_moved(&mut self, times: &MovedTimes) {
        match self {
            Self::Decided(_, decided) => {
                decided.changes.iter_mut().for_each(|change| times.show_in_change(change));
            }
            Self::Outcome(_, outcome) => times.show_in(outcome),
            Self::Arranged(_, arranged) => times.show_in(&mut arranged.outcome),
            Self::Reported(_) | Self::Readable(_) => {}
        }
    }
}

/// Commits that take longer than this are worth a warning.
const COMMIT_USUAL_MAX: Duration = Duration::from_secs(1);

fn report_slow_commit(took: Duration, announcements: usize) {
    if took > COMMIT_USUAL_MAX {
        tracing::warn!(?took, announcements, "a commit was slow: announcements get a later time");
    } else {
        tracing::debug!(?took, announcements, "announcements get a later time");
    }
}

/// The maintenances of each cluster.
fn by_cluster(announced: &BTreeSet<Announced>) -> BTreeMap<ClusterId, Vec<MaintenanceId>> {
    let mut clusters = BTreeMap::<_, Vec<_>>::new();
    for (id, maintenance) in announced {
        clusters.entry(*id).or_default().push(*maintenance);
    }
    clusters
}
