//! Reminders of hosts that are ready for the work of a person. The rules of the control plane decide which message is due;
//! this waits for its time.

use std::time::Duration;

use forewarn_control::{ClusterId, HostReminders};
use forewarn_lifecycle::{HostId, MaintenanceId};
use tokio::sync::watch;

use crate::broadcasts::Broadcasts;
use crate::clock::{Clock, ClockKind};

/// Time between two looks at a clock that may be set, and at a host of which nothing is written yet.
const LOOK_MAX: Duration = Duration::from_mins(1);

/// A message that is due and cannot be written is tried again after this time.
const LOOK_MIN: Duration = Duration::from_millis(100);

/// A source of reminders of one cluster.
pub(crate) struct HostReminder {
    pub(crate) cluster: ClusterId,
    pub(crate) clock: Clock,
    pub(crate) broadcasts: Broadcasts,
    /// Time until the first reminder.
    pub(crate) interval: Duration,
}

impl HostReminder {
    /// The messages about a host so far.
    pub(crate) fn written(&self, work: MaintenanceId, host: HostId) -> Option<HostReminders> {
        self.broadcasts.snapshot.load().state.cluster(self.cluster)?.reminders(work, host)
    }

    /// Waits until the next message may be due.
    pub(crate) async fn wait(&self, written: Option<HostReminders>) {
        let commits = self.broadcasts.commits.subscribe();
        let now = self.clock.now().wall;
        let left = written.map_or(LOOK_MAX, |written| written.next(self.interval).since(now));
        let left = self.clock.real_time_for(left).unwrap_or(LOOK_MAX).clamp(LOOK_MIN, LOOK_MAX);
        tokio::select! {
            () = tokio::time::sleep(left) => {}
            () = self.clock_was_set(commits) => {}
        }
    }

    /// Waits until a virtual clock may have been set: that is a commit.
    async fn clock_was_set(&self, mut commits: watch::Receiver<u64>) {
        match self.clock.kind() {
            ClockKind::Real | ClockKind::Accelerated { .. } => std::future::pending().await,
            // An error means that the server stops.
            ClockKind::Virtual => drop(commits.changed().await),
        }
    }
}
