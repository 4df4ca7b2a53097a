//! Requests as other programs send them: recorded byte for byte but for the ids, or sent by the program itself.
//!
//! | program | test |
//! |---|---|
//! | .NET `WebClient`: no header in the preview, the incarnation as text, waits for the word | `dotnet_web_client_approves_with_the_preview` |
//! | PowerShell: a form that is none, pretty JSON, waits for the word | `powershell_approves_with_a_form_that_is_none` |
//! | Python `urllib`: a connection for each request, a form that is none | `python_urllib_reads_and_approves_over_connections_that_close` |
//! | Node's own `fetch`, run for real | `node_fetch_reads_and_approves` |

use std::process::Command;

use forewarn_testkit::programs::find_or_skip;
use forewarn_testkit::{TestServer, approve};

const CONTINUE: &str = "HTTP/1.1 100 Continue\r\n\r\n";

/// The one who calls without a prefix.
const CALLER: &str = "solo";

fn restarting() -> (TestServer, String) {
    let server = TestServer::start(crate::program());
    server.enrol(&[CALLER]);
    let id = server.restart(CALLER);
    (server, id)
}

/// Sends a head, waits for the word, sends the body.
fn approve_when_told(server: &TestServer, head: &str, body: &str) {
    let mut line = server.connect();
    line.send(&format!("{head}Content-Length: {}\r\nExpect: 100-continue\r\n\r\n", body.len()));
    assert_eq!(line.answer().head, CONTINUE);
    line.send(body);
    assert_eq!(line.answer().short(), (200, ""));
    assert_eq!(server.status(CALLER), "Started");
}

#[test]
fn dotnet_web_client_approves_with_the_preview() {
    let (server, id) = restarting();
    let head = "POST /metadata/scheduledevents?api-version=2017-03-01 HTTP/1.1\r\n\
                Content-Type: application/json\r\nHost: 169.254.169.254\r\n";
    let body = format!(r#"{{"DocumentIncarnation":"2","StartRequests":[{{"EventId":"{id}"}}]}}"#);
    approve_when_told(&server, head, &body);
}

#[test]
fn powershell_approves_with_a_form_that_is_none() {
    let (server, id) = restarting();
    let head = "POST /metadata/scheduledevents?api-version=2017-08-01 HTTP/1.1\r\nMetadata: true\r\n\
                User-Agent: Mozilla/5.0 (Windows NT; Windows NT 10.0; en-US) WindowsPowerShell/5.1.14393.1532\r\n\
                Content-Type: application/x-www-form-urlencoded\r\nHost: 169.254.169.254\r\n";
    let body = format!(
        "{{\r\n    \"StartRequests\":  [\r\n                          {{\r\n                              \
         \"EventId\":  \"{id}\"\r\n                          }}\r\n                      ],\r\n    \
         \"DocumentIncarnation\":  2\r\n}}"
    );
    approve_when_told(&server, head, &body);
}

#[test]
fn python_urllib_reads_and_approves_over_connections_that_close() {
    let (server, id) = restarting();
    let fields = "Accept-Encoding: identity\r\nHost: 169.254.169.254\r\nUser-Agent: Python-urllib/3.11\r\n\
                  Metadata: true\r\nConnection: close\r\n";
    let mut line = server.connect();
    line.send(&format!("GET /metadata/scheduledevents?api-version=2019-08-01 HTTP/1.1\r\n{fields}\r\n"));
    let answer = line.answer();
    assert_eq!((answer.status(), answer.header("Connection")), (200, Some("close")));
    assert!(answer.body.contains(&id));
    assert_eq!(line.rest(), "");
    let body = approve(&[&id]);
    let mut line = server.connect();
    line.send(&format!(
        "POST /metadata/scheduledevents?api-version=2019-08-01 HTTP/1.1\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n{fields}\r\n",
        body.len()
    ));
    line.send(&body);
    assert_eq!(line.answer().short(), (200, ""));
    assert_eq!(line.rest(), "");
    assert_eq!(server.status(CALLER), "Started");
}

/// Prints what it read, approves the first event with another edition, and prints how that went.
const NODE: &str = r#"
const base = process.argv[1] + "/metadata/scheduledevents?api-version=";
const headers = { Metadata: "true" };
const read = await fetch(base + "2020-07-01", { headers });
const document = await read.json();
const body = JSON.stringify({ StartRequests: [{ EventId: document.Events[0].EventId }] });
const approved = await fetch(base + "2019-08-01", { method: "POST", headers, body });
const again = await fetch(base + "2020-07-01", { headers: { ...headers, "If-None-Match": read.headers.get("etag") } });
console.log(JSON.stringify({
  read: read.status, type: read.headers.get("content-type"), id: document.Events[0].EventId,
  approved: approved.status, text: await approved.text(), again: (await again.json()).Events[0].EventStatus,
}));
"#;

/// promise: M6
#[test]
fn node_fetch_reads_and_approves() {
    let Some(node) = find_or_skip("node") else { return };
    let (server, id) = restarting();
    let output = Command::new(node)
        .args(["--input-type=module", "--eval", NODE, &format!("http://{}", server.metadata())])
        .output()
        .expect("node starts");
    let printed = String::from_utf8(output.stdout).unwrap();
    let expected = format!(
        r#"{{"read":200,"type":"application/json; charset=utf-8","id":"{id}","approved":200,"text":"","again":"Started"}}"#
    );
    assert_eq!(printed.trim(), expected, "{}", String::from_utf8_lossy(&output.stderr));
}
