//! Lines against somebody who answers exactly what a test says, byte for byte.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may be blunt")]

use std::time::Duration;

use forewarn_http_client::{HttpClient, HttpError, Limits, Request, Trust, Url, header};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

const SECRET: &str = "s3cret";

/// Somebody at a port; each connection is answered with its own bytes, one request after the other, and closed when there are no
/// more. Ends with what was asked on each connection.
async fn somebody(connections: Vec<Vec<String>>) -> (HttpClient, JoinHandle<Vec<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/told?code={SECRET}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        let mut seen = Vec::new();
        for answers in connections {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = Vec::new();
            for answer in answers {
                asked.push(read_head(&mut stream).await);
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
            seen.push(asked);
        }
        seen
    });
    (HttpClient::new(Url::parse(&url).unwrap(), Trust::system()), serving)
}

/// A request without a body; nothing, if the connection has ended.
async fn read_head(stream: &mut TcpStream) -> String {
    let (mut text, mut buffer) = (String::new(), [0; 4096]);
    while !text.ends_with("\r\n\r\n") {
        match stream.read(&mut buffer).await {
            Ok(count) if count > 0 => text.push_str(str::from_utf8(&buffer[..count]).unwrap()),
            Ok(_) | Err(_) => return String::new(),
        }
    }
    text
}

fn answer(status: u16, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n{headers}\r\n{body}", body.len())
}

fn question() -> Request {
    Request::get(format!("/told?code={SECRET}"))
}

fn few_bytes() -> Limits {
    Limits { body_bytes: 10, ..Limits::default() }
}

#[tokio::test]
async fn a_connection_is_kept_until_somebody_hangs_up() {
    let (mut line, somebody) = somebody(vec![
        vec![answer(200, "", "a"), answer(404, "", "b"), String::new()],
        vec![answer(200, "", "c")],
    ])
    .await;
    for (status, body) in [(200, "a"), (404, "b")] {
        let answer = line.send(&question(), Limits::default()).await.unwrap();
        assert_eq!((answer.status, answer.body.as_ref()), (status, body.as_bytes()));
    }
    line.disconnect();
    assert_eq!(line.send(&question(), Limits::default()).await.unwrap().body, "c");
    let seen = somebody.await.unwrap();
    let requests = seen[0].iter().map(|text| !text.is_empty()).collect::<Vec<_>>();
    assert_eq!(requests, [true, true, false], "it was closed after two");
    let first = &seen[0][0];
    assert!(first.starts_with("GET /told?code=s3cret HTTP/1.1\r\n"), "{first}");
    assert!(first.contains("\r\nuser-agent: forewarn/") && first.contains("\r\nhost: 127.0.0.1:"), "{first}");
}

#[tokio::test]
async fn what_was_closed_meanwhile_is_opened_again() {
    let (mut line, somebody) = somebody(vec![vec![answer(204, "", "")]; 3]).await;
    let request = question().with(header::USER_AGENT, "mine/1".parse().unwrap());
    for _ in 0..3 {
        assert_eq!(line.send(&request, Limits::default()).await.unwrap().status, 204);
    }
    assert!(somebody.await.unwrap().iter().all(|asked| asked[0].contains("\r\nuser-agent: mine/1\r\n")));
}

#[tokio::test]
async fn redirects_are_answers_like_any_other() {
    let (mut line, _somebody) =
        somebody(vec![vec![answer(302, "Location: http://192.0.2.1/\r\n", "")]]).await;
    let answer = line.send(&question(), Limits::default()).await.unwrap();
    assert_eq!((answer.status, answer.header("location")), (302, Some("http://192.0.2.1/")));
}

/// Said to be too long, too long without being said so, and broken off.
fn bodies() -> [(String, HttpError); 3] {
    let chunked = "HTTP/1.1 202 X\r\nTransfer-Encoding: chunked\r\nRetry-After: 7\r\n\r\n";
    [
        (answer(202, "Retry-After: 7\r\n", "more than ten bytes"), HttpError::BodyTooLarge(10)),
        (format!("{chunked}13\r\nmore than ten bytes\r\n0\r\n\r\n"), HttpError::BodyTooLarge(10)),
        (format!("{chunked}5\r\nless"), HttpError::InvalidResponse(String::new())),
    ]
}

#[tokio::test]
async fn a_body_that_does_not_come_whole_is_no_answer() {
    for (bytes, expected) in bodies() {
        let (mut line, _somebody) = somebody(vec![vec![bytes]]).await;
        let trouble = line.send(&question(), few_bytes()).await.unwrap_err();
        let is_expected = match &expected {
            HttpError::InvalidResponse(_) => matches!(trouble, HttpError::InvalidResponse(_)),
            HttpError::Unreachable(_)
            | HttpError::TimedOut(_)
            | HttpError::BodyTooLarge(_)
            | HttpError::InvalidRequest(_) => trouble == expected,
        };
        assert!(is_expected, "{trouble:?}");
        assert!(!trouble.to_string().contains(SECRET));
    }
}

#[tokio::test]
async fn whoever_is_only_told_something_may_answer_at_any_length() {
    for (bytes, _) in bodies() {
        let (mut line, _somebody) = somebody(vec![vec![bytes], vec![answer(200, "", "whole")]]).await;
        let answer = line.send_ignoring_body(&question(), few_bytes()).await.unwrap();
        assert_eq!(
            (answer.status, answer.header("retry-after"), answer.body.len()),
            (202, Some("7"), 0),
            "nothing of such a body is kept"
        );
        // And nothing of it is taken for the next answer.
        assert_eq!(line.send_ignoring_body(&question(), few_bytes()).await.unwrap().body, "whole");
    }
}

#[tokio::test]
async fn nobody_is_waited_for_longer_than_was_said() {
    // A head, and then nothing more, while the connection stays.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("http://{}/?{SECRET}", listener.local_addr().unwrap())).unwrap();
    let somebody = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 X\r\nContent-Length: 5\r\n\r\n").await.unwrap();
        // It ends when whoever asked has given up.
        read_head(&mut stream).await
    });
    let limits = Limits { answer: Duration::from_millis(300), ..Limits::default() };
    let mut line = HttpClient::new(url, Trust::system());
    assert_eq!(
        line.send_ignoring_body(&question(), limits).await.unwrap_err(),
        HttpError::TimedOut(limits.answer)
    );
    assert_eq!(somebody.await.unwrap(), "");
    assert!(!format!("{line:?}").contains(SECRET));
}

#[tokio::test]
async fn what_cannot_be_asked_or_reached_is_told_without_secrets() {
    let url = Url::parse(&format!("http://127.0.0.1:9/?{SECRET}")).unwrap();
    let mut line = HttpClient::new(url, Trust::system());
    let nobody = line.send(&question(), Limits::default()).await.unwrap_err();
    assert!(matches!(nobody, HttpError::Unreachable(_)), "{nobody:?}");
    assert!(!nobody.to_string().contains(SECRET), "{nobody}");

    let (mut line, _somebody) = somebody(vec![vec![]]).await;
    let strange = Request::get(format!("/a b?{SECRET}"));
    let unaskable = line.send(&strange, Limits::default()).await.unwrap_err();
    assert!(matches!(unaskable, HttpError::InvalidRequest(_)), "{unaskable:?}");
    assert!(!unaskable.to_string().contains(SECRET), "{unaskable}");
}
