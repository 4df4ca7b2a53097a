//! The register: what clients of Azure Resource Manager have written, and the operations that they wait for.
//!
//! The rules know machines and sets; what else a client says of them (sizes, images, networks, properties that nobody here
//! understands) is kept here as it was written, under its id, beside a link to what the rules know. A resource group is an
//! entry like every other; what is in it has an id below its own.
//!
//! An operation is open until all work that it waits for has started, or has been taken back.

mod decide;
mod entry;
mod operation;
mod state;

pub use decide::Filing;
pub use entry::{Body, Entry, Leaving, Link};
pub use operation::{Ending, Operation};
pub(crate) use state::Register;

use forewarn_lifecycle::MaintenanceId;

use crate::shared::cluster::ClusterId;

/// One step of the register. Applying it cannot fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filed {
    /// An entry is there, or another than before.
    Put(Entry),
    /// An entry is gone.
    Removed(String),
    /// An entry is on its way out, or stays after all.
    Marked {
        /// The key of the entry.
        key: String,
        /// Which of both.
        leaving: Leaving,
    },
    /// An operation has begun; one that waits for nothing has ended.
    Opened(Operation),
    /// The same, by a client with a token. `operation` itself has none: its stored form is older than tokens of operations.
    OpenedWith {
        /// The operation.
        operation: Operation,
        /// The number of the token.
        token: u32,
    },
    /// Something that operations wait for is over.
    Over {
        /// The cluster of the work.
        cluster: ClusterId,
        /// The work.
        maintenance: MaintenanceId,
        /// How it came out for those who wait.
        how: Ending,
    },
}
