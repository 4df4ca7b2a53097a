//! The audit log: facts, entries, and the hash chains that link them.

pub(crate) mod bounds;
pub(crate) mod command_json;
pub(crate) mod fact;
pub(crate) mod host_notice;
pub(crate) mod log;
pub(crate) mod notice;
pub(crate) mod page;
pub(crate) mod start_cause;
pub(crate) mod subject;
pub(crate) mod verifier;

pub use bounds::NAMES_PER_ENTRY_MAX;
pub use command_json::{COMMAND_BYTES_MAX, CommandJson};
pub(crate) use fact::describe_ready;
pub use fact::{AuditFact, describe_change, moved};
pub use host_notice::{HostNotice, HostNoticeStatus};
pub use log::{AuditEntry, BrokenLink, Chain, ENTRY_BYTES_MAX, NewAuditEntry, cluster_key};
pub use page::AuditPage;
pub use subject::Subject;
pub use verifier::{AuditVerifier, BrokenChain, VerifiedChain};
