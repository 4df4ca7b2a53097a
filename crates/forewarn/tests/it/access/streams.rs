//! Long responses: a token that is revoked receives nothing more, however much of a response is still to come.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use serde_json::json;

use crate::access::place::{Place, Request, order};
use forewarn_testkit::{DEADLINE, RawConnection, TestServer};

/// Commands that fill the audit log, about 50 kB each: together far more than socket buffers hold.
const COMMANDS: usize = 400;

/// Connections over which they are sent: commands that come together share a commit.
const CONNECTIONS: usize = 8;

/// Characters of the name and of the value of one tag of such a command.
const TAG_CHARS: usize = 500;

/// A response that the client has begun to read.
struct Stream(TcpStream);

impl Stream {
    /// Sends a request and reads the first bytes of the response.
    fn open(server: &TestServer, token: &str, target: &str, headers: &str) -> Self {
        let mut stream = TcpStream::connect(server.api()).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let (line, headers) = (format!("GET {target}"), format!("Connection: close\r\n{headers}"));
        let request = Request { line: &line, token: Some(token), headers: &headers, body: "" };
        stream.write_all(request.bytes().as_bytes()).unwrap();
        let mut first = [0; 12];
        stream.read_exact(&mut first).unwrap();
        assert_eq!(&first, b"HTTP/1.1 200", "{target}");
        Self(stream)
    }

    /// Reads the response to its end, whether it is complete or breaks off.
    fn rest(mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self.0.read_to_end(&mut bytes) {
            Ok(_) => {}
            Err(problem) if problem.kind() == ErrorKind::ConnectionReset => {}
            Err(problem) => panic!("the response does not end: {problem}"),
        }
        bytes
    }
}

/// Whether a chunked response was sent completely.
fn is_complete(response: &[u8]) -> bool {
    response.ends_with(b"\r\n0\r\n\r\n")
}

/// Fills the audit log.
fn fill(server: &TestServer, token: &str) {
    let tags: serde_json::Map<_, _> =
        (0..50).map(|number| (format!("{number:0>TAG_CHARS$}"), json!("x".repeat(TAG_CHARS)))).collect();
    let describe = |number: usize| {
        let mut tags = tags.clone();
        tags.insert(format!("{:0>TAG_CHARS$}", 0), json!(number.to_string()));
        json!({ "command": "describe", "machine": "web_0", "tags": tags }).to_string()
    };
    std::thread::scope(|scope| {
        for first in 0..CONNECTIONS {
            let describe = &describe;
            scope.spawn(move || {
                let mut open = RawConnection::connect(server.api());
                for number in (first..COMMANDS).step_by(CONNECTIONS) {
                    let body = describe(number);
                    let (line, token) = ("POST /v1/commands", Some(token));
                    open.send(&Request { line, token, body: &body, headers: "" }.bytes());
                    assert_eq!(open.answer().status(), 200);
                }
            });
        }
    });
}

/// promise: S2
#[test]
fn a_revoked_token_receives_nothing_that_happens_after_its_revocation() {
    let place = Place::new();
    let server = place.start();
    let (admin, reader) = (place.token("admin --role admin"), place.token("reader --role admin"));
    fill(&server, &admin);
    let watch = Stream::open(&server, &reader, "/v1/watch", "Last-Event-ID: 0\r\n");
    let export = Stream::open(&server, &reader, "/v1/audit/export", "");
    let backup = Stream::open(&server, &reader, "/v1/backup", "");

    place.out(&["token", "delete", "reader"]);
    assert_eq!(order(&server, &admin, r#"{"command":"brake_on"}"#).status(), 200);

    let watched = String::from_utf8_lossy(&watch.rest()).into_owned();
    assert!(watched.contains("describe"), "the stream had begun");
    assert!(!watched.contains("brake_on"), "the stream shows what happened after the revocation");
    assert!(!watched.contains("revoke_token"), "the stream shows its own revocation");
    assert!(!is_complete(&export.rest()), "the export was sent to its end");
    assert!(!is_complete(&backup.rest()), "the backup was sent to its end");
}

/// promise: S2
#[test]
fn a_command_whose_body_comes_after_the_revocation_is_rejected() {
    let place = Place::new();
    let server = place.start();
    let (admin, late) = (place.token("admin --role admin"), place.token("late --role admin"));
    let body = r#"{"command":"brake_on"}"#;
    let issue = r#"{"name":"heir","role":"admin"}"#;
    let begun = [("POST /v1/commands", body), ("POST /v1/tokens", issue)].map(|(line, body)| {
        let headers = "Connection: close\r\nExpect: 100-continue\r\n";
        let whole = Request { line, token: Some(&late), body, headers }.bytes();
        let mut stream = TcpStream::connect(server.api()).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.write_all(whole.split_at(whole.len() - body.len()).0.as_bytes()).unwrap();
        // The server asks for the body after it has checked the token.
        let mut asked = [0; 25];
        stream.read_exact(&mut asked).unwrap();
        assert_eq!(&asked, b"HTTP/1.1 100 Continue\r\n\r\n");
        (stream, body)
    });
    place.out(&["token", "delete", "late"]);
    for (mut stream, body) in begun {
        stream.write_all(body.as_bytes()).unwrap();
        let response = Stream(stream).rest();
        let response = String::from_utf8_lossy(&response);
        assert!(response.starts_with("HTTP/1.1 401"), "{body}: {response}");
    }
    let brake = crate::access::place::read(&server, &admin, "/v1/brake").body;
    assert!(brake.contains("off"), "{brake}");
    assert!(!place.out(&["token", "ls"]).contains("heir"));
}
