//! Bodies that real machines were given: rendering the same events gives the same bytes, and reading them succeeds.

use crate::support::{announcement, scheduled, started};
use forewarn_imds::{Document, Edition, Naming, Reading, Status, Word, parse_date, read_document};
use forewarn_types::{Event, EventKind, EventSource};

const EMPTY: &str = include_str!("../captures/2017-08-01-empty.json");
const FIRST: &str = include_str!("../captures/2017-08-01-first-document-with-event.json");
const TWO_REBOOTS: &str = include_str!("../captures/2017-08-01-two-reboots.json");
const PREEMPT: &str = include_str!("../captures/2019-08-01-preempt.json");

fn render(incarnation: u64, events: Vec<Event>, edition: Edition) -> String {
    Document { incarnation, events, naming: Naming::Machines }.render(edition)
}

fn reboot(id: &str, machine: &str, not_before: &str) -> Event {
    scheduled(announcement(id, EventKind::Reboot, machine), not_before)
}

/// promise: M1
#[test]
fn a_document_without_events_is_as_captured() {
    assert_eq!(render(190, vec![], Edition::V2017_08_01), EMPTY);
}

/// promise: M1
#[test]
fn a_first_document_with_an_event_is_as_captured() {
    let event = reboot(
        "8A506C35-679A-4F78-9D76-C16DBE65EE6F",
        "aks-nodepool1-34166363-1",
        "Mon, 26 Nov 2018 10:52:34 GMT",
    );
    assert_eq!(render(1, vec![event], Edition::V2017_08_01), FIRST);
}

/// promise: M1
#[test]
fn a_document_with_two_reboots_is_as_captured() {
    let events = vec![
        reboot("28512AF7-C957-4500-9BC4-842D6FB531E4", "sample_4", "Wed, 24 Jan 2018 21:20:44 GMT"),
        reboot("A626E37F-793E-44E1-89B5-99AE0B96044C", "sample_1", "Wed, 24 Jan 2018 21:20:44 GMT"),
    ];
    assert_eq!(render(192, events, Edition::V2017_08_01), TWO_REBOOTS);
}

/// promise: M1
#[test]
fn a_preempt_is_as_captured() {
    let preempt = announcement(
        "51941B56-8080-45AC-81AE-8BDA818F5958",
        EventKind::Preempt,
        "aks-workloads1-15413341-vmss_3",
    );
    let event = scheduled(preempt, "Sat, 16 Mar 2024 19:52:09 GMT");
    assert_eq!(render(1, vec![event], Edition::V2019_08_01), PREEMPT);
}

/// promise: M1
#[test]
fn a_start_changes_the_status_and_empties_the_time() {
    let reboot =
        announcement("8A506C35-679A-4F78-9D76-C16DBE65EE6F", EventKind::Reboot, "aks-nodepool1-34166363-1");
    let expected = FIRST
        .replace("Scheduled", "Started")
        .replace("Mon, 26 Nov 2018 10:52:34 GMT", "")
        .replace(":1,", ":2,");
    assert_eq!(render(2, vec![started(reboot)], Edition::V2017_08_01), expected);
}

#[test]
fn captures_are_read() {
    for (capture, incarnation, events) in
        [(EMPTY, 190, 0), (FIRST, 1, 1), (TWO_REBOOTS, 192, 2), (PREEMPT, 1, 1)]
    {
        let Reading::Document(document) = read_document(capture.as_bytes()).unwrap() else { panic!("news") };
        assert_eq!((document.incarnation, document.events.len()), (incarnation, events));
    }
}

#[test]
fn every_field_of_a_capture_is_read() {
    let Reading::Document(document) = read_document(PREEMPT.as_bytes()).unwrap() else { panic!("news") };
    let event = &document.events[0];
    assert_eq!(event.id.to_string(), "51941B56-8080-45AC-81AE-8BDA818F5958");
    assert_eq!(event.status, Word::Known(Status::Scheduled));
    assert_eq!(event.kind, Word::Known(EventKind::Preempt));
    assert_eq!(event.resource_type, "VirtualMachine");
    assert_eq!(event.resources, ["aks-workloads1-15413341-vmss_3"]);
    assert_eq!(event.not_before, parse_date("Sat, 16 Mar 2024 19:52:09 GMT"));
    assert_eq!(event.description.as_deref(), Some(""));
    assert_eq!(event.source, Some(Word::Known(EventSource::Platform)));
    assert_eq!(event.duration_seconds, None);
}
