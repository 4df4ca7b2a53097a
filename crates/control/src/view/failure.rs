//! Failures of single machines, with the reason that a driver program gave.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Failures that are listed of one piece of work or one event.
pub const FAILURES_MAX: usize = 16;

/// A machine for which something could not be done, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FailureView {
    /// The machine, as `tenant/name`; of a push, as in `Resources`.
    pub machine: String,
    /// The reason, as the driver program gave it: on one line, and harmless to show.
    pub reason: String,
}
