//! The operator API from outside: whatever is wrong with a request, the answer is a problem document.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::cli::support::Server;

/// Sends one request; gives the status, the content type and the body of the answer.
fn send(server: &Server, request: &str, body: &[u8]) -> (u16, String, Value) {
    let address = server.api.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    write!(
        stream,
        "{request} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\nConnection: close\r\n"
    )
    .unwrap();
    stream.write_all(b"Content-Type: application/json\r\n\r\n").unwrap();
    // Whoever has seen enough need not read the rest.
    stream.write_all(body).ok();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let head = head.to_ascii_lowercase();
    let kind = head.lines().find_map(|line| line.strip_prefix("content-type: ")).unwrap_or_default();
    let body = serde_json::from_str(body).unwrap_or_else(|_| panic!("{request}: not JSON: {answer}"));
    (head[9..12].parse().unwrap(), kind.to_owned(), body)
}

#[test]
fn whatever_is_wrong_the_answer_is_a_problem_document() {
    let server = Server::start();
    let long = vec![b' '; 70 * 1024];
    let cases: [(&str, &[u8], u16, &str); 15] = [
        ("POST /v1/commands", &long, 413, "cannot read the body: length limit exceeded"),
        ("POST /v1/commands", b"", 400, "empty body"),
        ("POST /v1/commands", b"[\"brake_on\"]", 400, "invalid body: a JSON object is expected"),
        ("POST /v1/commands", b"{\"command\":\"brake\"}", 400, "invalid body: unknown value"),
        ("POST /v1/commands", b"{\"command\":\"restart\"}", 400, "invalid body: machine is missing"),
        ("POST /v1/clock", b"[\"freeze\"]", 400, "invalid body: a JSON object is expected"),
        ("POST /v1/clock", b"{\"clock\":\"scale\",\"speed\":\"x\"}", 400, "invalid body: invalid type"),
        ("POST /v1/fleet", b"{\"hots\":[]}", 400, "invalid body: unknown field `hots`"),
        ("POST /v1/fleet?dry_run=maybe", b"{}", 400, "invalid query"),
        ("GET /v1/machines?colour=red", b"", 400, "invalid query: unknown parameter: \"colour\""),
        ("GET /v1/unfinished?wait=soon", b"", 400, "invalid query"),
        ("GET /v1/hosts/%ff", b"", 400, "invalid path"),
        ("GET /v1/hosts/nobody", b"", 404, "no such host: nobody"),
        ("GET /v2", b"", 404, "no such path"),
        ("DELETE /v1/hosts", b"", 405, "the path does not support the method"),
    ];
    for (request, body, status, detail) in cases {
        let (got, kind, problem) = send(&server, request, body);
        assert_eq!((got, kind.as_str()), (status, "application/problem+json"), "{request}: {problem}");
        assert_eq!(problem["status"], status, "{request}");
        let said = problem["detail"].as_str().unwrap();
        assert!(said.starts_with(detail), "{request}: {said}");
        for rust in ["enum ", "struct ", "u16", "u32", "NamedCommand", "ClockChange"] {
            assert!(!said.contains(rust), "{request}: {said}");
        }
    }
}

#[test]
fn texts_that_would_move_a_cursor_are_refused() {
    let server = Server::start();
    let body = br#"{"command":"describe","machine":"solo","addresses":[],"tags":{"role":"a\u001b[2J"}}"#;
    let (status, _, problem) = send(&server, "POST /v1/commands", body);
    assert_eq!(status, 400, "{problem}");
    assert!(problem["detail"].as_str().unwrap().starts_with("a control character in the value of a tag"));
    let (status, _, _) = send(&server, "POST /v1/commands", br#"{"command":"admit_host","name":".."}"#);
    assert_eq!(status, 400);
}

#[test]
fn the_index_leads_to_everything_that_can_be_read() {
    let server = Server::start();
    let (status, _, index) = send(&server, "GET /v1", b"");
    assert_eq!((status, &index["openapi"]), (200, &Value::from("/v1/openapi.json")));
    assert_eq!(index["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(index["links"]["hosts"], "/v1/hosts");
    for (name, path) in index["links"].as_object().unwrap() {
        let ends =
            !["watch", "backup", "metrics", "healthz", "readyz", "audit/export"].contains(&name.as_str());
        if ends {
            let (status, _, answer) = send(&server, &format!("GET {}", path.as_str().unwrap()), b"");
            assert_eq!(status, 200, "{path}: {answer}");
        }
    }
}
