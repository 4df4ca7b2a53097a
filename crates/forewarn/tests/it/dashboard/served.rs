//! The files of the dashboard: on every listener of operators, and on no other.

use std::os::unix::net::UnixStream;

use forewarn_dashboard::ASSETS;
use forewarn_testkit::tls::TlsClient;
use forewarn_testkit::{DEADLINE, TestServer, wait_until};

use super::place::{Answer, Ask, connect};
use crate::access::place::Place;

/// Reads every file with `get`, and compares.
fn check(name: &str, get: impl Fn(&str, &str) -> Answer) {
    for asset in ASSETS {
        let answer = get(&format!("GET {}", asset.path), "");
        let about = format!("{name} {}", asset.path);
        assert_eq!((answer.status, answer.body.as_slice()), (200, asset.bytes), "{about}");
        assert_eq!(answer.header("content-type"), Some(asset.content_type), "{about}");
        let policy = answer.header("content-security-policy").unwrap();
        assert!(
            policy.starts_with("default-src 'none'; ") && policy.contains("frame-ancestors 'none'"),
            "{about}"
        );
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{about}");
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"), "{about}");
        let tag = answer.header("etag").unwrap();
        let again = get(&format!("GET {}", asset.path), &format!("If-None-Match: {tag}\r\n"));
        assert_eq!((again.status, again.body.len()), (304, 0), "{about}");
        let head = get(&format!("HEAD {}", asset.path), "");
        assert_eq!((head.status, head.body.len()), (200, 0), "{about}");
        assert_eq!(head.header("content-length"), Some(asset.bytes.len().to_string().as_str()), "{about}");
    }
}

fn ask<'a>(line: &'a str, fields: &'a str) -> Ask<'a> {
    Ask { line, host: "localhost", fields, body: "" }
}

/// promise: S1
#[test]
fn the_page_is_on_every_listener_of_operators_without_a_token() {
    let dev = TestServer::start(crate::program());
    check("dev", |line, fields| ask(line, fields).over(connect(dev.api())));
    let place = Place::new();
    let serve = place.start();
    check("serve", |line, fields| ask(line, fields).over(connect(serve.api())));
    check("socket", |line, fields| {
        let stream = UnixStream::connect(place.path("api.sock")).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        ask(line, fields).over(stream)
    });
    assert_eq!(ask("GET /v1/events", "").over(connect(serve.api())).status, 401, "the page is all");
}

/// promise: S1
#[test]
fn the_listener_for_clients_of_azure_and_the_metadata_endpoint_have_no_page() {
    let server = TestServer::start_with(crate::program(), &["--arm-listen", "127.0.0.1:0"]);
    let ca = Ask { line: "GET /ca.pem", host: "localhost", ..Ask::default() }.over(connect(server.api()));
    assert_eq!(ca.status, 200, "{ca:?}");
    let azure = TlsClient::new(server.arm(), &ca.text());
    for asset in ASSETS {
        let (status, body) = azure.ask_as("localhost", &format!("GET {}", asset.path), "", "");
        assert!((400..500).contains(&status) && !body.contains("<html"), "{}: {status} {body}", asset.path);
        let line = format!("GET {}", asset.path);
        let machine = Ask { line: &line, host: "localhost", fields: "Metadata: true\r\n", body: "" };
        assert_eq!(machine.over(connect(server.metadata())).status, 404, "{}", asset.path);
    }
}

#[test]
fn servers_say_where_the_dashboard_is() {
    let dev = TestServer::start(crate::program());
    let line = format!("\n  dashboard  {}/\n", dev.api_url());
    wait_until("the address of the dashboard", || dev.log().contains(&line).then_some(()));
    let place = Place::new();
    let serve = place.start();
    serve.wait_for_log("server ready");
    let field = format!("dashboard=\"http://{}/\"", serve.api());
    assert!(serve.log().contains(&field), "{}", serve.log());
}
