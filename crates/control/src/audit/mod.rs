//! The audit log: facts, entries, and the hash chain that links them.

pub(crate) mod bounds;
pub(crate) mod fact;
pub(crate) mod log;
pub(crate) mod notice;

pub use bounds::{COMMAND_BYTES_MAX, NAMES_PER_ENTRY_MAX};
pub use fact::{AuditFact, describe_change, moved};
pub use log::{
    AuditEntry, AuditPage, BrokenLink, Chain, ENTRY_BYTES_MAX, NewAuditEntry, Subject, cluster_key,
};
