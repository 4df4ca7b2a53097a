//! Events for the tests.

use std::sync::Arc;

use forewarn_types::{
    Announcement, Event, EventId, EventKind, EventSource, MaintenanceId, Name, Phase, Reason, StartCause,
    Timestamp,
};

/// An announced event; the date is written as in a document.
pub(crate) fn scheduled(announcement: Announcement, not_before: &str) -> Event {
    let not_before = forewarn_imds::parse_date(not_before).unwrap();
    event(announcement, Phase::Scheduled { not_before, approval: None })
}

/// The same event, under way.
pub(crate) fn started(announcement: Announcement) -> Event {
    event(announcement, Phase::Started { at: Timestamp::from_millis(7_000), cause: StartCause::Expired })
}

/// Any event.
pub(crate) fn event(announcement: Announcement, phase: Phase) -> Event {
    Event { announcement: Arc::new(announcement), maintenance: MaintenanceId(1), phase }
}

/// What never changes of an event on one machine, caused by the platform, with nothing said about it.
pub(crate) fn announcement(id: &str, kind: EventKind, machine: &str) -> Announcement {
    Announcement {
        id: EventId::parse(id).unwrap(),
        kind,
        source: EventSource::Platform,
        reason: Reason::Unspoken,
        duration_seconds: -1,
        resources: [Name::new(machine).unwrap()].into(),
    }
}
