//! Checks of announcements, and of the life of events.

use crate::check::{Check, Need, Severity};

pub(crate) const FREEZE_ANNOUNCED: Check = Check {
    id: "freeze-announced",
    severity: Severity::Required,
    need: Need::Cause,
    title: "A Freeze is announced",
    reason: "Documented: the machine is paused for seconds.",
};

pub(crate) const REBOOT_ANNOUNCED: Check = Check {
    id: "reboot-announced",
    severity: Severity::Required,
    need: Need::Cause,
    title: "A Reboot is announced",
    reason: "Documented: the machine is restarted.",
};

pub(crate) const REDEPLOY_ANNOUNCED: Check = Check {
    id: "redeploy-announced",
    severity: Severity::Required,
    need: Need::Cause,
    title: "A Redeploy is announced",
    reason: "Documented: the machine moves to another host.",
};

pub(crate) const PREEMPT_ANNOUNCED: Check = Check {
    id: "preempt-announced",
    severity: Severity::Required,
    need: Need::Cause,
    title: "A Preempt is announced",
    reason: "Documented since 2017-11-01: a spot machine is evicted.",
};

pub(crate) const TERMINATE_ANNOUNCED: Check = Check {
    id: "terminate-announced",
    severity: Severity::Required,
    need: Need::Cause,
    title: "A Terminate is announced",
    reason: "Documented since 2019-01-01: the machine is deleted.",
};

pub(crate) const MINIMUM_NOTICE: Check = Check {
    id: "minimum-notice",
    severity: Severity::Required,
    need: Need::Cause,
    title: "An announcement gives the minimum notice of its type",
    reason: "Documented: 15 minutes for Freeze and Reboot, 10 for Redeploy, 30 seconds for Preempt, 5 to 15 minutes for Terminate.",
};

pub(crate) const NO_EARLY_START: Check = Check {
    id: "no-early-start",
    severity: Severity::Required,
    need: Need::Event,
    title: "An unapproved event does not start before its `NotBefore`",
    reason: "Documented: it is the promise of the service.",
};

pub(crate) const EVENT_ENDS: Check = Check {
    id: "event-ends",
    severity: Severity::Required,
    need: Need::ApprovedEvent,
    title: "A started event ends: it is gone",
    reason: "Documented.",
};
