//! Errors of scale set commands.

use forewarn_lifecycle::Size;
use forewarn_lifecycle::limits::FAULT_DOMAINS_MAX;
use serde::{Deserialize, Serialize};

use crate::command::lookup::LookupError;
use crate::placement::instances::INSTANCES_MAX;

/// The reason why a scale set command is impossible.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(deny_unknown_fields)]
pub enum ScaleSetError {
    /// A name was not found.
    #[error(transparent)]
    Unknown(#[from] LookupError),
    /// More instances than a scale set can have.
    #[error("a scale set has at most {INSTANCES_MAX} instances, not {0}")]
    TooMany(u16),
    /// Not enough hosts for the new instances.
    #[error(
        "no host can take more instances of {set}: {missing} of {wanted} do not fit{}\n  \
         hint: each instance needs a healthy host without announced work, and a host takes one update domain of a placement group",
        each_needs(*size)
    )]
    NoHost {
        set: String,
        wanted: usize,
        /// Instances without a host.
        missing: usize,
        /// The size of each.
        size: Size,
    },
    /// The number of fault domains is out of range.
    #[error("a scale set is spread over 1 to {FAULT_DOMAINS_MAX} fault domains, not {0}")]
    FaultDomains(u16),
    /// Too many instances are protected from scale-in.
    #[error(
        "too many instances of {set} are protected from scale-in: {missing} of {wanted} cannot be removed"
    )]
    Protected {
        set: String,
        wanted: usize,
        /// Instances that cannot be removed.
        missing: usize,
    },
}

/// The size of an instance, as the end of a sentence.
fn each_needs(size: Size) -> String {
    if size.is_none() { String::new() } else { format!("; each needs {size}") }
}
