//! The operator API with TLS: whom a client believes, who blocks nobody, and settings that are read again.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may be blunt")]

mod reload;
mod support;

use std::io::{Read, Write};
use std::net::TcpStream;

use self::support::Place;
use forewarn_testkit::tls::Authority;

/// promise: S1
#[test]
fn beyond_loopback_there_is_tls_or_no_server() {
    let place = Place::new();
    let config = place.config("listen = '0.0.0.0:0'", "");
    let ran = place.forewarn(&["serve", "--check", "--config", &config]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.err.contains("listener without TLS: api.listen = 0.0.0.0:0 is not loopback\n  hint: [api.tls]"),
        "{}",
        ran.err
    );
    let server = place.start("listen = '0.0.0.0:0'\ntls = { self_signed = true }");
    let ca = place.path("data/tls/ca.pem");
    let url = format!("https://127.0.0.1:{}", server.api_port());
    let ran = place.forewarn(&["--api", &url, "--ca", &ca, "--token", &server.key(), "clock", "show"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

/// promise: S1
#[test]
fn a_client_believes_whom_it_is_told_to_and_nobody_else() {
    let place = Place::new();
    let (ours, others) = (Authority::new("ours"), Authority::new("others"));
    place.write("ours.pem", &ours.pem());
    place.write("others.pem", &others.pem());
    place.certificate(&ours.leaf(&["localhost"]));
    let server = place.start(&place.tls("127.0.0.1:0"));
    let url = format!("https://localhost:{}", server.api_port());
    let (right, wrong) = (place.path("ours.pem"), place.path("others.pem"));
    let show = |url: &str, ca: &str| {
        place.forewarn(&["--api", url, "--ca", ca, "--token", &server.key(), "clock", "show"])
    };
    let ran = show(&url, &right);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = show(&url, &wrong);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("UnknownIssuer") && ran.err.contains("--ca FILE"), "{}", ran.err);
    let ran = show(&url, "");
    assert!(ran.code == Some(1) && ran.err.contains("--ca FILE"), "nobody knows that authority: {ran:?}");
    let ran = show(&url.replace("localhost", "127.0.0.1"), &right);
    assert!(ran.code == Some(1) && ran.err.contains("for other names"), "{ran:?}");
    let ran = show(&url.replace("https", "http"), &right);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("this port requires TLS\n  hint: https://"), "{}", ran.err);
    let ran = show(&url, &place.path("no-such.pem"));
    assert!(ran.err.contains("cannot read the certificate: "), "{}", ran.err);
    let ran = place.forewarn(&["--api", &url, "--ca", &right, "clock", "show"]);
    assert!(ran.code == Some(1) && ran.err.contains("--token"), "TLS is not a key: {ran:?}");
}

/// promise: S1
#[test]
fn a_certificate_that_has_expired_is_not_believed() {
    let place = Place::new();
    let ours = Authority::new("ours");
    place.write("ours.pem", &ours.pem());
    place.certificate(&ours.expired_leaf(&["localhost"]));
    let server = place.start(&place.tls("127.0.0.1:0"));
    let url = format!("https://localhost:{}", server.api_port());
    let ca = place.path("ours.pem");
    let ran = place.forewarn(&["--api", &url, "--ca", &ca, "--token", &server.key(), "clock", "show"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("the server's certificate has expired"), "{}", ran.err);
    server.wait_for_log("TLS certificate has expired");
}

#[test]
fn a_server_that_does_not_speak_tls_is_found_out() {
    let place = Place::new();
    let server = place.start("listen = '127.0.0.1:0'");
    let ran =
        place.forewarn(&["--api", &format!("https://127.0.0.1:{}", server.api_port()), "clock", "show"]);
    assert!(ran.code == Some(1) && ran.err.contains("http:// instead of https://"), "{ran:?}");
}

/// promise: S5
#[test]
fn clients_that_say_nothing_block_nobody() {
    let place = Place::new();
    let server = place.start("listen = '127.0.0.1:0'\ntls = { self_signed = true }");
    // More than there may be unfinished handshakes: the oldest make room.
    let silent: Vec<_> =
        (0..400).map(|_| TcpStream::connect(("127.0.0.1", server.api_port())).unwrap()).collect();
    let ca = place.path("data/tls/ca.pem");
    let ran =
        place.forewarn(&["--api", server.api_url(), "--ca", &ca, "--token", &server.key(), "clock", "show"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let mut first = &silent[0];
    assert!(matches!(first.read(&mut [0; 1]), Ok(0) | Err(_)), "the oldest was closed");
    let mut nonsense = TcpStream::connect(("127.0.0.1", server.api_port())).unwrap();
    nonsense.write_all(&[22, 3, 1, 0, 4, 1, 2, 3, 4]).unwrap();
    let mut told = Vec::new();
    drop(nonsense.read_to_end(&mut told));
    let ran =
        place.forewarn(&["--api", server.api_url(), "--ca", &ca, "--token", &server.key(), "clock", "show"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn a_key_that_does_not_fit_is_told_before_the_server_starts() {
    let place = Place::new();
    let ours = Authority::new("ours");
    place.certificate(&ours.leaf(&["localhost"]));
    place.write("key.pem", &ours.leaf(&["localhost"]).key);
    let config = place.config(&place.tls("127.0.0.1:0"), "");
    let ran = place.forewarn(&["serve", "--check", "--config", &config]);
    assert!(ran.code == Some(1) && ran.err.contains("the key does not match the certificate"), "{ran:?}");
    place.write("key.pem", "not a key");
    let ran = place.forewarn(&["serve", "--check", "--config", &config]);
    assert!(ran.code == Some(1) && ran.err.contains("no key in "), "{ran:?}");
}
