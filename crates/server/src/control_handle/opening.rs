//! Control handles on a journal.

use std::io;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use forewarn_control::ControlState;
use forewarn_lifecycle::{Now, Seed, Steady};
use forewarn_store::{AUDIT_RETENTION, Journal, OpenError, Options, RealmMark};

use super::ControlHandle;
use crate::boot;
use crate::clock::{Clock, ClockPlan, wall, whole_second};
use crate::hypervisor::Hypervisor;
use crate::initial_state::{InitialState, Readers};
use crate::journal::JournalHandle;
use crate::message::ClusterMessage;
use crate::realm::RealmHandle;
use crate::supervisor::abort_on_panic;

/// Fewest threads of the drivers: a long decision in one cluster leaves others to the rest.
const DRIVER_THREADS_MIN: usize = 4;

impl ControlHandle {
    /// A control handle in memory, on a slow disk.
    #[cfg(test)]
    pub(crate) fn on_slow_disk(seed: Seed, clock: Clock, disk: crate::driver::SlowDisk) -> Self {
        let journal = JournalHandle::in_memory().with_slow_disk(disk);
        let initial = InitialState::new(ControlState::new(seed), seed);
        Self::spawn(&initial, journal, clock, Hypervisor::simulated())
    }

    /// A second driver of the clock, which a test steps.
    #[cfg(test)]
    pub(crate) fn clock_driver(&self) -> crate::clock_driver::ClockDriver {
        let (context, clusters) = (self.parts.context.clone(), self.parts.clusters.clone());
        crate::clock_driver::ClockDriver::new(context, clusters, self.parts.is_durable, self.clock().now())
    }

    /// Sends a message to the driver of a cluster.
    #[cfg(test)]
    pub(crate) async fn send_to_cluster(&self, id: forewarn_control::ClusterId, message: ClusterMessage) {
        self.link(id).expect("a cluster").messages.send(message).await.expect("a driver");
    }

    /// The link to the driver of a cluster.
    #[cfg(test)]
    pub(crate) fn cluster_link(&self, id: forewarn_control::ClusterId) -> crate::clusters::ClusterLink {
        self.link(id).expect("a cluster")
    }

    /// Opens or creates the journal of a directory, and starts its drivers on threads of their own. The seed is for a
    /// new journal.
    ///
    /// # Errors
    /// Returns an error if the journal cannot be opened, or the threads cannot be started.
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
    /// Returns an error if the journal cannot be opened, or the threads cannot be started.
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
        RealmMark::refuse(directory)?;
        let options = Options { audit_retention: audit_keep, ..Options::new(seed, start) };
        let (journal, found) = Journal::open(directory, &options)?;
        // Two servers would decide about the same clusters.
        let mut clusters = found.state.clusters();
        let is_copy =
            found.state.shared().log_number() > 0 || clusters.any(|(_, cluster)| cluster.log_number() > 0);
        drop(clusters);
        if is_copy {
            return Err(OpenError::OfRealm(directory.to_owned()));
        }
        let clock = Clock::resumed(clock, found.clock, boot::latest(&found.state));
        let journal = JournalHandle::in_directory(directory.to_owned(), journal, audit_keep);
        let initial = InitialState::recovered(found, readers);
        Self::on_own_threads(&initial, journal, clock, hypervisor, None).map_err(|source| OpenError::Io {
            doing: "start the threads of",
            path: directory.to_owned(),
            source,
        })
    }

    /// Starts the drivers of a new server in memory, on threads of their own.
    ///
    /// # Errors
    /// Returns an error if the threads cannot be started.
    pub fn start_in_memory(seed: Seed, clock: Clock, hypervisor: Hypervisor) -> io::Result<Self> {
        let initial = InitialState::new(ControlState::new(seed), seed);
        Self::on_own_threads(&initial, JournalHandle::in_memory(), clock, hypervisor, None)
    }

    /// Starts the drivers and their supervisor on threads of their own: a long decision, or a hanging disk, blocks
    /// writers of its cluster only.
    pub(super) fn on_own_threads(
        initial: &InitialState,
        journal: JournalHandle,
        clock: Clock,
        hypervisor: Hypervisor,
        realm: Option<RealmHandle>,
    ) -> io::Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(cores.max(DRIVER_THREADS_MIN))
            .thread_name("driver")
            .enable_all()
            .build()?;
        let (control, supervising) = {
            let _on_runtime = runtime.enter();
            Self::prepare(initial, journal, clock, hypervisor, realm)
        };
        let thread = std::thread::Builder::new().name("supervisor".to_owned());
        thread.spawn(move || runtime.block_on(abort_on_panic("supervisor", supervising)))?;
        Ok(control)
    }

    /// Tells the drivers that VMs can read documents from now on. Announcements that no VM may have read before give
    /// their whole notice from this moment on. When this returns, everything that an earlier process has left half done
    /// is complete: unused claims are released, closed clusters removed.
    pub async fn documents_are_readable(&self) {
        self.parts.context.readers_are_present();
        self.parts.clusters.ask_all(|reply| ClusterMessage::DocumentsReadable { reply }).await;
        self.parts.context.finish_removals().await;
    }
}
