//! Engines on a journal: opened, and told when VMs can read documents.

use std::path::Path;
use std::time::Duration;

use forewarn_lifecycle::{Now, Seed, Steady};
#[cfg(test)]
use forewarn_store::State as Kept;
use forewarn_store::{Journal, OpenError, Options, TRAIL_KEEP};

use super::{Engine, Hands, Request};
use crate::clock::{Clock, ClockPlan, wall, whole_second};
use crate::driver::{Found, Keeping, Readers};

impl Engine {
    /// One that is kept in memory, on a disk that is slow.
    #[cfg(test)]
    pub(crate) fn on_slow_disk(seed: Seed, clock: Clock, disk: crate::driver::SlowDisk) -> Self {
        let keeping = Keeping::in_memory().with_slow_disk(disk);
        let (engine, driving) =
            Self::prepare(Found::new(Kept::new(seed), seed), keeping, clock, Hands::Pretend);
        tokio::spawn(driving);
        engine
    }

    /// Opens the journal of a directory, or makes one, and starts the thread that owns its cluster. The seed is for one that is
    /// new.
    ///
    /// # Errors
    /// When the journal cannot be opened, or no thread can be had.
    pub fn open(place: &Path, seed: Seed, clock: ClockPlan, hands: Hands) -> Result<Self, OpenError> {
        Self::open_for(Readers::Present, place, seed, clock, hands, TRAIL_KEEP)
    }

    /// The same; entries of the trail are kept for that long, and nothing starts before [`Self::documents_are_readable`].
    ///
    /// # Errors
    /// When the journal cannot be opened, or no thread can be had.
    pub fn open_keeping(
        place: &Path,
        seed: Seed,
        clock: ClockPlan,
        hands: Hands,
        trail_keep: Duration,
    ) -> Result<Self, OpenError> {
        Self::open_for(Readers::Absent, place, seed, clock, hands, trail_keep)
    }

    fn open_for(
        readers: Readers,
        place: &Path,
        seed: Seed,
        clock: ClockPlan,
        hands: Hands,
        trail_keep: Duration,
    ) -> Result<Self, OpenError> {
        let start = match clock {
            ClockPlan::Real => Now { wall: wall(), steady: Steady::START },
            ClockPlan::Virtual { start, .. } => Now::at_millis(start.unwrap_or_else(whole_second).millis()),
        };
        let options = Options { trail_keep, ..Options::new(seed, start) };
        let (journal, found) = Journal::open(place, &options)?;
        let clock = Clock::resumed(clock, found.clock, found.state.boot);
        let keeping = Keeping::in_directory(place.to_owned(), journal, trail_keep);
        let found = Found {
            kept: found.state,
            identity: found.identity,
            chain: found.trail,
            unread: found.unread,
            readers,
        };
        let (engine, driving) = Self::prepare(found, keeping, clock, hands);
        let failed = |source| OpenError::Io { doing: "start the thread of", path: place.to_owned(), source };
        // A disk that hangs holds nobody up but whoever wants something written.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let thread = std::thread::Builder::new().name("driver".to_owned());
        thread.spawn(move || runtime.block_on(driving)).map_err(failed)?;
        Ok(engine)
    }

    /// Tells the driver that VMs can read documents from now on. Announcements that no VM may have read before give their whole
    /// notice from this moment on.
    pub async fn documents_are_readable(&self) {
        // If nobody answers, the driver has ended, or opens its journal again and knows.
        drop(self.ask(|reply| Request::Readable { reply }).await);
    }
}
