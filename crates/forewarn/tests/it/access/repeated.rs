//! Requests that may be repeated, and resources that are edited by what was read of them.

use crate::access::place::{Place, Request, json, read};
use forewarn_testkit::{RawConnection, RawResponse, TestServer, wait_until};

fn under(server: &TestServer, token: &str, key: &str, line: &str, body: &str) -> RawResponse {
    let headers = format!("Idempotency-Key: {key}\r\n");
    Request { line, token: Some(token), headers: &headers, body }.send(server)
}

fn boots(server: &TestServer, token: &str) -> i64 {
    json(&read(server, token, "/v1/machines/web_0"))["boots"].as_i64().unwrap()
}

/// promise: C2
#[test]
fn the_same_request_under_the_same_key_is_carried_out_once_also_over_a_kill() {
    let place = Place::new();
    let server = place.start();
    let (one, two) = (place.token("one --role admin"), place.token("two --role operator"));
    let (line, restart) = ("POST /v1/commands", r#"{"command":"restart","machine":"web_0"}"#);
    let first = under(&server, &one, "k-1", line, restart);
    assert_eq!(first.status(), 200, "{first:?}");
    let booted = |server: &TestServer, times: i64| {
        wait_until("it is restarted", || (boots(server, &one) == times).then_some(()));
    };
    booted(&server, 2);
    let created = under(&server, &one, "k-2", "POST /v1/clusters", r#"{"name":"west"}"#);
    let renamed = under(&server, &one, "k-3", "PATCH /v1/clusters/west", r#"{"name":"east"}"#);
    let issue = r#"{"name":"ci","role":"viewer"}"#;
    assert_eq!(under(&server, &one, "k-4", "POST /v1/tokens", issue).status(), 200);
    let revoked = under(&server, &one, "k-5", "DELETE /v1/tokens/ci", "");
    for answer in [&created, &renamed, &revoked] {
        assert_eq!(answer.status(), 200, "{answer:?}");
    }
    server.kill();

    let server = place.start();
    let same = |key: &str, line: &str, body: &str, before: &RawResponse| {
        let answer = under(&server, &one, key, line, body);
        assert_eq!((answer.status(), &answer.body), (before.status(), &before.body), "{line}");
    };
    same("k-1", line, restart, &first);
    same("k-2", "POST /v1/clusters", r#"{"name":"west"}"#, &created);
    same("k-3", "PATCH /v1/clusters/west", r#"{"name":"east"}"#, &renamed);
    same("k-5", "DELETE /v1/tokens/ci", "", &revoked);
    assert_eq!(boots(&server, &one), 2, "it was restarted once");
    let again = under(&server, &one, "k-4", "POST /v1/tokens", issue);
    assert_eq!(again.status(), 409, "its text is not kept");
    assert!(json(&again)["hint"].as_str().unwrap().contains("issue another"), "{again:?}");

    let other = under(&server, &one, "k-1", line, r#"{"command":"restart","machine":"web_1"}"#);
    assert_eq!(other.status(), 422, "{other:?}");
    assert_eq!(under(&server, &two, "k-1", line, restart).status(), 200, "the key of somebody else");
    booted(&server, 3);
    for bad in ["a b", "\u{e4}", &"x".repeat(256)] {
        let answer = under(&server, &one, bad, line, restart);
        assert_eq!(answer.status(), 400, "{bad}: {answer:?}");
    }
    assert_eq!(boots(&server, &one), 3, "a key that cannot be kept is refused before anything is done");
}

/// Connections over which one caller floods the server, and requests on each, every one under a key of its own: together
/// more than the server keeps receipts.
const CONNECTIONS: usize = 16;
const REQUESTS: usize = 650;

/// promise: C2
#[test]
fn a_flood_of_keys_of_one_caller_leaves_the_receipts_of_others() {
    let place = Place::new();
    let server = place.start();
    let (admin, web) = (place.token("admin --role admin"), place.token("web --role operator --tenant web"));
    let (line, restart) = ("POST /v1/commands", r#"{"command":"restart","machine":"web_0"}"#);
    let first = under(&server, &admin, "k-1", line, restart);
    assert_eq!(first.status(), 200, "{first:?}");
    wait_until("it is restarted", || (boots(&server, &admin) == 2).then_some(()));

    // A machine that runs is not started again: the requests change nothing.
    let start = r#"{"command":"start","machine":"web_1"}"#;
    std::thread::scope(|scope| {
        for connection in 0..CONNECTIONS {
            let (server, web) = (&server, &web);
            scope.spawn(move || {
                let mut open = RawConnection::connect(server.api());
                for number in 0..REQUESTS {
                    let headers = format!("Idempotency-Key: {connection}-{number}\r\n");
                    open.send(&Request { line, token: Some(web), headers: &headers, body: start }.bytes());
                    let answer = open.answer();
                    assert_eq!(answer.status(), 200, "{answer:?}");
                }
            });
        }
    });
    let again = under(&server, &admin, "k-1", line, restart);
    assert_eq!((again.status(), &again.body), (first.status(), &first.body), "the receipt is there");
    assert_eq!(boots(&server, &admin), 2, "it was restarted once");
}

/// promise: C2
#[test]
fn what_was_read_is_edited_or_nothing() {
    let place = Place::new();
    let server = place.start();
    place.add_west();
    let admin = place.token("admin --role admin");
    place.token("other --role viewer");
    let send = |line: &str, headers: &str, body: &str| {
        Request { line, token: Some(&admin), headers, body }.send(&server)
    };
    for (target, method, body) in [
        ("/v1/settings", "PATCH", r#"{"failure":"redeploy"}"#),
        ("/v1/site", "PATCH", r#"{"location":"north"}"#),
        ("/v1/brake", "PUT", r#"{"brake":"on"}"#),
        ("/v1/tenants/web/policy", "PUT", r#"{"restart":"automatic"}"#),
        ("/v1/clusters/west", "PATCH", r#"{"name":"east"}"#),
        ("/v1/tokens/other", "DELETE", ""),
    ] {
        let tag =
            |answer: &RawResponse| answer.header("etag").unwrap_or_else(|| panic!("{answer:?}")).to_owned();
        let shown = send(&format!("GET {target}"), "", "");
        assert_eq!(shown.status(), 200, "{shown:?}");
        let known = format!("If-None-Match: {}\r\n", tag(&shown));
        let unchanged = send(&format!("GET {target}"), &known, "");
        assert_eq!(
            (unchanged.status(), unchanged.body.as_str(), tag(&unchanged)),
            (304, "", tag(&shown)),
            "{target}"
        );
        let line = format!("{method} {target}");
        let stale = send(&line, "If-Match: \"00000000000000000000000000000000\"\r\n", body);
        assert_eq!(stale.status(), 412, "{target}: {stale:?}");
        assert_eq!(send(&format!("GET {target}"), &known, "").status(), 304, "{target}: nothing has changed");
        let seen = format!("If-Match: {}\r\n", tag(&shown));
        let edited = send(&line, &seen, body);
        assert_eq!(edited.status(), 200, "{target}: {edited:?}");
        let (late, now) =
            (send(&line, &seen, body).status(), send(&format!("GET {target}"), &known, "").status());
        match target {
            "/v1/clusters/west" | "/v1/tokens/other" => {
                assert_eq!((late, now), (404, 404), "there is none of that name any more");
            }
            _ => assert_eq!((late, now), (412, 200), "{target}: it is another"),
        }
    }
    for target in
        ["/v1/hosts/h1", "/v1/machines/web_0", "/v1/tenants/web", "/v1/fleet", "/v1/clusters/default"]
    {
        assert!(read(&server, &admin, target).header("etag").is_some(), "{target}");
    }
}

#[test]
fn what_is_not_so_any_more_is_not_called_done() {
    let place = Place::new();
    let server = place.start();
    let admin = place.token("admin --role admin");
    let apply = |key: &str, fleet: &str| {
        let answer = under(&server, &admin, key, "POST /v1/fleet", fleet);
        let report = json(&answer);
        let rows = report["differences"].as_array().unwrap_or_else(|| panic!("{answer:?}")).iter();
        let texts =
            rows.map(|row| format!("{} {}", row["state"].as_str().unwrap(), row["text"].as_str().unwrap()));
        texts.collect::<Vec<_>>()
    };
    let more = r#"{"host":[{"name":"h4"}]}"#;
    assert_eq!(apply("k-1", more), ["done + host h4"]);
    place.out(&["host", "delete", "h4"]);
    assert_eq!(apply("k-1", more), ["later + host h4"], "it is not there");
    assert_eq!(apply("k-2", more), ["done + host h4"]);
}
