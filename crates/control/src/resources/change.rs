//! Changes of resources and operations.

use forewarn_lifecycle::MaintenanceId;

use super::operation::{Operation, OperationResult};
use super::resource::{Leaving, Resource};

/// A change of the resources of a cluster. Applying it cannot fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceChange {
    /// A resource was written.
    Put(Resource),
    /// A resource was removed, by key.
    Removed(String),
    /// A resource is marked for removal, or stays after all.
    Marked {
        /// The key of the resource.
        key: String,
        leaving: Leaving,
    },
    /// An operation has begun; one that waits for nothing has ended.
    Opened(Operation),
    /// Work that operations wait for has started, or was withdrawn.
    WorkEnded {
        maintenance: MaintenanceId,
        /// The result for the operations that wait for it.
        result: OperationResult,
    },
}
