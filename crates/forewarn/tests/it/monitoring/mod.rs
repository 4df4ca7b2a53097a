//! Metrics for alerts, and the files in `deploy/monitoring` that use them.

mod files;
mod work;

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use forewarn_testkit::TestServer;

const SCRAPE: &str = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// All metrics of a server.
fn scrape(server: &TestServer) -> String {
    let Some(socket) = server.api_url().strip_prefix("unix:") else {
        return forewarn_testkit::ask(server.api(), SCRAPE).unwrap().body;
    };
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(SCRAPE.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response.split_once("\r\n\r\n").expect("a header").1.to_owned()
}

/// The value of a metric, with its labels if it has some.
fn metric(server: &TestServer, name: &str) -> u64 {
    let text = scrape(server);
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("no {name} in\n{text}")).parse().unwrap()
}
