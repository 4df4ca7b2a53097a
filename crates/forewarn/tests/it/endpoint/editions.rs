//! The seven editions: what each adds, and what each leaves out.
//!
//! | behaviour | test |
//! |---|---|
//! | exactly the fields of the edition, nothing null, keys in their order | `every_edition_shows_every_kind_of_event_byte_for_byte` |
//! | Preempt is hidden before 2017-11-01, Terminate before 2019-01-01 | the same |
//! | a leading underscore in 2017-03-01 only, and never for role instances | the same |
//! | the header is not required in 2017-03-01, and in all others it is | `only_the_first_edition_does_without_the_header` |
//! | all editions share one incarnation | `an_edition_that_hides_an_event_still_counts_it` |
//! | an approval may use another edition than the reading, even one that hides the event | `what_an_edition_hides_can_be_approved_through_it` |
//! | what is not an edition is refused | `what_is_no_edition_is_refused` |

use forewarn_testkit::{EDITIONS, Event, NEWEST, TestServer, approve, document, get, post, request};

const MAINTENANCE: &str = "Host server is undergoing maintenance.";
const RESTARTED: &str = "Virtual machine is going to be restarted as requested by authorized user.";
const REDEPLOYED: &str = "Virtual machine is going to be redeployed as requested by authorized user.";

fn target(edition: &str) -> String {
    format!("/metadata/scheduledevents?api-version={edition}")
}

/// One event of each kind, each for another tenant: who sees it, what makes it, and what it looks like.
fn cases(server: &TestServer) -> Vec<(&'static str, Vec<String>, Event)> {
    let event = |kind, resources, not_before, description, source, duration_seconds| Event {
        id: String::new(),
        not_before,
        kind,
        resources,
        description,
        source,
        duration_seconds,
    };
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let shop_host = server.host_of("FrontEnd_IN_0");
    let quarter = "Thu, 01 Jan 2026 00:15:00 GMT";
    let roles: &[&str] = &["FrontEnd_IN_0", "BackEnd_IN_0"];
    vec![
        (
            "shop/FrontEnd_IN_0",
            words(&["host", "update", &shop_host]),
            event("Freeze", roles, quarter, MAINTENANCE, "Platform", 9),
        ),
        (
            "db-1",
            words(&["vm", "restart", "db-0"]),
            event("Reboot", &["db-0"], quarter, RESTARTED, "User", -1),
        ),
        (
            "solo",
            words(&["vm", "redeploy", "solo"]),
            event("Redeploy", &["solo"], "Thu, 01 Jan 2026 00:10:00 GMT", REDEPLOYED, "User", -1),
        ),
        (
            "batch_1",
            words(&["vm", "evict", "batch_0"]),
            event("Preempt", &["batch_0"], "Thu, 01 Jan 2026 00:00:30 GMT", "", "Platform", -1),
        ),
        (
            "web_0",
            words(&["vm", "delete", "web_4"]),
            event("Terminate", &["web_4"], "Thu, 01 Jan 2026 00:05:00 GMT", "", "User", -1),
        ),
    ]
}

/// promise: M1
#[test]
fn every_edition_shows_every_kind_of_event_byte_for_byte() {
    let server = TestServer::start(crate::program());
    for (reader, command, mut event) in cases(&server) {
        server.enrol(&[reader]);
        let words: Vec<_> = command.iter().map(String::as_str).collect();
        server.run(&words);
        event.id = server.ids(reader).remove(0);
        assert!(is_upper_case_guid(&event.id), "{}", event.id);
        for edition in &EDITIONS {
            let expected = document(edition, 2, std::slice::from_ref(&event));
            let answer = server.get(reader, &target(edition.name));
            assert_eq!(answer.short(), (200, expected.as_str()), "{command:?} in {}", edition.name);
        }
        assert_eq!(server.post(reader, &approve(&[&event.id])).short(), (200, ""));
        for edition in &EDITIONS {
            let expected = document(edition, 3, &[event.started()]);
            let answer = server.get(reader, &target(edition.name));
            assert_eq!(answer.short(), (200, expected.as_str()), "{command:?}, Started, in {}", edition.name);
        }
    }
}

fn is_upper_case_guid(id: &str) -> bool {
    let lengths: Vec<_> = id.split('-').map(str::len).collect();
    let is_digit = |c: char| c == '-' || c.is_ascii_digit() || ('A'..='F').contains(&c);
    lengths == [8, 4, 4, 4, 12] && id.chars().all(is_digit)
}

#[test]
fn only_the_first_edition_does_without_the_header() {
    let server = TestServer::start(crate::program());
    let missing = r#"{ "error": "Bad request: . Required metadata header not specified" }"#;
    for edition in &EDITIONS {
        let bare = |method: &str| request(&format!("{method} {}", target(edition.name)), "");
        let (read, approved) = (server.say(&bare("GET")), server.say(&bare("POST")));
        if edition.name == "2017-03-01" {
            assert_eq!(read.short(), (200, document(edition, 1, &[]).as_str()));
            assert_eq!(approved.short(), (400, r#"{ "error": "Bad request: the body is empty" }"#));
        } else {
            assert_eq!(read.short(), (400, missing), "{}", edition.name);
            assert_eq!(approved.short(), (400, missing), "{}", edition.name);
        }
    }
}

#[test]
fn an_edition_that_hides_an_event_still_counts_it() {
    let server = TestServer::start(crate::program());
    server.enrol(&["web_0"]);
    for (command, incarnation) in
        [(None, 1), (Some(["vm", "delete", "web_4"]), 2), (Some(["vm", "delete", "web_3"]), 3)]
    {
        if let Some(command) = command {
            server.run(&command);
        }
        for edition in &EDITIONS {
            let answer = server.get("web_0", &target(edition.name));
            assert_eq!(answer.header("ETag"), Some(format!("\"{incarnation}\"").as_str()));
            if !edition.kinds.contains(&"Terminate") {
                assert_eq!(answer.body, document(edition, incarnation, &[]), "{}", edition.name);
            }
        }
    }
}

#[test]
fn what_an_edition_hides_can_be_approved_through_it() {
    let server = TestServer::start(crate::program());
    server.enrol(&["web_0", "spot-0"]);
    for (machine, verb) in [("web_0", "delete"), ("spot-0", "evict")] {
        server.run(&["vm", verb, machine]);
        let body = approve(&[&server.ids(machine)[0]]);
        let line = format!("/vm/{machine}{}", target("2017-03-01"));
        assert_eq!(server.say(&post(&line, &body)).short(), (200, ""), "{verb}");
        assert_eq!(server.status(machine), "Started", "{verb}");
    }
}

#[test]
fn what_is_no_edition_is_refused() {
    let server = TestServer::start(crate::program());
    let body = concat!(
        r#"{ "error": "Bad request. api-version is invalid or was not specified in the request. "#,
        r#"For more information refer to aka.ms/azureimds", "newest-versions": [ "#,
        r#""2020-07-01", "2019-08-01", "2019-04-01" ] }"#
    );
    let mut line = server.connect();
    for version in [
        "latest",
        "Latest",
        "",
        "01-04-2019",
        "01.01.2019",
        "2019-4-1",
        "2017-04-02",
        "2021-02-01",
        "2025-04-07",
        "2020-07-01%20",
        "2020-07-01/",
        "%00",
        "V2020-07-01",
    ] {
        line.send(&get(&target(version)));
        assert_eq!(line.answer().short(), (400, body), "{version:?}");
    }
    for target in ["/metadata/scheduledevents", "/metadata/scheduledevents?api_version=2020-07-01"] {
        for request in [get(target), post(target, "{}")] {
            line.send(&request);
            assert_eq!(line.answer().short(), (400, body), "{request:?}");
        }
    }
    line.send(&get(NEWEST));
    assert_eq!(line.answer().status(), 200, "the connection is none the worse for it");
}
