//! Sessions of the dashboard: a cookie is worth its token, and only in the page of its own server.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use forewarn_testkit::tls::{Authority, TlsClient};
use forewarn_testkit::{TestServer, wait_until};

use super::place::{Answer, Ask, MARK, connect, read_until};
use crate::access::place::Place;

/// The time after which an idle stream gets a comment, and would notice its end.
const COMMENT_INTERVAL: Duration = Duration::from_secs(15);

/// The address of a server of these tests, as its page knows it.
fn host(server: &TestServer) -> String {
    format!("localhost:{}", server.api_port())
}

fn send(server: &TestServer, line: &str, fields: &str, body: &str) -> Answer {
    Ask { line, host: &host(server), fields, body }.over(connect(server.api()))
}

fn log_in(server: &TestServer, token: &str) -> Answer {
    send(server, "POST /session", MARK, &format!(r#"{{"token":"{token}"}}"#))
}

/// The header fields of the page with a session.
fn session(server: &TestServer, token: &str) -> String {
    let answer = log_in(server, token);
    assert_eq!(answer.status, 200, "{answer:?}");
    format!("{MARK}{}", answer.cookie())
}

/// promise: S2
#[test]
fn a_login_over_tls_gives_a_cookie_that_only_tls_and_no_script_gets() {
    let place = Place::new();
    let ours = Authority::new("ours");
    let leaf = ours.leaf(&["localhost"]);
    place.write("certificate.pem", &leaf.certificate);
    place.write("key.pem", &leaf.key);
    place.set_mode("key.pem", 0o600);
    let tls = "tls = { certificate = 'DIR/certificate.pem', key = 'DIR/key.pem' }";
    let server = place.start_with(&format!("listen = '127.0.0.1:0'\nsocket = 'DIR/api.sock'\n{tls}"), "");
    let token = place.token("ann --role viewer");
    let port = wait_until("the address", || tls_port(&server));
    let client = TlsClient::new(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), &ours.pem());
    let host = format!("localhost:{port}");
    let ask = |line: &str, fields: &str, body: &str| {
        let request = Ask { line, host: &host, fields, body };
        Answer::read(client.connect(&request.bytes()))
    };
    let page = format!("{MARK}Origin: https://{host}\r\nSec-Fetch-Site: same-origin\r\n");
    let answer = ask("POST /session", &page, &format!(r#"{{"token":"{token}"}}"#));
    assert_eq!(answer.status, 200, "{answer:?}");
    let cookie = answer.header("set-cookie").unwrap();
    for part in ["; Path=/", "; HttpOnly", "; SameSite=Strict", "; Secure", "; Max-Age=43200"] {
        assert!(cookie.contains(part), "{part}: {cookie}");
    }
    let caller = ask("GET /v1/caller", &format!("{page}{}", answer.cookie()), "");
    assert_eq!((caller.status, caller.json()["by"].as_str()), (200, Some("token ann")));
    let wrong = ask("POST /session", &page, &format!(r#"{{"token":"{}"}}"#, token.replace("fwt_", "fwt_9")));
    assert_eq!((wrong.status, wrong.header("set-cookie")), (401, None), "{wrong:?}");
}

/// The port of the first listener with TLS in the log.
fn tls_port(server: &TestServer) -> Option<u16> {
    let log = server.log();
    let (_, rest) = log.split_once("dashboard=\"https://127.0.0.1:")?;
    rest.split('/').next()?.parse().ok()
}

/// promise: S1
#[test]
fn other_pages_get_nothing_even_with_a_cookie() {
    let place = Place::new();
    let server = place.start();
    let page = session(&server, &place.token("admin --role admin"));
    assert_eq!(send(&server, "GET /v1/tokens", &page, "").status, 200);
    let cookie = page.strip_prefix(MARK).unwrap();
    let own = host(&server);
    let other = format!("localhost:{}", server.api_port() ^ 1);
    let brake = r#"{"command":"brake_on"}"#;
    for (name, host, fields, status) in [
        ("no header of the page", own.as_str(), cookie.to_owned(), 401),
        (
            "a form",
            &own,
            format!("{cookie}Origin: http://evil.example\r\nSec-Fetch-Site: cross-site\r\n"),
            403,
        ),
        ("another site", &own, format!("{page}Sec-Fetch-Site: cross-site\r\n"), 403),
        ("a sibling", &own, format!("{page}Sec-Fetch-Site: same-site\r\n"), 403),
        ("another origin", &own, format!("{page}Origin: http://evil.example\r\n"), 403),
        ("another port", &own, format!("{page}Origin: http://{other}\r\n"), 403),
        ("a sandbox", &own, format!("{page}Origin: null\r\n"), 403),
        ("DNS rebinding", "evil.example", format!("{page}Origin: http://evil.example\r\n"), 403),
        ("another name", "evil.example", page.clone(), 403),
    ] {
        for (line, body) in [("POST /v1/commands", brake), ("GET /v1/tokens", "")] {
            let answer = Ask { line, host, fields: &fields, body }.over(connect(server.api()));
            assert_eq!(answer.status, status, "{name}: {line}: {answer:?}");
            assert!(answer.header("access-control-allow-origin").is_none(), "{name}");
        }
    }
    // A browser asks first whether a page of another site may send the header. The answer is no.
    let fields = "Origin: http://evil.example\r\nAccess-Control-Request-Method: POST\r\n\
                  Access-Control-Request-Headers: forewarn-dashboard\r\n";
    let answer = send(&server, "OPTIONS /v1/commands", fields, "");
    assert_eq!((answer.status, answer.header("access-control-allow-headers")), (403, None));
    assert!(!place.out(&["audit", "ls", "--kind", "command"]).contains("brake"), "nothing was changed");
}

/// promise: S3
#[test]
fn a_session_sees_and_may_do_exactly_what_its_token_may() {
    let place = Place::new();
    let server = place.start();
    place.add_west();
    let viewer = place.token("viewer --role viewer");
    let web = place.token("web --role operator --tenant web");
    for token in [&viewer, &web] {
        let (page, bearer) = (session(&server, token), format!("Authorization: Bearer {token}\r\n"));
        let mut statuses = Vec::new();
        for path in [
            "/v1/caller",
            "/v1/clusters",
            "/v1/tenants",
            "/v1/machines",
            "/v1/machines/db_0",
            "/v1/machines?cluster=west",
            "/v1/hosts",
            "/v1/settings",
            "/v1/tokens",
            "/v1/audit",
            "/metrics",
        ] {
            let line = format!("GET {path}");
            let (by_page, by_token) = (send(&server, &line, &page, ""), send(&server, &line, &bearer, ""));
            // Metrics count the requests themselves.
            let is_same = path == "/metrics" || by_page.body == by_token.body;
            assert!(by_page.status == by_token.status && is_same, "{path}: {by_page:?} {by_token:?}");
            statuses.push(by_page.status);
        }
        assert!(statuses.contains(&200) && statuses.contains(&403), "{statuses:?}");
        for body in [
            r#"{"command":"restart","machine":"db_0"}"#,
            r#"{"command":"brake_on"}"#,
            r#"{"command":"restart","machine":"nothing"}"#,
        ] {
            let by = |fields: &str| send(&server, "POST /v1/commands", fields, body);
            let (by_page, by_token) = (by(&page), by(&bearer));
            assert_eq!((by_page.status, by_page.body), (by_token.status, by_token.body), "{body}");
            assert!((403..=404).contains(&by_page.status), "{body}: {}", by_page.status);
        }
    }
    let own = r#"{"command":"restart","machine":"web_0"}"#;
    assert_eq!(send(&server, "POST /v1/commands", &session(&server, &web), own).status, 200);
    assert_eq!(send(&server, "POST /v1/commands", &session(&server, &viewer), own).status, 403);
}

/// promise: S2
#[test]
fn a_revoked_token_ends_its_sessions_and_their_streams() {
    let place = Place::new();
    let server = place.start();
    let page = session(&server, &place.token("ann --role viewer"));
    let mut stream = connect(server.api());
    let watch = Ask { line: "GET /v1/watch", host: &host(&server), fields: &page, body: "" };
    stream.write_all(watch.bytes().as_bytes()).unwrap();
    read_until(&mut stream, "text/event-stream");
    place.out(&["brake", "on"]);
    read_until(&mut stream, "brake_on");
    place.out(&["token", "delete", "ann"]);
    assert_eq!(send(&server, "GET /v1/events", &page, "").status, 401);
    // Nothing else happens: the revocation itself ends the stream, long before its next comment is due.
    stream.set_read_timeout(Some(COMMENT_INTERVAL / 2)).unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    let rest = String::from_utf8(rest).unwrap();
    assert!(!rest.contains("revoke"), "{rest}");
}

/// promise: S2
#[test]
fn a_logout_ends_the_session_and_what_its_stream_sends() {
    let place = Place::new();
    let server = place.start();
    let token = place.token("ann --role viewer");
    let (page, other) = (session(&server, &token), session(&server, &token));
    let mut stream = connect(server.api());
    let watch = Ask { line: "GET /v1/watch", host: &host(&server), fields: &page, body: "" };
    stream.write_all(watch.bytes().as_bytes()).unwrap();
    read_until(&mut stream, "text/event-stream");
    let answer = send(&server, "DELETE /session", &page, "");
    assert_eq!(answer.status, 204, "{answer:?}");
    assert!(answer.header("set-cookie").unwrap().contains("Max-Age=0"), "{answer:?}");
    assert_eq!(send(&server, "GET /v1/caller", &page, "").status, 401);
    assert_eq!(send(&server, "GET /v1/caller", &other, "").status, 200, "another browser goes on");
    stream.set_read_timeout(Some(COMMENT_INTERVAL / 2)).unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert!(!String::from_utf8(rest).unwrap().contains("data:"));
}

/// promise: S4
#[test]
fn neither_the_token_nor_the_session_is_in_a_log_a_file_or_an_error() {
    let place = Place::new();
    let settings = "[log]\nlevel = 'debug'\nformat = 'json'";
    let server = place.start_with("listen = '127.0.0.1:0'\nsocket = 'DIR/api.sock'", settings);
    let token = place.token("ann --role viewer");
    let page = session(&server, &token);
    let id = page.trim_end().rsplit('=').next().unwrap();
    assert_eq!(id.len(), 64, "{page}");
    let answers = [
        send(&server, "GET /v1/events", &page, ""),
        send(&server, "POST /v1/commands", &page, r#"{"command":"brake_on"}"#),
        send(&server, "POST /session", MARK, &format!(r#"{{"token":["{token}"]}}"#)),
        send(&server, "POST /session", MARK, &format!(r#"{{"token":"{token}x"}}"#)),
        send(&server, "POST /session", MARK, &format!(r#"{{"{token}":"x"}}"#)),
        send(&server, "POST /session", "", &format!(r#"{{"token":"{token}"}}"#)),
        send(&server, "DELETE /session", &page, ""),
        send(&server, "GET /v1/events", &page, ""),
    ];
    let secret = token.rsplit('_').next().unwrap();
    let mut texts = vec![("the log".to_owned(), server.log())];
    texts.extend(answers.iter().map(|answer| (format!("{}", answer.status), answer.text() + &answer.head)));
    for entry in fs::read_dir(Path::new(&place.path("data"))).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let bytes = fs::read(&path).unwrap();
            texts.push((path.display().to_string(), String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
    for (name, text) in texts {
        assert!(!text.contains(secret) && !text.contains(id), "in {name}: {text}");
    }
}
