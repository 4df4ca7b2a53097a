//! Errors of wishes: what is wanted of a scale set cannot be had.

use forewarn_lifecycle::limits::FAULT_DOMAINS_MAX;

use crate::command::find::Unknown;
use crate::placement::instances::INSTANCES_MAX;

/// The reason for which a wish comes to no commands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScaleSetError {
    /// Something that is named is not there.
    #[error(transparent)]
    Unknown(#[from] Unknown),
    /// More instances than a scale set can have.
    #[error("a scale set has at most {INSTANCES_MAX} instances, not {0}")]
    TooMany(u16),
    /// There is no place for all of them.
    #[error(
        "no host can take more instances of {set}: {missing} of {wanted} have no place\n  \
         hint: each needs a healthy host without announced work, and a host takes one update domain of a placement group"
    )]
    NoHost {
        /// The scale set.
        set: String,
        /// Instances to add.
        wanted: usize,
        /// Instances without a host.
        missing: usize,
    },
    /// Not as many fault domains as there can be.
    #[error("a scale set is spread over 1 to {FAULT_DOMAINS_MAX} fault domains, not {0}")]
    FaultDomains(u16),
    /// Too many of those that might go are protected.
    #[error("too many instances of {set} are protected from scale-in: {missing} of {wanted} cannot go")]
    Protected {
        /// The scale set.
        set: String,
        /// Instances to remove.
        wanted: usize,
        /// Instances that cannot be removed.
        missing: usize,
    },
}
