//! Pages of the audit log.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::audit::log::AuditEntry;

/// A page of the audit log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditPage {
    /// Entries, in the requested order.
    pub items: Vec<AuditEntry>,
    /// Cursor of the next page: `before` of the next request, or `after` if the oldest come first. Absent on the last
    /// page. A page with a cursor may be short or empty: the work for one page has a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Cursor of the newest entry of the log: with `after`, only later entries are listed.
    pub head: String,
    /// Cursor of the last entry that was removed by retention. Absent if none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swept: Option<String>,
}
