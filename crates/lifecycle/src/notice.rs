//! The notice that each kind of event gives.

use std::time::Duration;

use forewarn_types::EventKind;

use crate::fleet::TerminateNotice;

/// The shortest time from announcement to `not_before`. For Terminate, the shortest notice of a profile.
#[must_use]
pub fn minimum_notice(kind: EventKind) -> Duration {
    match kind {
        EventKind::Freeze | EventKind::Reboot => Duration::from_mins(15),
        EventKind::Redeploy => Duration::from_mins(10),
        EventKind::Preempt => Duration::from_secs(30),
        EventKind::Terminate => TerminateNotice::MIN.length(),
    }
}
