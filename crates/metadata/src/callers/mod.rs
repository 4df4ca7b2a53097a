//! The machines that have called: their directory, their load and their last polls.

mod caller;
mod directory;
mod faults;
mod last_poll;
mod load;
mod load_guard;
mod shards;

pub use caller::{Caller, CallerId};
pub use directory::{Directory, DirectoryChanges, PublishedState};
pub(crate) use faults::{Alteration, DocumentView, Failure, RequestKind, TakenFault};
pub use faults::{Fault, FaultTable, FaultTarget, TooManyFaults};
pub use last_poll::Poll;
pub(crate) use load::{CountGuard, LimitedCount, LoadKind};
pub(crate) use load_guard::LoadGuard;
