//! Operations: requests whose result a client waits for.

use forewarn_lifecycle::paged::PagedSet;
use forewarn_lifecycle::{MaintenanceId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::stream::ClusterId;

/// A request whose result a client waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operation {
    /// Number of the operation in its cluster. The next operation has a greater one.
    pub number: u64,
    /// The name by which clients query it.
    pub name: String,
    /// The key of the resource that it is about.
    pub about: String,
    pub cluster: ClusterId,
    /// Number of the token of the client; none if the client had no token, or an older version has opened the
    /// operation.
    #[serde(deserialize_with = "Option::deserialize")]
    pub token: Option<u32>,
    /// The work that has neither started nor been withdrawn.
    pub waits: PagedSet<MaintenanceId>,
    /// Time at which it began.
    pub began: Timestamp,
    /// Time at which it ended; none while it waits.
    #[serde(deserialize_with = "Option::deserialize")]
    pub ended: Option<Timestamp>,
    /// Its result, or the result that it would have if it ended now.
    pub result: OperationResult,
}

/// The result of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum OperationResult {
    /// The work has started, and cannot be withdrawn any more.
    Succeeded,
    /// An operator has withdrawn the work.
    Canceled,
    /// Other work preempted it.
    Failed {
        /// The reason for programs.
        code: String,
        /// The reason for people.
        message: String,
    },
}

impl Operation {
    /// Returns true while it waits for work.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.ended.is_none()
    }

    /// Some work that it waits for has ended. The operation ends with the last of it, with the worst of the results.
    pub(super) fn work_ended(
        &mut self,
        maintenance: MaintenanceId,
        result: &OperationResult,
        now: Timestamp,
    ) {
        if !self.waits.remove(&maintenance) {
            return;
        }
        if result.severity() > self.result.severity() {
            self.result = result.clone();
        }
        if self.waits.is_empty() {
            self.ended = Some(now);
        }
    }
}

impl OperationResult {
    fn severity(&self) -> u8 {
        match self {
            Self::Succeeded => 0,
            Self::Canceled => 1,
            Self::Failed { .. } => 2,
        }
    }
}
