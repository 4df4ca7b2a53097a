//! The verdict as data.

use std::time::Duration;

use serde::Serialize;

use crate::history::EventHistory;

/// The verdict on a test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Each event with its finding, in the order of the announcements.
    pub events: Vec<EventVerdict>,
    /// Everything that makes the test fail, in sentences.
    pub failures: Vec<String>,
}

/// The verdict on one event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EventVerdict {
    /// Short name: `E1` is the first event.
    pub name: String,
    /// History of the event.
    #[serde(flatten)]
    pub history: EventHistory,
    /// Machines under test that have read the event while it was scheduled.
    pub readers: Vec<String>,
    /// The result.
    pub finding: Finding,
    /// The finding in a sentence.
    pub sentence: String,
}

/// The result for one event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// A program approved it before it started.
    Approved {
        /// Name of the machine.
        by: String,
        /// Time since the announcement: virtual time, and real time for which the clock stood still.
        #[serde(serialize_with = "write_seconds", rename = "seconds_after_announcement")]
        after: Duration,
        /// Time that was left until NotBefore.
        #[serde(serialize_with = "write_seconds", rename = "seconds_before_not_before")]
        before: Duration,
    },
    /// It was approved, but by no program under test.
    ApprovedByOther {
        /// The approver in words.
        by: String,
    },
    /// It was read, and started without approval.
    Unapproved,
    /// No machine under test has read it before it started.
    Unread,
    /// It is still scheduled, and not approved.
    Pending,
    /// It was withdrawn before it started.
    Withdrawn,
    /// It started without notice, by its policy, by an operator, or because a host failed: a program had no part in it.
    WithoutNotice,
    /// No program under test is a machine of its tenant.
    Unconcerned,
}

impl Finding {
    /// Returns true if it is a failure where approvals are required.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        match self {
            Self::ApprovedByOther { .. } | Self::Unapproved | Self::Unread | Self::Pending => true,
            Self::Approved { .. } | Self::Withdrawn | Self::WithoutNotice | Self::Unconcerned => false,
        }
    }
}

impl Verdict {
    /// Returns true if there is no failure.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.failures.is_empty()
    }
}

fn write_seconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(time.as_secs())
}
