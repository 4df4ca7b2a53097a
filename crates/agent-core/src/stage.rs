//! Progress of a machine with an event, as peers report it.

use serde::{Deserialize, Serialize};

/// Progress of a machine with an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Waiting for its turn to prepare.
    Waiting,
    Preparing,
    Ready,
    /// Not ready, because hooks have failed.
    Failed,
    /// Not affected, or configured to ignore the event.
    Idle,
}
