//! Conditions that were met, as the command prints them.

use forewarn_control::AuditEntry;
use serde::Serialize;

/// A condition that was met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Met {
    pub(super) condition: &'static str,
    /// The condition in the words of the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tenant: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) event: Option<String>,
    /// Number of the entry of the audit log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) entry: Option<u64>,
    /// What has happened, as a sentence without a full stop.
    pub(super) text: String,
}

impl Met {
    pub(super) fn plain(condition: &'static str, text: String) -> Self {
        Self { condition, name: None, tenant: None, event: None, entry: None, text }
    }

    /// An approval, as the audit log has it.
    pub(super) fn approved(name: &str, entry: &AuditEntry) -> Self {
        let (tenant, event) = (entry.tenants.first().cloned(), entry.events.first().cloned());
        let (name, entry, text) = (Some(name.to_owned()), Some(entry.number), entry.text.clone());
        Self { condition: "approved", name, tenant, event, entry, text }
    }
}
