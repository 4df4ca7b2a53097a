//! One request over a stream that the caller has opened.
#![allow(clippy::unwrap_used, reason = "a test may be blunt")]

use forewarn_http_client::{HeaderValue, PreparedRequest, Request, exchange, header, is_broken_off};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::JoinHandle;

/// The other side: reads one head, writes these bytes, and closes.
fn answering(bytes: &'static str) -> (DuplexStream, JoinHandle<String>) {
    let (near, mut far) = tokio::io::duplex(64 * 1024);
    let serving = tokio::spawn(async move {
        let (mut text, mut buffer) = (String::new(), [0; 4096]);
        while !text.ends_with("\r\n\r\n") {
            let count = far.read(&mut buffer).await.unwrap();
            text.push_str(str::from_utf8(&buffer[..count]).unwrap());
        }
        far.write_all(bytes.as_bytes()).await.unwrap();
        text
    });
    (near, serving)
}

fn prepared() -> PreparedRequest {
    let request = Request::get("/v1/watch").with(header::HOST, HeaderValue::from_static("localhost"));
    request.with(header::ACCEPT, HeaderValue::from_static("application/json")).prepare().unwrap()
}

#[tokio::test]
async fn a_request_has_its_own_headers_and_no_others() {
    let (stream, serving) = answering("HTTP/1.1 200 X\r\nContent-Length: 3\r\n\r\nabc");
    let response = exchange(stream, prepared()).await.unwrap();
    assert_eq!((response.status(), response.whole(3).await.unwrap().as_ref()), (200, &b"abc"[..]));
    let asked = serving.await.unwrap();
    assert_eq!(asked, "GET /v1/watch HTTP/1.1\r\nhost: localhost\r\naccept: application/json\r\n\r\n");
}

#[tokio::test]
async fn a_body_comes_in_pieces() {
    let (stream, _serving) =
        answering("HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n");
    let mut response = exchange(stream, prepared()).await.unwrap();
    let mut all = Vec::new();
    while let Some(piece) = response.piece().await {
        all.extend_from_slice(&piece.unwrap());
    }
    assert_eq!(all, b"abc");
}

#[tokio::test]
async fn a_body_that_is_too_long_or_breaks_off_is_an_error() {
    let (stream, _serving) = answering("HTTP/1.1 200 X\r\nContent-Length: 3\r\n\r\nabc");
    let problem = exchange(stream, prepared()).await.unwrap().whole(2).await.unwrap_err();
    assert_eq!(problem.to_string(), "length limit exceeded");
    let (stream, _serving) = answering("HTTP/1.1 200 X\r\nContent-Length: 3\r\n\r\na");
    let mut response = exchange(stream, prepared()).await.unwrap();
    assert_eq!(response.piece().await.unwrap().unwrap(), "a");
    assert!(response.piece().await.unwrap().is_err());
}

#[tokio::test]
async fn a_connection_that_ends_without_an_answer_is_broken_off() {
    for (bytes, is_broken) in [("", true), ("HTTP/1.1 2", true), ("220 mail\r\n\r\n", false)] {
        let (stream, _serving) = answering(bytes);
        let problem = exchange(stream, prepared()).await.unwrap_err();
        assert_eq!(is_broken_off(&problem), is_broken, "{bytes}: {problem}");
    }
}

#[test]
fn what_is_not_a_target_is_an_error_and_nothing_is_shown() {
    assert!(Request::get("/a b").prepare().is_err());
    let secret = HeaderValue::from_static("Bearer s3cret");
    let request = Request::get("/?code=s3cret").with(header::AUTHORIZATION, secret).prepare().unwrap();
    assert_eq!(format!("{request:?}"), "PreparedRequest(GET)");
}
