//! The checks that a request goes through, in their order.
//!
//! | check | answer | test |
//! |---|---|---|
//! | 0 the caller is known | 403 | `a_stranger_learns_nothing` |
//! | 1 framing, `Host`, headers of proxies and web pages | 400 | `what_a_proxy_or_a_web_page_adds_is_refused`, `a_host_that_dns_could_have_brought_here_is_refused`, `what_is_no_proper_request_is_refused_and_closed` |
//! | 2 `Metadata: true` | 400 | `the_header_is_required_in_any_case_of_letters`, `without_the_header_every_path_is_answered_400` |
//! | 3 the path is below `/metadata` | 404 | `what_is_not_there_is_not_found` |
//! | 4 no parameter twice | 400 | `a_parameter_given_twice_is_refused` |
//! | 5 a version of that path | 400 | `each_path_has_its_versions` |
//! | 6 there is something at that path | 404 | `what_is_not_there_is_not_found` |
//! | 7 the method is of that path | 405 | `other_methods_are_not_allowed_and_head_has_no_body` |
//! | 8 not too often | 429 | `who_asks_too_often_is_told_to_wait` |
//! | two mistakes: the first check answers | | `of_two_errors_the_first_in_the_order_of_checks_is_reported` |
//! | ways to write the path | | `every_way_to_write_the_path_is_the_same_path` |

use forewarn_testkit::{NEWEST, RawResponse, TestServer, get, request};

const NO_HEADER: &str = r#"{ "error": "Bad request: . Required metadata header not specified" }"#;
const TWICE: &str = r#"{ "error": "Bad request: a query parameter is given twice" }"#;
const NOT_FOUND: &str = r#"{ "error": "Not found" }"#;
const NOT_ALLOWED: &str = r#"{ "error": "Method not allowed" }"#;
const FORBIDDEN: &str = r#"{ "error": "Forbidden: the caller is not a known virtual machine" }"#;
const MALFORMED: &str = r#"{ "error": "Bad request: the request is malformed" }"#;
const EMPTY: &str = r#"{"DocumentIncarnation":1,"Events":[]}"#;

fn bad_version(newest: &str) -> String {
    format!(
        "{{ \"error\": \"Bad request. api-version is invalid or was not specified in the request. \
         For more information refer to aka.ms/azureimds\", \"newest-versions\": [ {newest} ] }}"
    )
}

const OF_EVENTS: &str = r#""2020-07-01", "2019-08-01", "2019-04-01""#;
const OF_INSTANCE: &str = r#""2025-04-07", "2024-07-17", "2024-03-15""#;

/// Every refusal is JSON and says so.
fn refusal(answer: &RawResponse) -> (u16, &str) {
    assert_eq!(answer.header("Content-Type"), Some("application/json; charset=utf-8"), "{answer:?}");
    let body: serde_json::Value = serde_json::from_str(&answer.body).expect("a refusal is JSON");
    assert!(body["error"].is_string(), "{answer:?}");
    answer.short()
}

#[test]
fn a_stranger_learns_nothing() {
    let server = TestServer::start(crate::program());
    for target in [NEWEST, "/metadata/instance", "/metadata/versions", "/metadata/nothing?a&a"] {
        let answer = server.get("nobody", target);
        assert_eq!(refusal(&answer), (403, FORBIDDEN), "{target}");
        assert_eq!(server.get("solo/web_0", target).short(), (403, FORBIDDEN), "{target}");
    }
}

/// promise: M2
#[test]
fn of_two_errors_the_first_in_the_order_of_checks_is_reported() {
    let server = TestServer::start(crate::program());
    let (version, other_version) = (bad_version(OF_EVENTS), bad_version(OF_INSTANCE));
    let forwarded = r#"{ "error": "Bad request: X-Forwarded-For is not accepted" }"#;
    // Each request makes the mistake that is told, and those of all later checks.
    for (line, fields, expected) in [
        ("PUT /vm/nobody/metadata/nothing?a&a", "", (403, FORBIDDEN)),
        ("PUT /elsewhere?a&a", "X-Forwarded-For: 1.2.3.4\r\n", (400, forwarded)),
        ("PUT /elsewhere?a&a", "", (400, NO_HEADER)),
        ("PUT /elsewhere?a&a", "Metadata: true\r\n", (404, NOT_FOUND)),
        ("PUT /metadata/nothing?a&a", "", (400, NO_HEADER)),
        ("PUT /metadata/scheduledevents?a&a", "", (400, NO_HEADER)),
        ("PUT /metadata/nothing?a&a", "Metadata: true\r\n", (400, TWICE)),
        ("PUT /metadata/scheduledevents?api-version=2017-03-01&api-version=2017-03-01", "", (400, NO_HEADER)),
        ("PUT /metadata/scheduledevents?a&a", "Metadata: true\r\n", (400, TWICE)),
        ("PUT /metadata/nothing", "Metadata: true\r\n", (400, other_version.as_str())),
        ("PUT /metadata/scheduledevents", "Metadata: true\r\n", (400, version.as_str())),
        ("PUT /metadata/nothing?api-version=2020-07-01", "Metadata: true\r\n", (404, NOT_FOUND)),
        (
            "PUT /metadata/scheduledevents?api-version=2020-07-01&wait=x",
            "Metadata: true\r\n",
            (405, NOT_ALLOWED),
        ),
    ] {
        assert_eq!(refusal(&server.say(&request(line, fields))), expected, "{line} {fields}");
    }
}

#[test]
fn what_a_proxy_or_a_web_page_adds_is_refused() {
    let server = TestServer::start(crate::program());
    let line = format!("GET {NEWEST}");
    for name in ["X-Forwarded-For", "Forwarded", "Via", "X-Real-IP", "Origin", "Sec-Fetch-Site"] {
        let expected = format!(r#"{{ "error": "Bad request: {name} is not accepted" }}"#);
        for written in [name.to_owned(), name.to_lowercase(), name.to_uppercase()] {
            let answer = server.say(&request(&line, &format!("Metadata: true\r\n{written}: x\r\n")));
            assert_eq!(refusal(&answer), (400, expected.as_str()), "{written}");
        }
    }
    let harmless = "Metadata: true\r\nSec-Fetch-Mode: cors\r\nAccept: */*\r\nX-Ms-Client: a\r\n";
    assert_eq!(server.say(&request(&line, harmless)).short(), (200, EMPTY));
}

#[test]
fn a_host_that_dns_could_have_brought_here_is_refused() {
    let server = TestServer::start(crate::program());
    let foreign = r#"{ "error": "Bad request: Host must be an IP address, localhost, a single label or a configured name: start the server with --host-name NAME" }"#;
    for (host, expected) in [
        ("169.254.169.254", (200, EMPTY)),
        ("127.0.0.1:8080", (200, EMPTY)),
        ("[::1]:80", (200, EMPTY)),
        ("localhost", (200, EMPTY)),
        ("LOCALHOST:80", (200, EMPTY)),
        ("forewarn:8080", (200, EMPTY)),
        ("evil.example.org", (400, foreign)),
        ("169.254.169.254.nip.io", (400, foreign)),
        ("localhost.", (400, foreign)),
        ("", (400, foreign)),
    ] {
        let answer = server.say(&get(NEWEST).replace("169.254.169.254", host));
        assert_eq!(answer.short(), expected, "{host}");
    }
}

#[test]
fn what_is_no_proper_request_is_refused_and_closed() {
    let server = TestServer::start(crate::program());
    let start = format!("POST {NEWEST} HTTP/1.1\r\nHost: h\r\nMetadata: true\r\n");
    for bytes in [
        "nonsense\r\n\r\n".to_owned(),
        format!("GET {NEWEST} HTTP/1.1\r\nMetadata: true\r\n\r\n"),
        format!("{start}Host: h\r\n\r\n"),
        format!("{start}Content-Length: 2\r\nContent-Length: 2\r\n\r\n{{}}"),
        format!("{start}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        format!("{start}Content-Length: x\r\n\r\n"),
        format!("{start}Transfer-Encoding: gzip\r\n\r\n"),
        get(NEWEST).replace("HTTP/1.1", "HTTP/2.0"),
        get("/metadata%2Fscheduledevents?api-version=2020-07-01"),
        get("/metadata/scheduledevents%00?api-version=2020-07-01"),
    ] {
        let mut line = server.connect();
        line.send(&bytes);
        let answer = line.answer();
        assert_eq!(refusal(&answer), (400, MALFORMED), "{bytes:?}");
        assert_eq!(answer.header("Connection"), Some("close"));
        assert_eq!(line.rest(), "");
    }
}

#[test]
fn what_is_not_there_is_not_found() {
    let server = TestServer::start(crate::program());
    for target in [
        "/",
        "/elsewhere",
        "/metadataX/scheduledevents?api-version=2020-07-01",
        "/metadata?api-version=2020-07-01",
        "/metadata/nothing?api-version=2019-01-01",
        "/metadata/nothing?api-version=2017-04-02",
        "/metadata//scheduledevents?api-version=2020-07-01",
        "/metadata/../metadata/scheduledevents?api-version=2020-07-01",
        "/metadata/scheduledevents/x?api-version=2020-07-01",
    ] {
        assert_eq!(refusal(&server.say(&get(target))), (404, NOT_FOUND), "{target}");
    }
}

#[test]
fn the_header_is_required_in_any_case_of_letters() {
    let server = TestServer::start(crate::program());
    let line = format!("GET {NEWEST}");
    for fields in ["metadata: True\r\n", "METADATA:TRUE\r\n", "Metadata:  true \r\n", "mEtAdAtA: tRuE\r\n"] {
        assert_eq!(server.say(&request(&line, fields)).short(), (200, EMPTY), "{fields:?}");
    }
    for fields in ["", "Metadata: false\r\n", "Metadata: 1\r\n", "Metadata:\r\n", "Metadata: true,true\r\n"] {
        assert_eq!(refusal(&server.say(&request(&line, fields))), (400, NO_HEADER), "{fields:?}");
    }
}

/// promise: M2
#[test]
fn without_the_header_every_path_is_answered_400() {
    let server = TestServer::start(crate::program());
    for target in
        ["/", "/elsewhere", "/metadata", "/metadataX", "/metadata/nothing", "/vm/web_0/", "/vm/web_0"]
    {
        for method in ["GET", "POST", "PUT"] {
            let answer = server.say(&request(&format!("{method} {target}"), "Content-Length: 0\r\n"));
            assert_eq!(refusal(&answer), (400, NO_HEADER), "{method} {target}");
        }
    }
    let exempt = request("GET /metadata/scheduledevents?api-version=2017-03-01", "");
    assert_eq!(server.say(&exempt).status(), 200);
}

#[test]
fn a_parameter_given_twice_is_refused() {
    let server = TestServer::start(crate::program());
    for query in ["&api-version=2020-07-01", "&api-version=2019-08-01", "&a=1&a=2", "&a&%61"] {
        assert_eq!(refusal(&server.get("solo", &format!("{NEWEST}{query}"))), (400, TWICE), "{query}");
    }
}

#[test]
fn each_path_has_its_versions() {
    let server = TestServer::start(crate::program());
    let (of_events, of_instance) = (bad_version(OF_EVENTS), bad_version(OF_INSTANCE));
    for (target, expected) in [
        ("/metadata/scheduledevents?api-version=2021-02-01", &of_events),
        ("/metadata/instance", &of_instance),
        ("/metadata/instance?api-version=2019-01-01", &of_instance),
        ("/metadata/instance/compute?api-version=2020-07-01", &of_instance),
        ("/metadata/nothing", &of_instance),
        ("/metadata", &of_instance),
        ("/metadata/nothing?api-version=latest", &of_instance),
    ] {
        assert_eq!(refusal(&server.get("solo", target)), (400, expected.as_str()), "{target}");
    }
}

#[test]
fn every_way_to_write_the_path_is_the_same_path() {
    let server = TestServer::start(crate::program());
    for target in [
        "/metadata/scheduledEvents?api-version=2019-08-01",
        "/Metadata/SCHEDULEDEVENTS?api-version=2019-08-01",
        "/metadata/scheduledevents/?api-version=2019-08-01",
        "/metadata/scheduledevents%3Fapi-version=2019-08-01",
        "/metadata/scheduledevents?format=json&api-version=2019-08-01&more",
        "/metadata/scheduledevents?api-version=2019-08-01&format=text",
        "/%6detadata/scheduledevents?api%2Dversion=2019-08-01",
        "http://169.254.169.254/metadata/scheduledevents?api-version=2019-08-01",
    ] {
        assert_eq!(server.say(&get(target)).short(), (200, EMPTY), "{target}");
    }
}

#[test]
fn other_methods_are_not_allowed_and_head_has_no_body() {
    let server = TestServer::start(crate::program());
    for (target, allowed) in [
        (NEWEST, "GET, POST"),
        ("/metadata/instance?api-version=2021-02-01", "GET"),
        ("/metadata/versions", "GET"),
        ("/metadata/forewarn/members?api-version=2020-07-01", "GET"),
    ] {
        for method in ["PUT", "DELETE", "OPTIONS", "PATCH", "get", "POST"] {
            if method == "POST" && allowed.contains("POST") {
                continue;
            }
            let answer = server.say(&get(target).replacen("GET", method, 1));
            assert_eq!(refusal(&answer), (405, NOT_ALLOWED), "{method} {target}");
            assert_eq!(answer.header("Allow"), Some(allowed));
        }
        let mut line = server.connect();
        line.send(&(get(target).replacen("GET", "HEAD", 1) + &get(NEWEST)));
        let head = line.answer();
        assert_eq!((head.short(), head.header("Allow")), ((405, ""), Some(allowed)));
        assert_eq!(line.answer().short(), (200, EMPTY), "nothing was between the two");
    }
}

#[test]
fn who_asks_too_often_is_told_to_wait() {
    let server = TestServer::start_with(crate::program(), &["--limits", "cloud"]);
    let mut line = server.connect();
    // Two hundred at once are more than twenty and five for each second that it takes to answer them.
    line.send(&get(NEWEST).repeat(200));
    let answers: Vec<_> = (0..200).map(|_| line.answer()).collect();
    assert!(answers[..20].iter().all(|answer| answer.short() == (200, EMPTY)));
    let refused = answers.iter().find(|answer| answer.status() == 429).expect("200 are too many");
    assert_eq!(refusal(refused), (429, r#"{ "error": "Too many requests" }"#));
    assert_eq!(refused.header("Retry-After"), Some("1"));
    // Earlier checks still come first, and others are not concerned.
    line.send(&get(NEWEST).replacen("GET", "PUT", 1));
    assert_eq!(line.answer().status(), 405);
    assert_eq!(server.get("web_0", NEWEST).status(), 200);
}

#[test]
fn in_development_there_is_no_limit_unless_asked_for() {
    let server = TestServer::start(crate::program());
    let mut line = server.connect();
    line.send(&get(NEWEST).repeat(200));
    assert!((0..200).all(|_| line.answer().status() == 200));
}
