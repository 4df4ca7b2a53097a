//! Messages of a removed cluster that webhooks have not got yet.

use serde::{Deserialize, Serialize};

use super::Progress;
use crate::command::Site;

/// Messages of a removed cluster that are not all delivered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UndeliveredMessages {
    /// The last site of the cluster.
    pub site: Site,
    /// Progress in the audit log of the cluster, by number of the webhook.
    pub progress: Vec<(u32, Progress)>,
}

impl UndeliveredMessages {
    /// The progress of a webhook, by number. None if it has got all messages.
    #[must_use]
    pub fn progress_of(&self, webhook: u32) -> Option<Progress> {
        self.progress.iter().find(|(number, _)| *number == webhook).map(|(_, progress)| *progress)
    }
}
