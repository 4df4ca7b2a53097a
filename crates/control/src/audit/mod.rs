//! The audit log: facts, entries, and the hash chain that links them.

pub(crate) mod bounds;
pub(crate) mod fact;
pub(crate) mod log;
pub(crate) mod notice;

pub use bounds::{COMMAND_BYTES_MAX, NAMES_PER_ENTRY_MAX};
pub use fact::{Happening, happening, moved};
pub use log::{AuditPage, BrokenLink, Chain, ENTRY_BYTES_MAX, Subject, Told, TrailEntry, cluster_key};
