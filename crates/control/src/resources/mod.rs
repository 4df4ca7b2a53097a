//! Resources of one cluster: what clients of Azure Resource Manager have written, and the operations that they wait
//! for.
//!
//! The rules know machines and sets. Everything else that a client writes about them (sizes, images, networks,
//! unknown properties) is stored here as it was written, under its id, next to a link to the object of the rules. A
//! resource group is a resource like every other; the ids of its resources are below its own.
//!
//! An operation is open until all work that it waits for has started, or was withdrawn.

mod change;
mod command;
mod described_machine;
mod operation;
mod resource;
mod state;

pub use change::ResourceChange;
pub use command::{NewOperation, ResourceCommand};
pub use described_machine::{DescribedMachine, DescribedName};
pub use operation::{Operation, OperationResult};
pub use resource::{Body, Leaving, Link, Resource, key_of};
pub use state::{ResourceRow, Resources};
