//! Failures of single machines, with the reason from the driver program.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of failures in the view of one piece of work or one event.
pub const FAILURES_MAX: usize = 16;

/// A machine for which an action failed, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FailureView {
    /// The machine, as `tenant/name`; in push messages, as in `Resources`.
    pub machine: String,
    /// The reason from the driver program: on one line, without control characters.
    pub reason: String,
}
