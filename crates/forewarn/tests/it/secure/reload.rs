//! Settings that are read again while the server runs.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::secure::support::Place;
use forewarn_testkit::tls::Authority;

/// The status of an answer to a request with that `Host`.
fn status(place: &str, path: &str, host: &str) -> String {
    let mut stream = TcpStream::connect(place.split_once("://").unwrap().1).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nMetadata: true\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap_or_default().to_owned()
}

/// promise: S1
#[test]
fn a_new_certificate_is_shown_to_new_connections() {
    let place = Place::new();
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    place.write("old.pem", &old.pem());
    place.write("new.pem", &new.pem());
    place.certificate(&old.leaf(&["localhost"]));
    let server = place.start(&place.tls("127.0.0.1:0"));
    let url = format!("https://localhost:{}", server.api_port());
    let believes = |ca: &str| {
        let ca = place.path(ca);
        place.forewarn(&["--api", &url, "--ca", &ca, "--token", &server.key(), "clock", "show"]).code
            == Some(0)
    };
    assert!(believes("old.pem") && !believes("new.pem"));
    place.certificate(&new.leaf(&["localhost"]));
    assert!(believes("old.pem"), "it was not asked to read it again");
    server.reload();
    assert!(!believes("old.pem") && believes("new.pem"));
    place.write("key.pem", "half a fi");
    server.reload();
    assert!(believes("new.pem"), "what was in use stays in use");
    assert!(server.log().contains("configuration not reloaded"), "{}", server.log());
}

/// promise: S1
#[test]
fn what_is_safe_to_change_takes_effect_and_the_rest_is_named() {
    let place = Place::new();
    let listen = "listen = '127.0.0.1:0'";
    let server = place.start(listen);
    let poll = "/metadata/scheduledevents?api-version=2017-03-01";
    assert_eq!(status(&server.metadata_url(), poll, "metadata.internal"), "400");
    assert_eq!(status(&server.metadata_url(), poll, "localhost"), "200");
    assert_eq!(status(server.api_url(), "/healthz", "forewarn.internal"), "403");
    let api = format!("{listen}\nhost_names = ['forewarn.internal']");
    let more = "[log]\nlevel = 'debug'\nformat = 'json'\n[metadata]\nhost_names = ['metadata.internal']\n\
                oldest_edition = '2020-07-01'\nthreads = 7\n";
    place.config(&api, more);
    server.reload();
    assert_eq!(status(&server.metadata_url(), poll, "localhost"), "400", "that edition is too old");
    assert_eq!(
        status(&server.metadata_url(), &poll.replace("2017-03-01", "2020-07-01"), "metadata.internal"),
        "200"
    );
    assert_eq!(status(server.api_url(), "/healthz", "forewarn.internal:1339"), "200");
    let said = server.log();
    assert!(
        said.contains("api.host_names log.level metadata.host_names metadata.oldest_edition"),
        "what took effect: {said}"
    );
    for setting in ["log.format", "metadata.threads"] {
        assert!(said.contains(&format!("needs a restart setting=\"{setting}\"")), "{setting}: {said}");
    }
    place.write("config.toml", "data_dir = 7");
    server.reload();
    assert!(server.log().contains("configuration not reloaded"), "{}", server.log());
    assert_eq!(status(server.api_url(), "/healthz", "forewarn.internal"), "200", "nothing has");
}

/// promise: S1
#[test]
fn a_limit_counts_for_whoever_connects_next() {
    let place = Place::new();
    let listen = "listen = '127.0.0.1:0'";
    let limits = |burst: u32| format!("[metadata.limits]\nrequests_per_second = 1\nburst = {burst}\n");
    let server = place.start_with(listen, &limits(1));
    let poll = "/metadata/instance?api-version=2021-02-01";
    let answered = || status(&server.metadata_url(), poll, "localhost");
    let several: Vec<_> = (0..3).map(|_| answered()).collect();
    assert!(several.contains(&"429".to_owned()), "{several:?}");
    place.config(listen, &limits(1_000));
    server.reload();
    let several: Vec<_> = (0..20).map(|_| answered()).collect();
    assert!(several.iter().all(|status| status == "200"), "{several:?}");
}
