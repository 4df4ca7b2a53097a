//! Requests of an operator to a server that may end at any moment.

use std::io;
use std::net::SocketAddr;

use forewarn_types::Moment;
use serde_json::{Value, json};

use crate::{RawResponse, TestServer, ask, request};

/// The response to a GET.
pub fn read(api: SocketAddr, path: &str) -> io::Result<RawResponse> {
    ask(api, &format!("GET {path} HTTP/1.1\r\nHost: {api}\r\n\r\n"))
}

/// The response to a POST of JSON.
pub fn write(api: SocketAddr, path: &str, body: &Value) -> io::Result<RawResponse> {
    let body = body.to_string();
    let fields = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    ask(api, &(request(&format!("POST {path}"), &fields) + &body))
}

/// The JSON of a successful response.
pub fn value(answer: &RawResponse) -> Value {
    assert_eq!(answer.status(), 200, "{answer:?}");
    serde_json::from_str(&answer.body).expect("JSON")
}

/// The time of a clock in a response, in milliseconds.
pub fn millis(clock: &Value) -> i64 {
    let Moment(now) = clock["now"].as_str().and_then(|text| text.parse().ok()).expect("a moment");
    now.millis()
}

/// Sets a clock forward that stands still; gives what it shows.
pub fn advance(server: &TestServer, span: &str) -> i64 {
    millis(&value(&write(server.api(), "/v1/clock", &json!({"clock": "advance", "by": span})).unwrap()))
}

pub fn clock(server: &TestServer) -> i64 {
    millis(&value(&read(server.api(), "/v1/clock").unwrap()))
}

/// The view of a machine.
pub fn machine(server: &TestServer, name: &str) -> Value {
    value(&read(server.api(), &format!("/v1/machines/{name}")).unwrap())
}
