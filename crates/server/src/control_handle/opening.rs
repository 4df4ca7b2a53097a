//! Engines on a journal: opened, and told when VMs can read documents.

use std::path::Path;
use std::time::Duration;

#[cfg(test)]
use forewarn_control::ControlState;
use forewarn_lifecycle::{Now, Seed, Steady};
use forewarn_store::{Journal, OpenError, Options, TRAIL_KEEP};

use super::ControlHandle;
use crate::clock::{Clock, ClockPlan, wall, whole_second};
use crate::found::{Found, Readers};
use crate::hypervisor::Hypervisor;
use crate::journal::JournalHandle;
use crate::message::Message;

impl ControlHandle {
    /// One that is kept in memory, on a disk that is slow.
    #[cfg(test)]
    pub(crate) fn on_slow_disk(seed: Seed, clock: Clock, disk: crate::driver::SlowDisk) -> Self {
        let journal_handle = JournalHandle::in_memory().with_slow_disk(disk);
        let (engine, driving) = Self::prepare(
            Found::new(ControlState::new(seed), seed),
            journal_handle,
            clock,
            Hypervisor::Simulated,
        );
        tokio::spawn(driving);
        engine
    }

    /// Opens the journal of a directory, or makes one, and starts the thread that owns its cluster. The seed is for one that is
    /// new.
    ///
    /// # Errors
    /// When the journal cannot be opened, or no thread can be had.
    pub fn open(
        place: &Path,
        seed: Seed,
        clock: ClockPlan,
        hypervisor: Hypervisor,
    ) -> Result<Self, OpenError> {
        Self::open_for(Readers::Present, place, seed, clock, hypervisor, TRAIL_KEEP)
    }

    /// The same; entries of the trail are kept for that long, and nothing starts before [`Self::documents_are_readable`].
    ///
    /// # Errors
    /// When the journal cannot be opened, or no thread can be had.
    pub fn open_keeping(
        place: &Path,
        seed: Seed,
        clock: ClockPlan,
        hypervisor: Hypervisor,
        trail_keep: Duration,
    ) -> Result<Self, OpenError> {
        Self::open_for(Readers::Absent, place, seed, clock, hypervisor, trail_keep)
    }

    fn open_for(
        readers: Readers,
        place: &Path,
        seed: Seed,
        clock: ClockPlan,
        hypervisor: Hypervisor,
        trail_keep: Duration,
    ) -> Result<Self, OpenError> {
        let start = match clock {
            ClockPlan::Real => Now { wall: wall(), steady: Steady::START },
            ClockPlan::Virtual { start, .. } => Now::at_millis(start.unwrap_or_else(whole_second).millis()),
        };
        let options = Options { trail_keep, ..Options::new(seed, start) };
        let (journal, found) = Journal::open(place, &options)?;
        let clock = Clock::resumed(clock, found.clock, found.state.shared().boot());
        let journal_handle = JournalHandle::in_directory(place.to_owned(), journal, trail_keep);
        let found = Found {
            state: found.state,
            identity: found.identity,
            audit_end: found.trail,
            unread: found.unread,
            readers,
            recorded: found.clock,
        };
        let (engine, driving) = Self::prepare(found, journal_handle, clock, hypervisor);
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
        drop(self.ask(|reply| Message::DocumentsReadable { reply }).await);
    }
}
