//! The state of a simulated program.

use std::collections::BTreeSet;
use std::time::Duration;

use forewarn_lifecycle::EventId;

use crate::statement::SourceName;

/// A machine whose program is simulated.
pub(crate) struct SimulatedProgram {
    /// The machine, as `tenant/name`.
    pub(crate) machine: SourceName,
    /// The incarnation of the document that it has read last.
    pub(crate) read: Option<u64>,
    /// The time of its last poll.
    pub(crate) polled: Duration,
    /// Events that it has approved.
    pub(crate) approved: BTreeSet<EventId>,
}
