//! Rejected requests, and unusual ones that are accepted.

use forewarn_imds::Edition;
use forewarn_metadata::{IdentityToken, Limits, Settings};
use forewarn_url::OwnHosts;

use crate::metadata::support::{
    NEWEST, SOLO, WEB_0, WEB_1, by_address, get, start_server, start_server_with,
};

const NO_HEADER: &str = r#"{ "error": "Bad request: . Required metadata header not specified" }"#;
const BAD_VERSION: &str = concat!(
    r#"{ "error": "Bad request. api-version is invalid or was not specified in the request. "#,
    r#"For more information refer to aka.ms/azureimds", "newest-versions": [ "#,
    r#""2020-07-01", "2019-08-01", "2019-04-01" ] }"#
);
const BAD_INSTANCE_VERSION: &str = concat!(
    r#"{ "error": "Bad request. api-version is invalid or was not specified in the request. "#,
    r#"For more information refer to aka.ms/azureimds", "newest-versions": [ "#,
    r#""2025-04-07", "2024-07-17", "2024-03-15" ] }"#
);
const MALFORMED: &str = r#"{ "error": "Bad request: the request is malformed" }"#;
const EMPTY: &str = r#"{"DocumentIncarnation":1,"Events":[]}"#;

fn request(line: &str, fields: &str) -> String {
    format!("{line} HTTP/1.1\r\nHost: 169.254.169.254\r\n{fields}\r\n")
}

/// promise: M2
#[tokio::test]
async fn the_metadata_header_is_required_in_any_case_of_letters() {
    let server = start_server().await;
    let line = format!("GET {NEWEST}");
    for fields in ["", "Metadata: false\r\n", "Metadata: 1\r\n", "Metadata:\r\n", "Metadata: true,true\r\n"] {
        let answer = server.send_once(WEB_0, &request(&line, fields)).await;
        assert_eq!(answer.short(), (400, NO_HEADER), "{fields:?}");
        assert_eq!(answer.header("Content-Type"), Some("application/json; charset=utf-8"));
    }
    let twice = request(&line, "Metadata: true\r\nMetadata: true\r\n");
    assert_eq!(server.send_once(WEB_0, &twice).await.short(), (400, NO_HEADER));
    for fields in ["metadata: True\r\n", "METADATA:TRUE\r\n", "Metadata:  true \r\n"] {
        assert_eq!(
            server.send_once(WEB_0, &request(&line, fields)).await.short(),
            (200, EMPTY),
            "{fields:?}"
        );
    }
}

#[tokio::test]
async fn the_preview_does_without_the_header_unless_the_operator_says_no() {
    let preview = request("GET /metadata/scheduledevents?api-version=2017-03-01", "");
    assert_eq!(start_server().await.send_once(WEB_0, &preview).await.short(), (200, EMPTY));
    let settings = Settings { oldest_edition: Edition::V2017_08_01, ..Settings::default() };
    let server = start_server_with(settings, by_address()).await;
    assert_eq!(server.send_once(WEB_0, &preview).await.short(), (400, NO_HEADER));
    let with_header = get("/metadata/scheduledevents?api-version=2017-03-01");
    assert_eq!(server.send_once(WEB_0, &with_header).await.short(), (400, BAD_VERSION));
}

/// promise: M2
#[tokio::test]
async fn a_version_that_a_path_does_not_know_is_answered_with_its_newest() {
    let server = start_server().await;
    for query in [
        "",
        "?api-version=",
        "?api-version=latest",
        "?api-version=01-04-2019",
        "?api-version=01.01.2019",
        "?api-version=2019-02-01",
        "?api-version=%00",
        "?Api=2019-01-01",
    ] {
        let answer = server.get(WEB_0, &format!("/metadata/scheduledevents{query}")).await;
        assert_eq!(answer.short(), (400, BAD_VERSION), "{query}");
    }
    for target in ["/metadata/instance", "/metadata/instance?api-version=2019-01-01", "/metadata/nothing"] {
        assert_eq!(server.get(WEB_0, target).await.short(), (400, BAD_INSTANCE_VERSION), "{target}");
    }
}

#[tokio::test]
async fn every_way_to_write_the_path_is_the_same_path() {
    let server = start_server().await;
    for target in [
        "/metadata/scheduledEvents?api-version=2019-08-01",
        "/Metadata/SCHEDULEDEVENTS?api-version=2019-08-01",
        "/metadata/scheduledevents/?api-version=2019-08-01",
        "/metadata/scheduledevents%3Fapi-version=2019-08-01",
        "/metadata/scheduledevents?format=json&api-version=2019-08-01&more",
        "/%6detadata/scheduledevents?api%2Dversion=2019-08-01",
        "http://169.254.169.254/metadata/scheduledevents?api-version=2019-08-01",
    ] {
        assert_eq!(server.get(WEB_0, target).await.short(), (200, EMPTY), "{target}");
    }
}

/// promise: M2
#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let server = start_server().await;
    let not_found = (404, r#"{ "error": "Not found" }"#);
    for target in [
        "/",
        "/elsewhere",
        "/metadataX/scheduledevents?api-version=2020-07-01",
        "/metadata?api-version=2020-07-01",
        "/metadata/?api-version=2017-04-02",
        "/metadata/nothing?api-version=2019-01-01",
        "/metadata//scheduledevents?api-version=2020-07-01",
        "/metadata/../metadata/scheduledevents?api-version=2020-07-01",
        "/metadata/scheduledevents/x?api-version=2020-07-01",
        "/metadata/identity/oauth2/token?api-version=2018-02-01",
        "/vm/web_0/metadata/scheduledevents?api-version=2020-07-01",
    ] {
        assert_eq!(server.get(WEB_0, target).await.short(), not_found, "{target}");
    }
    let no_header = (400, r#"{ "error": "Bad request: . Required metadata header not specified" }"#);
    for target in ["GET /", "GET /elsewhere"] {
        let bare = request(target, "");
        assert_eq!(
            server.send_once(WEB_0, &bare).await.short(),
            no_header,
            "the header is checked before the path"
        );
    }
}

/// promise: M2
#[tokio::test]
async fn a_parameter_given_twice_is_refused() {
    let server = start_server().await;
    for query in ["&api-version=2020-07-01", "&a=1&a=2", "&a&%61"] {
        let answer = server.get(WEB_0, &format!("{NEWEST}{query}")).await;
        assert_eq!(answer.short(), (400, r#"{ "error": "Bad request: a query parameter is given twice" }"#));
    }
}

/// promise: M2
#[tokio::test]
async fn other_methods_are_not_allowed_and_head_has_no_body() {
    let server = start_server().await;
    for method in ["PUT", "DELETE", "OPTIONS", "get", "PATCH"] {
        let answer = server.send_once(WEB_0, &get(NEWEST).replace("GET", method)).await;
        assert_eq!(answer.short(), (405, r#"{ "error": "Method not allowed" }"#), "{method}");
        assert_eq!(answer.header("Allow"), Some("GET, POST"));
    }
    let versions = get("/metadata/versions").replace("GET", "POST");
    assert_eq!(server.send_once(WEB_0, &versions).await.header("Allow"), Some("GET"));
    let mut line = server.connect(WEB_0).await;
    line.send(&get(NEWEST).replace("GET", "HEAD")).await;
    assert_eq!(
        line.answer().await.plain_head(),
        "HTTP/1.1 405 Method Not Allowed\r\nServer: S\r\nAllow: GET, POST\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\n\r\n"
    );
    line.send(&get(NEWEST)).await;
    assert_eq!(line.answer().await.short(), (200, EMPTY), "nothing came in between");
}

/// promise: M2
#[tokio::test]
async fn what_a_proxy_or_a_web_page_adds_is_refused() {
    let server = start_server().await;
    for field in ["X-Forwarded-For", "Forwarded", "Via", "X-Real-IP", "Origin", "Sec-Fetch-Site"] {
        let body = format!(r#"{{ "error": "Bad request: {field} is not accepted" }}"#);
        for spelling in [field.to_owned(), field.to_uppercase(), field.replace('-', "_")] {
            let request = request(&format!("GET {NEWEST}"), &format!("Metadata: true\r\n{spelling}: x\r\n"));
            assert_eq!(server.send_once(WEB_0, &request).await.short(), (400, body.as_str()));
        }
    }
    let node = request(&format!("GET {NEWEST}"), "Metadata: true\r\nSec-Fetch-Mode: cors\r\n");
    assert_eq!(server.send_once(WEB_0, &node).await.status(), 200);
}

/// promise: M2
#[tokio::test]
async fn a_host_that_dns_could_have_brought_here_is_refused() {
    let hosts = OwnHosts { names: vec!["imds.example.org".to_owned()], ..OwnHosts::default() };
    let settings = Settings { hosts, ..Settings::default() };
    let server = start_server_with(settings, by_address()).await;
    for (host, status) in [
        ("127.0.0.1:8080", 200),
        ("[::1]:80", 200),
        ("localhost", 200),
        ("forewarn:8080", 200),
        ("IMDS.example.org", 200),
        ("evil.example.org", 400),
        ("127.0.0.1.nip.io", 400),
        ("", 400),
    ] {
        let request = get(NEWEST).replace("169.254.169.254", host);
        assert_eq!(server.send_once(WEB_0, &request).await.status(), status, "{host}");
    }
}

/// promise: M2
#[tokio::test]
async fn a_head_that_could_be_understood_in_two_ways_is_refused_and_closed() {
    let server = start_server().await;
    let start = format!("POST {NEWEST} HTTP/1.1\r\nHost: h\r\nMetadata: true\r\n");
    let wrong = [
        format!("GET {NEWEST} HTTP/1.1\r\nMetadata: true\r\n\r\n"),
        format!("{start}Host: h\r\n\r\n"),
        format!("{start}Content-Length: 1\r\nContent-Length: 1\r\n\r\n1"),
        format!("{start}Content-Length: 1, 1\r\n\r\n1"),
        format!("{start}Content-Length: +1\r\n\r\n1"),
        format!("{start}Content-Length: 99999999999999999999\r\n\r\n1"),
        format!("{start}Content-Length:\r\n\r\n"),
        format!("{start}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        format!("{start}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        format!("{start}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"),
        format!("{start}Transfer-Encoding: gzip\r\n\r\n"),
        format!("{start}Transfer-Encoding : chunked\r\n\r\n"),
        format!("{start}Transfer-Encoding: chunked\r\n\r\n1;a=b\r\nx\r\n0\r\n\r\n"),
        format!("{start}Expect: miracles\r\n\r\n"),
        format!("{start}A: b\r\n folded\r\n\r\n"),
        format!("{start}A: b\0c\r\n\r\n"),
        format!("{start}A: \u{e4}\r\n\r\n"),
        format!("{start}A: b\n\r\n"),
        format!("{start}A: b\rc\r\n\r\n"),
        start.replace("\r\n", "\n") + "\n",
        get(NEWEST).replace("\r\n\r\n", "\r\nContent-Length: 1\r\n\r\nx"),
        get(NEWEST).replace("\r\n\r\n", "\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        get(NEWEST).replace("HTTP/1.1", "HTTP/2.0"),
        get("/metadata%2Fscheduledevents?api-version=2020-07-01"),
        get("/metadata/scheduledevents%00?api-version=2020-07-01"),
        get("http://evil/metadata/scheduledevents?api-version=2020-07-01"),
        get("metadata"),
        get("*"),
        "CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n".to_owned(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        "\u{16}\u{3}\u{1}\u{0}\u{5}".to_owned(),
    ];
    for request in wrong {
        let mut line = server.connect(WEB_0).await;
        line.send(&request).await;
        let answer = line.answer().await;
        assert_eq!(answer.short(), (400, MALFORMED), "{request:?}");
        assert_eq!(answer.header("Connection"), Some("close"));
        assert_eq!(line.rest().await, "");
    }
}

#[tokio::test]
async fn what_is_too_long_to_be_read_is_told_so() {
    let server = start_server().await;
    let long = get(&format!("/{}", "a".repeat(2_048)));
    assert_eq!(server.send_once(WEB_0, &long).await.short(), (414, r#"{ "error": "URI too long" }"#));
    let too_large = (431, r#"{ "error": "Request header fields too large" }"#);
    let many = request(&format!("GET {NEWEST}"), &"A: b\r\n".repeat(32));
    assert_eq!(server.send_once(WEB_0, &many).await.short(), too_large);
    let big = request(&format!("GET {NEWEST}"), &format!("A: {}\r\n", "b".repeat(8_192)));
    assert_eq!(server.send_once(WEB_0, &big).await.short(), too_large);
}

/// promise: M2, M4
#[tokio::test]
async fn who_asks_too_often_is_told_to_wait_and_the_others_are_not() {
    let settings = Settings { limits: Some(Limits::default()), ..Settings::default() };
    let server = start_server_with(settings, by_address()).await;
    let mut line = server.connect(WEB_0).await;
    let mut statuses = Vec::new();
    for _ in 0..60 {
        line.send(&get("/metadata/versions")).await;
        let answer = line.answer().await;
        statuses.push(answer.status());
        if answer.status() == 429 {
            assert_eq!(answer.header("Retry-After"), Some("1"));
            assert_eq!(answer.body, r#"{ "error": "Too many requests" }"#);
        }
    }
    assert_eq!(statuses[..20], [200; 20]);
    assert!(statuses.contains(&429));
    assert_eq!(server.get(WEB_1, "/metadata/versions").await.status(), 200);
    assert_eq!(server.get(SOLO, "/metadata/versions").await.status(), 200);
}

#[tokio::test]
async fn a_token_is_there_when_the_operator_wants_it() {
    let identity_token = IdentityToken::Unsigned { directory: "my-directory".to_owned() };
    let settings = Settings { identity_token, ..Settings::default() };
    let server = start_server_with(settings, by_address()).await;
    let target = "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https%3A%2F%2Fr%2F";
    let answer = server.get(WEB_0, target).await;
    assert_eq!(answer.status(), 200);
    assert!(answer.body.contains(r#""resource":"https://r/""#), "{}", answer.body);
    assert!(answer.body.contains(r#""expires_in":"86400""#), "{}", answer.body);
    assert!(
        answer.body.contains(r#""access_token":"eyJ0eXAiOiJKV1QiLCJhbGciOiJub25lIn0."#),
        "{}",
        answer.body
    );
    // Node sends a trailing slash; a client with several identities names one.
    for more in ["client_id=a", "object_id=a", "msi_res_id=%2Fa", "mi_res_id=%2Fa"] {
        let target = format!("{}&{more}", target.replace("token?", "token/?"));
        assert_eq!(server.get(WEB_0, &target).await.status(), 200, "{target}");
    }
    let bare = server.send_once(WEB_0, &request(&format!("GET {target}"), "")).await;
    let said = r#"{"error":"invalid_request","error_description":"Required metadata header not specified"}"#;
    assert_eq!(bare.short(), (400, said));
}
