//! The journal of a driver: in memory or in a directory, and opened again after a failure.
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

use forewarn_control::{AuditEntry, ControlState, Record};
use forewarn_lifecycle::{Now, Seed};
use forewarn_store::{
    AppendFailed, CopyError, Journal, Missing, Options, Reach, Recovered, TRAIL_KEEP, TrailReader,
};
use tokio::sync::oneshot;

#[cfg(test)]
use crate::driver::SlowDisk;

/// The first pause before the journal is opened again, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// The journal of a driver.
#[derive(Debug)]
pub(crate) struct JournalHandle {
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
    slow_disk: SlowDisk,
}

#[derive(Debug)]
struct Retry {
    at: Instant,
    pause: Duration,
}

impl JournalHandle {
    /// In memory, for as long as the process lives.
    pub(crate) fn in_memory() -> Self {
        Self::new(None, Journal::memory())
    }

    /// In a directory, where a journal has been opened.
    pub(crate) fn in_directory(place: PathBuf, journal: Journal, trail_keep: Duration) -> Self {
        Self { trail_keep, ..Self::new(Some(place), journal) }
    }

    #[cfg(test)]
    pub(crate) fn with_slow_disk(self, slow_disk: SlowDisk) -> Self {
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
            slow_disk: SlowDisk::default(),
        }
    }

    /// Whether it outlives the process.
    pub(crate) fn is_durable(&self) -> bool {
        self.place.is_some()
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.journal.is_none()
    }

    /// The reason why the journal takes nothing more, found by the journal itself while nothing is appended.
    pub(crate) fn failure(&self) -> Option<AppendFailed> {
        self.journal.as_ref()?.failure()
    }

    /// Gives up the journal after a failure.
    pub(crate) fn give_up(&mut self) {
        if let Some(journal) = self.journal.take() {
            self.reached = journal.reach();
        }
    }

    pub(crate) fn append(
        &mut self,
        records: &[Record],
        trail: &[Arc<AuditEntry>],
    ) -> Result<(), AppendFailed> {
        #[cfg(test)]
        self.slow_disk.check()?;
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
    pub(crate) fn rewrite(
        &mut self,
        records: &[Record],
        trail: &[Arc<AuditEntry>],
    ) -> Result<(), AppendFailed> {
        let journal = self.journal.as_mut().ok_or(AppendFailed::Closed)?;
        journal.rewrite(records, trail)?;
        #[cfg(test)]
        self.slow_disk.pass(&self.trail_reader());
        Ok(())
    }

    /// Hides entries of the trail from readers until [`Self::show_trail`].
    pub(crate) fn hide_trail_after(&self, number: u64) {
        if let Some(journal) = &self.journal {
            journal.hide_trail_after(number);
        }
    }

    pub(crate) fn show_trail(&self) {
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

    pub(crate) fn fold_if_wanted(&mut self, kept: &ControlState) {
        if let Some(journal) = self.journal.as_mut().filter(|journal| journal.wants_fold()) {
            journal.fold(kept.clone());
        }
    }

    pub(crate) fn copy(&self, to: &Path, reply: oneshot::Sender<Result<(), CopyError>>) {
        match &self.journal {
            // Whoever asked may have gone; the copy is there all the same.
            Some(journal) => journal.copy_then(to, move |copied| drop(reply.send(copied))),
            None => drop(reply.send(Err(CopyError::Closed))),
        }
    }

    pub(crate) fn close(&mut self) {
        if let Some(journal) = self.journal.take()
            && let Err(problem) = journal.close()
        {
            tracing::error!(%problem, "the journal could not be closed");
        }
    }

    /// How long it is until the journal is opened again.
    pub(crate) fn until_retry(&self) -> Option<Duration> {
        self.is_broken().then(|| self.retry.at.saturating_duration_since(Instant::now()))
    }

    pub(crate) fn wait(&mut self) {
        self.retry.at = Instant::now() + self.retry.pause;
        self.retry.pause = (self.retry.pause * 2).min(PAUSE_MAX);
    }

    /// Opens the journal again, if it is time, and sees whether it can be written: one that can be read need not be.
    pub(crate) fn reopen(&mut self, identity: Seed, now: Now) -> Option<Recovered> {
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
    let mut records = vec![Record::clock(options.now)];
    records.extend(Record::unread(options.now, &found.unread));
    journal.append(&records, &[])?;
    Ok((journal, found))
}
