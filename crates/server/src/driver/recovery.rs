//! Keeping what was decided, and going on from it: after a restart, and after the journal has failed.
//!
//! ```text
//!   well ──append fails──▶ broken: nothing is decided, what was published is still read
//!     ▲                       │
//!     └──opened, replayed─────┘ with growing pauses
//!        and written
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use forewarn_control::shared::ClusterId;
use forewarn_control::{Details, TrailEntry};
use forewarn_lifecycle::{MachineId, Now, Seed};
use forewarn_store::{
    AppendFailed, CopyError, Entry, Estate, Journal, Missing, Options, Reach, Record, Recovered,
    State as Kept, TRAIL_KEEP, TrailQuery, TrailReader,
};
use tokio::sync::{mpsc, oneshot};

use super::{Driver, Readers, Reply};
use crate::engine::Request;
use crate::roster::Roster;

/// The first pause before the journal is opened again, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Where a driver keeps what it decides.
#[derive(Debug)]
pub(crate) struct Keeping {
    /// The directory; none, if it is kept in memory.
    place: Option<PathBuf>,
    /// None, if it has failed.
    journal: Option<Journal>,
    retry: Retry,
    /// How long entries of the trail are kept.
    trail_keep: Duration,
    /// The end of the journal when it failed: another journal, or an older one, is not taken for it.
    reached: Option<Reach>,
    #[cfg(test)]
    slow_disk: super::tests::SlowDisk,
}

#[derive(Debug)]
struct Retry {
    at: Instant,
    pause: Duration,
}

impl Keeping {
    /// In memory, for as long as the process lives.
    pub(crate) fn in_memory() -> Self {
        Self::new(None, Journal::memory())
    }

    /// In a directory, where a journal has been opened.
    pub(crate) fn in_directory(place: PathBuf, journal: Journal, trail_keep: Duration) -> Self {
        Self { trail_keep, ..Self::new(Some(place), journal) }
    }

    #[cfg(test)]
    pub(crate) fn with_slow_disk(self, slow_disk: super::tests::SlowDisk) -> Self {
        Self { slow_disk, ..self }
    }

    fn new(place: Option<PathBuf>, journal: Journal) -> Self {
        let retry = Retry { at: Instant::now(), pause: PAUSE_MIN };
        Self {
            place,
            journal: Some(journal),
            retry,
            trail_keep: TRAIL_KEEP,
            reached: None,
            #[cfg(test)]
            slow_disk: super::tests::SlowDisk::default(),
        }
    }

    /// Whether it outlives the process.
    pub(super) fn is_durable(&self) -> bool {
        self.place.is_some()
    }

    pub(super) fn is_broken(&self) -> bool {
        self.journal.is_none()
    }

    /// The reason why the journal takes nothing more, found by the journal itself while nothing is appended.
    fn failure(&self) -> Option<AppendFailed> {
        self.journal.as_ref()?.failure()
    }

    /// Gives up the journal after a failure.
    fn give_up(&mut self) {
        if let Some(journal) = self.journal.take() {
            self.reached = journal.reach();
        }
    }

    pub(super) fn append(
        &mut self,
        records: &[Record],
        trail: &[Arc<TrailEntry>],
    ) -> Result<(), AppendFailed> {
        match &mut self.journal {
            _ if records.is_empty() && trail.is_empty() => return Ok(()),
            Some(journal) => journal.append(records, trail)?,
            None => return Err(AppendFailed::Closed),
        }
        #[cfg(test)]
        self.slow_disk.pass(&self.trail_reader());
        Ok(())
    }

    /// Appends records, and puts entries in the place of the last ones of the trail, which are hidden.
    pub(super) fn rewrite(
        &mut self,
        records: &[Record],
        trail: &[Arc<TrailEntry>],
    ) -> Result<(), AppendFailed> {
        let journal = self.journal.as_mut().ok_or(AppendFailed::Closed)?;
        journal.rewrite(records, trail)?;
        #[cfg(test)]
        self.slow_disk.pass(&self.trail_reader());
        Ok(())
    }

    /// Hides entries of the trail from readers until [`Self::show_trail`].
    pub(super) fn hide_trail_after(&self, number: u64) {
        if let Some(journal) = &self.journal {
            journal.hide_trail_after(number);
        }
    }

    pub(super) fn show_trail(&self) {
        if let Some(journal) = &self.journal {
            journal.show_trail();
        }
        #[cfg(test)]
        self.slow_disk.pass_at_publication();
    }

    /// Who reads the trail for others.
    pub(crate) fn trail_reader(&self) -> TrailReader {
        self.journal.as_ref().map_or_else(TrailReader::closed, Journal::trail_reader)
    }

    pub(super) fn fold_if_wanted(&mut self, kept: &Kept) {
        if let Some(journal) = self.journal.as_mut().filter(|journal| journal.wants_fold()) {
            journal.fold(kept.clone());
        }
    }

    pub(super) fn copy(&self, to: &Path, reply: oneshot::Sender<Result<(), CopyError>>) {
        match &self.journal {
            // Whoever asked may have gone; the copy is there all the same.
            Some(journal) => journal.copy_then(to, move |copied| drop(reply.send(copied))),
            None => drop(reply.send(Err(CopyError::Closed))),
        }
    }

    pub(super) fn close(&mut self) {
        if let Some(journal) = self.journal.take()
            && let Err(problem) = journal.close()
        {
            tracing::error!(%problem, "the journal could not be closed");
        }
    }

    /// How long it is until the journal is opened again.
    pub(super) fn until_retry(&self) -> Option<Duration> {
        self.is_broken().then(|| self.retry.at.saturating_duration_since(Instant::now()))
    }

    fn wait(&mut self) {
        self.retry.at = Instant::now() + self.retry.pause;
        self.retry.pause = (self.retry.pause * 2).min(PAUSE_MAX);
    }

    /// Opens the journal again, if it is time, and sees whether it can be written: one that can be read need not be.
    fn reopen(&mut self, identity: Seed, now: Now) -> Option<Recovered> {
        let place =
            self.place.as_ref().filter(|_| self.journal.is_none() && self.retry.at <= Instant::now())?;
        let (trail_keep, reached) = (self.trail_keep, self.reached);
        let options = Options { trail_keep, reached, ..Options::new(identity, now) };
        match open_and_write(place, options) {
            Ok((journal, found)) => {
                self.journal = Some(journal);
                self.retry.pause = PAUSE_MIN;
                Some(found)
            }
            Err(problem) => {
                tracing::warn!(%problem, "the journal cannot be used yet");
                self.wait();
                None
            }
        }
    }
}

/// Opens a journal that has failed, and writes down what the clocks show: it may be more than was ever written.
fn open_and_write(
    place: &Path,
    options: Options,
) -> Result<(Journal, Recovered), Box<dyn std::error::Error>> {
    // A disk that is not there is not an empty one.
    let options = Options { missing: Missing::Refuse, ..options };
    let (mut journal, found) = Journal::open(place, &options)?;
    let mut records = vec![Record { now: options.now, entry: Entry::Clock }];
    records.extend(Record::unread(options.now, &found.unread));
    journal.append(&records, &[])?;
    Ok((journal, found))
}

impl Driver {
    /// The journal has failed: what was decided and not written never was. What was published stays.
    pub(super) fn break_off(&mut self, problem: &AppendFailed) {
        if self.keeping.is_broken() {
            // Somebody was in the middle of something: the reason is known already.
            return;
        }
        tracing::error!(%problem, "nothing can be written; documents are still answered");
        self.keeping.give_up();
        self.keeping.wait();
        // Perhaps that was among what could not be written.
        self.noted = Now::at_millis(0);
        self.heralds.is_troubled(Some(problem.to_string()));
    }

    /// Stops writing if the journal has found by itself that it cannot be written: its directory may have been removed.
    pub(super) fn notice_failure(&mut self) {
        if let Some(problem) = self.keeping.failure() {
            self.break_off(&problem);
            // Whatever was decided since the last commit never was.
            std::mem::take(&mut self.batch).replies.into_iter().for_each(Reply::fail);
        }
    }

    /// Opens the journal again, if it has failed and it is time, and goes on from what is found there.
    pub(super) fn try_again(&mut self, own: &mpsc::WeakSender<Request>) {
        let now = self.clock.now();
        let Some(Recovered { state, trail, unread, .. }) = self.keeping.reopen(self.identity, now) else {
            return;
        };
        let published = self.heralds.published();
        (self.kept, self.chain, self.shown) = (state, trail, trail);
        self.unread = unread.into_iter().collect();
        self.heralds.can_read(self.keeping.trail_reader());
        self.show_all();
        self.tell_missed(published);
        self.heralds.is_troubled(None);
        tracing::info!("the journal can be written again");
        // It may fail again at once, and say so.
        self.resume(own);
    }

    /// Tells entries that were found in the journal and that no listener has heard of: their commit was taken for failed.
    fn tell_missed(&self, mut after: u64) {
        let reader = self.keeping.trail_reader();
        let read = |after| reader.read(TrailQuery { after: Some(after), ..TrailQuery::default() });
        while let Ok(page) = read(after)
            && let Some(last) = page.entries.last()
        {
            after = last.number;
            self.heralds.tell(page.entries);
        }
    }

    /// Publishes every document, and lists every machine.
    pub(super) fn show_all(&mut self) {
        self.held.clear();
        let former: Vec<_> = self.wards.keys().copied().collect();
        former.into_iter().for_each(|id| self.unlist_gone(id));
        self.wards.retain(|id, _| self.kept.clusters.contains_key(id));
        let clusters: Vec<_> = self.kept.clusters.keys().copied().collect();
        clusters.into_iter().for_each(|id| self.show(id));
        self.heralds.show(Roster::of(&self.kept.catalogue));
        self.heralds.has_published(self.chain.number);
    }

    /// Publishes every document of a cluster, and lists its machines.
    pub(super) fn show(&mut self, id: ClusterId) {
        self.ward(id);
        let Some(Estate { cluster, details, .. }) = self.kept.clusters.get(&id) else { return };
        let addresses = |(machine, details): (&MachineId, &Details)| {
            let machine = (id, *machine);
            details.addresses.iter().map(move |address| (address.to_canonical(), machine)).collect::<Vec<_>>()
        };
        self.held.extend(details.iter().flat_map(addresses));
        let tenants: Vec<_> = cluster.tenants().map(|(id, _)| id).collect();
        for tenant in tenants {
            self.publish(id, tenant);
            // Nobody knows who asked while nobody was there to hear it: silences begin anew.
            if let Some(slot) = self.wards.get(&id).and_then(|ward| ward.slots.get(&tenant)) {
                slot.hear(self.clock.now().steady);
            }
        }
        self.list_all(id);
    }

    /// What was published and listed, and is not there any more, goes.
    fn unlist_gone(&mut self, id: ClusterId) {
        let cluster = self.kept.clusters.get(&id).map(|estate| &estate.cluster);
        let has_machine = |machine: &MachineId| cluster.is_some_and(|all| all.machine(*machine).is_some());
        let ward = self.wards.entry(id).or_default();
        ward.slots.retain(|tenant, _| cluster.is_some_and(|all| all.tenant(*tenant).is_some()));
        let gone: Vec<_> = ward.listed.keys().copied().filter(|machine| !has_machine(machine)).collect();
        gone.into_iter().for_each(|machine| drop(self.unlist(id, machine)));
    }

    /// What has been commanded and not reported as finished is commanded again.
    pub(super) fn resume(&mut self, own: &mpsc::WeakSender<Request>) {
        let clusters = self.kept.clusters.iter();
        let unfinished = clusters.flat_map(|(id, estate)| estate.cluster.unfinished().map(|one| (*id, one)));
        let unfinished: Vec<_> = unfinished.collect();
        unfinished.into_iter().for_each(|(id, action)| self.perform(id, action, own));
        if let Some(boot) = self.clock.boot().filter(|boot| self.kept.boot != Some(*boot))
            && self.keeping.is_durable()
        {
            self.kept.boot = Some(boot);
            self.batch.records.push(Record { now: self.clock.now(), entry: Entry::Booted(boot) });
        }
        if self.readers == Readers::Present {
            self.readers_came();
        }
        self.commit(own);
    }
}
