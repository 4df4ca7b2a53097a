//! A POST: what approves, what is harmless, what is refused.
//!
//! | behaviour | test |
//! |---|---|
//! | every visible id of the tenant: 200, an empty body, `Content-Length: 0`, and the event starts | `an_approval_is_answered_with_nothing_and_starts_the_event` |
//! | from any machine of the tenant, for all that the event names | the same |
//! | approved, Started, or over for less than an hour: 200, and nothing changes | `approving_again_is_harmless_until_an_hour_after_the_end` |
//! | the same id twice, in any case of letters | the same |
//! | several ids at once | `several_events_are_approved_at_once` |
//! | unknown and foreign ids look alike; whole or not at all | `one_unknown_id_spoils_the_whole_and_a_foreign_one_looks_alike` |
//! | what is no start request is told what is wrong with it | `a_body_that_is_no_start_request_is_told_what_is_wrong` |
//! | any content type or none, any edition, spaces, unknown members, a stale or strange incarnation, a condition | `what_does_not_matter_does_not_matter` |
//! | an over-long body is refused before it is read | `an_over_long_body_is_refused_before_it_is_read` |
//! | a byte order mark before the body is skipped | `a_body_that_begins_with_a_byte_order_mark_approves` |
//! | work for two tenants waits for both | `work_on_a_shared_host_starts_when_all_have_approved` |

use forewarn_testkit::{NEWEST, TestServer, approve, request};

fn restarting() -> (TestServer, String) {
    let server = TestServer::start(crate::program());
    server.enrol(&["db-0"]);
    let id = server.restart("db-0");
    (server, id)
}

#[test]
fn an_approval_is_answered_with_nothing_and_starts_the_event() {
    let (server, id) = restarting();
    let answer = server.post("db-2", &approve(&[&id]));
    assert_eq!(answer.short(), (200, ""));
    assert_eq!((answer.header("Content-Length"), answer.header("Content-Type")), (Some("0"), None));
    assert_eq!(server.status("db-1"), "Started");
}

/// promise: M2
#[test]
fn a_body_that_begins_with_a_byte_order_mark_approves() {
    let (server, id) = restarting();
    assert_eq!(server.post("db-0", &format!("\u{feff}{}", approve(&[&id]))).short(), (200, ""));
    assert_eq!(server.status("db-1"), "Started");
}

/// promise: T3
#[test]
fn approving_again_is_harmless_until_an_hour_after_the_end() {
    let (server, id) = restarting();
    let again = approve(&[&id.to_lowercase(), &id, &id]);
    for (span, answered, shown, incarnation) in [
        ("0s", 200, "Started", 3),
        ("0s", 200, "Started", 3),
        ("5m", 200, "gone", 4),
        ("30m", 200, "gone", 4),
        ("24m", 200, "gone", 4),
        ("10m", 400, "gone", 4),
    ] {
        server.advance(span);
        assert_eq!(server.post("db-0", &again).status(), answered, "{span} later");
        assert_eq!(server.status("db-0"), shown, "{span} later");
        assert_eq!(server.document("db-0")["DocumentIncarnation"], incarnation, "{span} later");
    }
}

#[test]
fn a_cancelled_event_can_still_be_approved_for_nothing() {
    let (server, id) = restarting();
    server.run(&["event", "cancel", &id]);
    assert_eq!(server.post("db-0", &approve(&[&id])).short(), (200, ""));
    assert_eq!(server.status("db-0"), "gone");
}

#[test]
fn several_events_are_approved_at_once() {
    let (server, first) = restarting();
    let second = server.restart("db-1");
    assert_eq!(server.post("db-2", &approve(&[&second, &first])).short(), (200, ""));
    let document = server.document("db-0");
    for at in 0..2 {
        assert_eq!(document["Events"][at]["EventStatus"], "Started");
    }
    let many = approve(&vec![first.as_str(); 2_000]);
    assert_eq!(server.post("db-0", &many).short(), (200, ""), "as many as a tenant may have events");
}

#[test]
fn one_unknown_id_spoils_the_whole_and_a_foreign_one_looks_alike() {
    let (server, id) = restarting();
    server.enrol(&["solo"]);
    let foreign = server.restart("solo");
    let unknown = "00000000-0000-0000-0000-000000000000";
    let answers = [foreign.as_str(), unknown].map(|wrong| {
        for ids in [vec![wrong], vec![&id, wrong], vec![wrong, &id]] {
            let answer = server.post("db-0", &approve(&ids));
            let body = r#"{ "error": "Bad request: EventId does not name an event of this machine" }"#;
            assert_eq!(answer.short(), (400, body));
        }
        server.post("db-0", &approve(&[wrong]))
    });
    assert_eq!(answers[0], answers[1], "byte for byte");
    assert_eq!((server.status("db-0"), server.status("solo")), ("Scheduled".into(), "Scheduled".into()));
}

#[test]
fn a_body_that_is_no_start_request_is_told_what_is_wrong() {
    let (server, id) = restarting();
    let good = format!(r#"{{"EventId":"{id}"}}"#);
    for (body, message) in [
        (String::new(), "the body is empty"),
        ("{".into(), "the body is not JSON, see line 1, column 1"),
        ("StartRequests=x".into(), "the body is not JSON, see line 1, column 1"),
        ("[]".into(), "the body must be an object"),
        ("null".into(), "the body must be an object"),
        ("{}".into(), "StartRequests is missing"),
        (r#"{"startrequests":[]}"#.into(), "StartRequests is missing"),
        (r#"{"StartRequests":[]}"#.into(), "StartRequests must not be empty"),
        (format!(r#"{{"StartRequests":{good}}}"#), "StartRequests must be a list"),
        (format!(r#"{{"StartRequests":[{good},{{"EventId":"x"}}]}}"#), "EventId is not a GUID"),
        (format!(r#"{{"StartRequests":[{good},{{"EventId":7}}]}}"#), "EventId must be a string"),
    ] {
        let expected = format!(r#"{{ "error": "Bad request: {message}" }}"#);
        let answer = server.post("db-0", &body);
        assert_eq!(answer.short(), (400, expected.as_str()), "{body}");
        assert_eq!(answer.header("Content-Type"), Some("application/json; charset=utf-8"));
    }
    for entry in ["{}", "null", "[]", r#""x""#] {
        let body = format!(r#"{{"StartRequests":[{good},{entry}]}}"#);
        assert_eq!(server.post("db-0", &body).status(), 400, "{body}");
    }
    assert_eq!(server.status("db-0"), "Scheduled", "not even the good half of one");
}

#[test]
fn what_does_not_matter_does_not_matter() {
    let newest = "2020-07-01";
    for (edition, fields, before) in [
        ("2017-03-01", "", ""),
        ("2017-08-01", "Metadata: true\r\nContent-Type: application/json\r\n", r#""DocumentIncarnation":2,"#),
        (
            "2019-08-01",
            "Metadata: true\r\nContent-Type: application/x-www-form-urlencoded\r\n",
            r#""DocumentIncarnation":"2","#,
        ),
        (newest, "Metadata: true\r\nContent-Type: text/plain\r\n", r#""DocumentIncarnation":null,"#),
        (newest, "metadata: TRUE\r\nContent-Type: x\r\n", r#""DocumentIncarnation":99,"#),
        (newest, "Metadata: true\r\nIf-None-Match: *\r\n", r#""DocumentIncarnation":{"a":[]},"#),
        (newest, "Metadata: true\r\nIf-None-Match: \"2\"\r\n", "\r\n\t \"More\": [ 1, {} ] ,\n"),
        (newest, "Metadata: true\r\nUser-Agent: Mozilla/5.0 (evil)\r\n", ""),
    ] {
        let (server, id) = restarting();
        let body = format!("{{{before}\"StartRequests\" : [ {{ \"X\":1, \"EventId\":\n\"{id}\" }} ]\n}}\n");
        let line = format!("POST /vm/db-0/metadata/scheduledevents?api-version={edition}");
        let fields = format!("{fields}Content-Length: {}\r\n", body.len());
        assert_eq!(server.say(&(request(&line, &fields) + &body)).short(), (200, ""), "{fields}{body}");
        assert_eq!(server.status("db-0"), "Started");
    }
}

#[test]
fn an_over_long_body_is_refused_before_it_is_read() {
    let server = TestServer::start(crate::program());
    let body = r#"{ "error": "Too large: a body has at most 131072 bytes" }"#;
    let line = format!("POST {NEWEST}");
    for framing in [
        "Content-Length: 131073\r\n",
        "Content-Length: 99999999999\r\n",
        "Content-Length: 131073\r\nExpect: 100-continue\r\n",
    ] {
        let mut connection = server.connect();
        // Not a byte of the body is sent.
        connection.send(&request(&line, &format!("Metadata: true\r\n{framing}")));
        let answer = connection.answer();
        assert_eq!((answer.short(), answer.header("Connection")), ((413, body), Some("close")), "{framing}");
        assert_eq!(connection.rest(), "", "half-closed");
    }
    let mut chunks = server.connect();
    chunks.send(&(request(&line, "Metadata: true\r\nTransfer-Encoding: chunked\r\n") + "20001\r\n"));
    assert_eq!(chunks.answer().short(), (413, body));
    // A caller that sends first and reads later still sees its answer.
    let mut eager = server.connect();
    eager.send(&(request(&line, "Metadata: true\r\nContent-Length: 131073\r\n") + &"x".repeat(40_000)));
    assert_eq!(eager.answer().short(), (413, body));
    // At the limit it is read, and refused for what it is.
    let padded = server.post("solo", &" ".repeat(131_072));
    assert_eq!(padded.status(), 400);
}

#[test]
fn work_on_a_shared_host_starts_when_all_have_approved() {
    let server = TestServer::start(crate::program());
    let hosts = ["solo", "spot-0", "batch_0", "batch_1", "db-0", "db-1", "db-2"]
        .map(|name| (server.host_of(name), name));
    let shared = hosts.iter().flat_map(|one| hosts.iter().map(move |other| (one, other)));
    let tenant = |name: &str| name.split(['-', '_']).next().unwrap_or_default().to_owned();
    let mut shared =
        shared.filter(|((here, one), (there, other))| here == there && tenant(one) < tenant(other));
    let ((host, one), (_, other)) = shared.next().expect("the fleet of `dev` has a host with two tenants");
    server.enrol(&[one, other]);
    server.run(&["host", "update", host]);
    assert_eq!(server.post(one, &approve(&[&server.ids(one)[0]])).status(), 200);
    assert_eq!(server.status(one), "Scheduled", "the other one has not been asked in vain");
    assert_eq!(server.post(other, &approve(&[&server.ids(other)[0]])).status(), 200);
    assert_eq!((server.status(one), server.status(other)), ("Started".into(), "Started".into()));
}
