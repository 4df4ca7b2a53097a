//! The machines that may call: their directory, their load and their last polls.

mod directory;
mod last_poll;
mod load;
mod load_guard;

pub use directory::{Caller, Directory};
pub use last_poll::Poll;
pub(crate) use load::{CountGuard, LimitedCount, LoadKind};
pub(crate) use load_guard::LoadGuard;
