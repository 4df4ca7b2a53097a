//! Reading documents: whatever the server writes, whatever others write, and whatever nobody should.

use std::error::Error;

use forewarn_imds::{
    DOCUMENT_BYTES_MAX, DOCUMENT_EVENTS_MAX, Document, Edition, Naming, ReadDocument, ReadEvent, Reading,
    Status, Unreadable, Word, parse_date, parse_start_requests, read_document, render_start_requests,
};
use forewarn_types::{
    Announcement, Event, EventId, EventKind, EventSource, Name, Phase, Reason, Seed, StartCause, Timestamp,
};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::support::event;

fn read(body: &str) -> ReadDocument {
    match read_document(body.as_bytes()).unwrap() {
        Reading::Document(document) => document,
        Reading::NoNews => panic!("no news: {body:?}"),
    }
}

fn refusal(body: &str) -> Unreadable {
    read_document(body.as_bytes()).unwrap_err()
}

const EVENT: &str = r#"{"DocumentIncarnation":3,"Events":[{"EventId":"28512af7-c957-4500-9bc4-842d6fb531e4","EventStatus":"Scheduled","EventType":"Reboot","ResourceType":"VirtualMachine","Resources":["a","b"],"NotBefore":"Wed, 24 Jan 2018 21:20:44 GMT"}]}"#;

#[test]
fn an_empty_answer_is_no_news_and_no_error() {
    for body in ["", " ", "\r\n"] {
        assert_eq!(read_document(body.as_bytes()).unwrap(), Reading::NoNews);
    }
    assert_eq!(
        read(r#"{"DocumentIncarnation":1,"Events":[]}"#),
        ReadDocument { incarnation: 1, events: vec![], malformed: vec![] }
    );
}

#[test]
fn keys_and_words_of_a_later_service_do_not_disturb() {
    let body = EVENT.replace("Reboot", "Teleport").replace("Scheduled", "Pondered");
    let body = body.replace(r#""Events""#, r#""New":{"a":[1]},"Events""#);
    let body = body.replace(r#""NotBefore""#, r#""EventSource":"Moon","More":null,"NotBefore""#);
    let event = &read(&body).events[0];
    assert_eq!(event.kind, Word::Other("Teleport".to_owned()));
    assert_eq!(event.status, Word::Other("Pondered".to_owned()));
    assert_eq!(event.source, Some(Word::Other("Moon".to_owned())));
    assert_eq!(event.resources, ["a", "b"]);
}

#[test]
fn a_time_is_read_in_both_forms_and_may_be_missing() {
    let time =
        |value: &str| read(&EVENT.replace(r#""Wed, 24 Jan 2018 21:20:44 GMT""#, value)).events[0].not_before;
    let expected = parse_date("Wed, 24 Jan 2018 21:20:44 GMT");
    assert!(expected.is_some());
    assert_eq!(read(EVENT).events[0].not_before, expected);
    assert_eq!(time(r#""2018-01-24T21:20:44Z""#), expected);
    assert_eq!(time(r#""""#), None);
    assert_eq!(time("null"), None);
    assert_eq!(read(&EVENT.replace("NotBefore", "Other")).events[0].not_before, None);
}

#[test]
fn what_is_not_a_document_is_refused_with_its_reason() {
    for key in ["DocumentIncarnation", "Events"] {
        let refused = refusal(&EVENT.replace(&format!("{key:?}"), r#""Gone""#));
        assert_eq!(refused.to_string(), "the document is not of the expected form");
        assert!(refused.source().unwrap().to_string().contains("missing field"), "{key}");
    }
    for body in ["[]", "{", "<html>", &format!("{EVENT}x")] {
        assert!(matches!(refusal(body), Unreadable::Form(_)), "{body}");
    }
    let refused = read_document(b"\xff").unwrap_err();
    assert_eq!(refused.to_string(), "the document is not UTF-8");
    assert!(refused.source().is_some());
}

/// The problem of the only malformed event in a document that has a whole one besides.
fn malformed(broken: &str) -> (Option<String>, String) {
    let (start, whole) = EVENT.split_once('[').unwrap();
    let document = read(&format!("{start}[{broken},{whole}"));
    assert_eq!(document.events, read(EVENT).events, "{broken}");
    let [event] = &document.malformed[..] else { panic!("{broken}: {:?}", document.malformed) };
    (event.id.map(|id| id.to_string()), event.error.clone())
}

/// promise: A3
#[test]
fn an_event_that_cannot_be_read_does_not_hide_the_others() {
    let id = Some("28512AF7-C957-4500-9BC4-842D6FB531E4".to_owned());
    let (_, event) = EVENT.split_once('[').unwrap();
    let event = event.strip_suffix("]}").unwrap();
    let not_before = r#"NotBefore is not a date: "Thu, 24 Jan 2018 21:20:44 GMT""#;
    assert_eq!(malformed(&event.replace("Wed, 24", "Thu, 24")), (id.clone(), not_before.to_owned()));
    let not_an_id = r#"EventId is not a GUID: "28512xx7-c957-4500-9bc4-842d6fb531e4""#;
    assert_eq!(malformed(&event.replace("28512af7", "28512xx7")), (None, not_an_id.to_owned()));
    for key in ["EventStatus", "EventType", "ResourceType", "Resources"] {
        let broken = event.replace(&format!("{key:?}"), r#""Gone""#);
        assert_eq!(malformed(&broken), (id.clone(), format!("{key} is missing")));
        let broken = event.replace(&format!("{key:?}:"), &format!("{key:?}:null,{key:?}:"));
        assert_eq!(malformed(&broken), (id.clone(), format!("{key} is there twice")));
    }
    for (from, to) in [
        (r#"["a","b"]"#, r#"["a",7]"#),
        (r#""Scheduled""#, "7"),
        (r#""Wed, 24 Jan 2018 21:20:44 GMT""#, "[]"),
        (r#""NotBefore""#, r#""DurationInSeconds":"long","NotBefore""#),
        (r#""NotBefore""#, r#""Description":{},"NotBefore""#),
    ] {
        let (found, problem) = malformed(&event.replace(from, to));
        assert!(found == id && problem.contains("is not of the expected form: "), "{to}: {problem}");
    }
    for (broken, problem) in [
        ("{}", "EventId is missing"),
        ("7", "the event is not an object"),
        ("-7.5", "the event is not an object"),
        ("null", "the event is not an object"),
        ("true", "the event is not an object"),
        ("\"x\"", "the event is not an object"),
        ("[[1],{}]", "the event is not an object"),
    ] {
        assert_eq!(malformed(broken), (None, problem.to_owned()), "{broken}");
    }
    let (_, long) = malformed(&event.replace("Wed, 24", &"x".repeat(5_000)));
    assert_eq!(long.chars().count(), 300);
}

/// promise: M5
#[test]
fn a_document_may_be_as_long_and_as_deep_as_its_limits_and_no_more() {
    assert_eq!(DOCUMENT_BYTES_MAX, 8_388_608);
    let padded = |length: usize| format!("{EVENT}{}", " ".repeat(length - EVENT.len()));
    assert_eq!(read(&padded(8_388_608)).incarnation, 3);
    let refused = refusal(&padded(8_388_609));
    assert_eq!(refused.to_string(), "the document has more than 8388608 bytes: 8388609");
    let nested = |depth: usize| {
        let (open, close) = ("[".repeat(depth - 1), "]".repeat(depth - 1));
        format!(r#"{{"a":{open}{close},"DocumentIncarnation":1,"Events":[]}}"#)
    };
    assert_eq!(read(&nested(8)).incarnation, 1);
    assert_eq!(refusal(&nested(9)).to_string(), "the document is nested more than 8 levels deep");
}

/// promise: M5
#[test]
fn a_document_may_have_as_many_events_as_its_limit_and_no_more() {
    assert_eq!(DOCUMENT_EVENTS_MAX, 10_000);
    let of = |events: usize| {
        let event = r#"{"EventId":"28512af7-c957-4500-9bc4-842d6fb531e4","EventStatus":"","EventType":"","ResourceType":"","Resources":[]}"#;
        format!(r#"{{"DocumentIncarnation":1,"Events":[{}]}}"#, vec![event; events].join(","))
    };
    assert_eq!(read(&of(10_000)).events.len(), 10_000);
    let refused = refusal(&of(10_001));
    assert!(matches!(refused, Unreadable::TooMany(10_001)));
    assert_eq!(refused.to_string(), "the document has more than 10000 events: 10001");
}

fn any_kind() -> impl Strategy<Value = EventKind> {
    prop::sample::select(vec![
        EventKind::Freeze,
        EventKind::Reboot,
        EventKind::Redeploy,
        EventKind::Preempt,
        EventKind::Terminate,
    ])
}

fn any_phase() -> impl Strategy<Value = Phase> {
    let scheduled = (0..=253_402_300_799_i64).prop_map(|seconds| Phase::Scheduled {
        not_before: Timestamp::from_millis(seconds * 1_000),
        approval: None,
    });
    let started = Phase::Started { at: Timestamp::from_millis(1), cause: StartCause::Approved };
    prop_oneof![scheduled, Just(started)]
}

fn any_event() -> impl Strategy<Value = Event> {
    let sources = prop::sample::select(vec![EventSource::Platform, EventSource::User]);
    let names = prop::collection::vec("[A-Za-z0-9_-][A-Za-z0-9._-]{0,79}", 0..5);
    (any::<u64>(), any_kind(), sources, any::<i32>(), names, any_phase()).prop_map(
        |(number, kind, source, duration_seconds, names, phase)| {
            let resources = names.iter().map(|name| Name::new(name).unwrap()).collect();
            let id = EventId::nth(&Seed([3; 16]), number);
            let reason = Reason::HostMaintenance;
            event(Announcement { id, kind, source, reason, duration_seconds, resources }, phase)
        },
    )
}

fn any_document() -> impl Strategy<Value = Document> {
    let naming = prop::sample::select(vec![Naming::Machines, Naming::RoleInstances]);
    (any::<u64>(), prop::collection::vec(any_event(), 0..6), naming)
        .prop_map(|(incarnation, events, naming)| Document { incarnation, events, naming })
}

/// What a reader should know of an event after that edition.
fn as_read(event: &Event, edition: Edition, naming: Naming) -> ReadEvent {
    let underlined = edition == Edition::V2017_03_01 && naming == Naming::Machines;
    let told = &event.announcement;
    let (status, not_before) = match event.phase {
        Phase::Scheduled { not_before, .. } => (Status::Scheduled, Some(not_before)),
        Phase::Started { .. } => (Status::Started, None),
    };
    let since = |first: &str| edition.as_str() >= first;
    ReadEvent {
        id: told.id,
        status: Word::Known(status),
        kind: Word::Known(told.kind),
        resource_type: "VirtualMachine".to_owned(),
        resources: told
            .resources
            .iter()
            .map(|name| format!("{}{name}", if underlined { "_" } else { "" }))
            .collect(),
        not_before,
        description: since("2019-04-01").then(|| "Host server is undergoing maintenance.".to_owned()),
        source: since("2019-08-01").then_some(Word::Known(told.source)),
        duration_seconds: since("2020-07-01").then_some(i64::from(told.duration_seconds)),
    }
}

/// A body that was right once: some bytes are replaced, and the end may be cut off.
fn damaged(body: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let interesting = prop::sample::select(br#"{}[]",:\0-eE.tfn u"#.to_vec());
    let byte = prop_oneof![any::<u8>(), interesting];
    let changes = prop::collection::vec((any::<Index>(), byte), 1..6);
    (Just(body), changes, any::<Index>(), any::<bool>()).prop_map(|(mut body, changes, end, cut)| {
        for (index, byte) in changes {
            let index = index.index(body.len());
            body[index] = byte;
        }
        if cut {
            body.truncate(end.index(body.len()));
        }
        body
    })
}

/// Both readers take it or leave it; what they take is within the limits.
fn try_to_read(body: &[u8]) {
    if let Ok(ids) = parse_start_requests(body) {
        assert!((1..=2_000).contains(&ids.len()));
    }
    if let Ok(Reading::NoNews) = read_document(body) {
        assert!(body.iter().all(u8::is_ascii_whitespace));
    }
}

proptest! {
    /// promise: M1
    #[test]
    fn a_document_is_read_as_it_was_rendered(document in any_document()) {
        for edition in Edition::ALL {
            let known = document.events.iter().filter(|event| edition.knows(event.announcement.kind));
            let events = known.map(|event| as_read(event, edition, document.naming)).collect();
            let incarnation = document.incarnation;
            let expected = ReadDocument { incarnation, events, malformed: Vec::new() };
            prop_assert_eq!(read(&document.render(edition)), expected);
        }
    }

    #[test]
    fn requests_are_read_as_they_were_rendered(numbers in prop::collection::vec(any::<u64>(), 1..20)) {
        let ids: Vec<_> = numbers.into_iter().map(|number| EventId::nth(&Seed([4; 16]), number)).collect();
        prop_assert_eq!(parse_start_requests(render_start_requests(&ids).as_bytes()), Ok(ids));
    }

    /// promise: M5
    #[test]
    fn no_bytes_are_too_strange_to_be_refused(body in prop::collection::vec(any::<u8>(), 0..300)) {
        try_to_read(&body);
    }

    #[test]
    fn no_damaged_document_is_too_strange_to_be_refused(
        body in any_document().prop_flat_map(|document| damaged(document.render(Edition::newest()).into_bytes()))
    ) {
        try_to_read(&body);
    }

    #[test]
    fn no_damaged_request_is_too_strange_to_be_refused(
        body in damaged(br#"{"DocumentIncarnation":5,"StartRequests":[{"EventId":"28512AF7-C957-4500-9BC4-842D6FB531E4"}]}"#.to_vec())
    ) {
        try_to_read(&body);
    }
}
