//! An operation: something that a client has asked for and waits for.

use forewarn_lifecycle::paged::PagedSet;
use forewarn_lifecycle::{MaintenanceId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::shared::cluster::ClusterId;

/// Something that a client has asked for and waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operation {
    /// The next operation has a greater one.
    pub number: u64,
    /// What clients call it.
    pub name: String,
    /// The key of what it is about.
    pub about: String,
    /// The cluster of the work that it waits for.
    pub cluster: ClusterId,
    /// The number of the token with which a client began it; none: without a token, or by an older version.
    #[serde(deserialize_with = "Option::deserialize")]
    pub token: Option<u32>,
    /// The work that has neither started nor been taken back.
    pub waits: PagedSet<MaintenanceId>,
    /// When it began.
    pub began: Timestamp,
    /// When it ended; not yet, while it waits.
    #[serde(deserialize_with = "Option::deserialize")]
    pub ended: Option<Timestamp>,
    /// How it ended, or would end now.
    pub ending: Ending,
}

/// How an operation ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Ending {
    /// What was asked for has started, and cannot be taken back.
    Succeeded,
    /// An operator has taken it back.
    Canceled,
    /// Something else came first.
    Failed {
        /// What, for programs.
        code: String,
        /// What, for people.
        message: String,
    },
}

impl Operation {
    /// Whether it still waits.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.ended.is_none()
    }

    /// Something that it waits for is over. It ends with the last of them, and as badly as the worst.
    pub(crate) fn over(&mut self, maintenance: MaintenanceId, how: &Ending, now: Timestamp) {
        if !self.waits.remove(&maintenance) {
            return;
        }
        if how.badness() > self.ending.badness() {
            self.ending = how.clone();
        }
        if self.waits.is_empty() {
            self.ended = Some(now);
        }
    }
}

impl Ending {
    fn badness(&self) -> u8 {
        match self {
            Self::Succeeded => 0,
            Self::Canceled => 1,
            Self::Failed { .. } => 2,
        }
    }
}
