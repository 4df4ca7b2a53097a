//! Control handles on a journal.

use std::path::Path;
use std::time::Duration;

#[cfg(test)]
use forewarn_control::ControlState;
use forewarn_lifecycle::{Now, Seed, Steady};
use forewarn_store::{AUDIT_RETENTION, Journal, OpenError, Options};

use super::ControlHandle;
use crate::clock::{Clock, ClockPlan, wall, whole_second};
use crate::hypervisor::Hypervisor;
use crate::initial_state::{InitialState, Readers};
use crate::journal::JournalHandle;
use crate::message::Message;

impl ControlHandle {
    /// A control handle in memory, on a slow disk.
    #[cfg(test)]
    pub(crate) fn on_slow_disk(seed: Seed, clock: Clock, disk: crate::driver::SlowDisk) -> Self {
        let journal_handle = JournalHandle::in_memory().with_slow_disk(disk);
        let (control, driving) = Self::prepare(
            InitialState::new(ControlState::new(seed), seed),
            journal_handle,
            clock,
            Hypervisor::Simulated,
        );
        tokio::spawn(driving);
        control
    }

    /// Opens or creates the journal of a directory, and starts the thread of its driver. The seed is for a new journal.
    ///
    /// # Errors
    /// Returns an error if the journal cannot be opened, or the thread cannot be started.
    pub fn open(
        directory: &Path,
        seed: Seed,
        clock: ClockPlan,
        hypervisor: Hypervisor,
    ) -> Result<Self, OpenError> {
        Self::open_for(Readers::Present, directory, seed, clock, hypervisor, AUDIT_RETENTION)
    }

    /// The same, with a retention time of audit entries. Nothing starts before [`Self::documents_are_readable`].
    ///
    /// # Errors
    /// Returns an error if the journal cannot be opened, or the thread cannot be started.
    pub fn open_keeping(
        directory: &Path,
        seed: Seed,
        clock: ClockPlan,
        hypervisor: Hypervisor,
        audit_keep: Duration,
    ) -> Result<Self, OpenError> {
        Self::open_for(Readers::Absent, directory, seed, clock, hypervisor, audit_keep)
    }

    fn open_for(
        readers: Readers,
        directory: &Path,
        seed: Seed,
        clock: ClockPlan,
        hypervisor: Hypervisor,
        audit_keep: Duration,
    ) -> Result<Self, OpenError> {
        let start = match clock {
            ClockPlan::Real => Now { wall: wall(), steady: Steady::START },
            ClockPlan::Virtual { start, .. } => Now::at_millis(start.unwrap_or_else(whole_second).millis()),
        };
        let options = Options { audit_retention: audit_keep, ..Options::new(seed, start) };
        let (journal, found) = Journal::open(directory, &options)?;
        let clock = Clock::resumed(clock, found.clock, found.state.shared().boot());
        let journal_handle = JournalHandle::in_directory(directory.to_owned(), journal, audit_keep);
        let initial = InitialState {
            state: found.state,
            identity: found.identity,
            audit_end: found.audit_chain,
            unread: found.unread,
            readers,
            recorded: found.clock,
        };
        let (control, driving) = Self::prepare(initial, journal_handle, clock, hypervisor);
        let failed =
            |source| OpenError::Io { doing: "start the thread of", path: directory.to_owned(), source };
        // The driver has its own thread: a hanging disk blocks writers only.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let thread = std::thread::Builder::new().name("driver".to_owned());
        thread.spawn(move || runtime.block_on(driving)).map_err(failed)?;
        Ok(control)
    }

    /// Tells the driver that VMs can read documents from now on. Announcements that no VM may have read before give
    /// their whole notice from this moment on.
    pub async fn documents_are_readable(&self) {
        // Without a reply, the driver has stopped, or reopens its journal and knows.
        drop(self.call(|reply| Message::DocumentsReadable { reply }).await);
    }
}
