//! Attribution: the cause of the changes in a draft, for the audit log.

use crate::request::ITSELF;

/// The cause of the changes in a draft.
#[derive(Clone, Debug)]
pub(super) struct Attribution {
    pub(super) by: String,
    /// Number of the audit entry of the request.
    pub(super) because: Option<u64>,
    /// Reason of a failure that the hypervisor has reported.
    pub(super) reason: Option<String>,
}

impl Default for Attribution {
    /// The server itself: time has passed, or a machine is ready.
    fn default() -> Self {
        Self { by: ITSELF.to_owned(), because: None, reason: None }
    }
}
