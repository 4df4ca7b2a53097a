//! Faults that are injected into the answers to one machine, on the program itself: as bytes, and as clients see them.

mod clients;
mod documents;
mod operators;
mod requests;
mod stories;
mod wire;

use forewarn_testkit::TestServer;
use serde_json::Value;

fn server() -> TestServer {
    TestServer::start(crate::program())
}

/// Injects a fault: `web_0 --next 2 --answer 500`.
fn inject(server: &TestServer, words: &str) -> Value {
    let words: Vec<_> = ["fault", "create"].into_iter().chain(words.split(' ')).collect();
    server.json(&words)
}

/// The number of faults that are not used up.
fn faults_left(server: &TestServer) -> usize {
    server.json(&["fault", "ls"])["items"].as_array().expect("a list").len()
}
