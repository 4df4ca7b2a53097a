//! Recorded requests of other programs, byte for byte but for the ids.

use crate::metadata::support::{TestServer, WEB_0, approve, restarting};

const CONTINUE: &str = "HTTP/1.1 100 Continue\r\n\r\n";

/// Sends a head, waits for `100 Continue`, sends the body.
async fn approve_after_continue(server: &TestServer, head: &str, body: &str) {
    let mut connection = server.connect(WEB_0).await;
    connection.send(&format!("{head}Content-Length: {}\r\nExpect: 100-continue\r\n\r\n", body.len())).await;
    assert_eq!(connection.answer().await.head, CONTINUE);
    connection.send(body).await;
    assert_eq!(connection.answer().await.short(), (200, ""));
    assert!(server.caller("web/web_0").slot.read().document.events.iter().all(|event| !event.is_scheduled()));
}

/// promise: M6
#[tokio::test]
async fn dotnet_web_client_approves_with_the_preview() {
    let (server, id) = restarting().await;
    let head = "POST /metadata/scheduledevents?api-version=2017-03-01 HTTP/1.1\r\n\
                Content-Type: application/json\r\nHost: 169.254.169.254\r\n";
    let body = format!(r#"{{"DocumentIncarnation":"2","StartRequests":[{{"EventId":"{id}"}}]}}"#);
    approve_after_continue(&server, head, &body).await;
}

/// promise: M6
#[tokio::test]
async fn powershell_approves_with_a_form_that_is_none() {
    let (server, id) = restarting().await;
    let head = "POST /metadata/scheduledevents?api-version=2017-08-01 HTTP/1.1\r\nMetadata: true\r\n\
                User-Agent: Mozilla/5.0 (Windows NT; Windows NT 10.0; en-US) WindowsPowerShell/5.1.14393.1532\r\n\
                Content-Type: application/x-www-form-urlencoded\r\nHost: 169.254.169.254\r\n";
    let body = format!(
        "{{\r\n    \"StartRequests\":  [\r\n                          {{\r\n                              \
         \"EventId\":  \"{id}\"\r\n                          }}\r\n                      ],\r\n    \
         \"DocumentIncarnation\":  2\r\n}}"
    );
    approve_after_continue(&server, head, &body).await;
}

#[tokio::test]
async fn a_refusal_comes_instead_of_the_word_and_ends_the_connection() {
    let (server, id) = restarting().await;
    let mut connection = server.connect(WEB_0).await;
    let body = approve(&[id]);
    connection
        .send(&format!(
            "POST /metadata/scheduledevents?api-version=2017-08-01 HTTP/1.1\r\nHost: 169.254.169.254\r\n\
         Content-Length: {}\r\nExpect: 100-continue\r\n\r\n",
            body.len()
        ))
        .await;
    let answer = connection.answer().await;
    assert_eq!((answer.status(), answer.header("Connection")), (400, Some("close")));
    assert_eq!(connection.rest().await, "");
}

/// promise: M6
#[tokio::test]
async fn python_urllib_reads_and_approves_over_connections_that_close() {
    let (server, id) = restarting().await;
    let fields = "Accept-Encoding: identity\r\nHost: 169.254.169.254\r\nUser-Agent: Python-urllib/3.11\r\n\
                  Metadata: true\r\nConnection: close\r\n";
    let mut connection = server.connect(WEB_0).await;
    connection
        .send(&format!("GET /metadata/scheduledevents?api-version=2019-08-01 HTTP/1.1\r\n{fields}\r\n"))
        .await;
    let answer = connection.answer().await;
    assert_eq!((answer.status(), answer.header("Connection")), (200, Some("close")));
    assert!(answer.body.contains(&id));
    assert_eq!(connection.rest().await, "");
    let body = approve(&[id]);
    let mut connection = server.connect(WEB_0).await;
    connection
        .send(&format!(
            "POST /metadata/scheduledevents?api-version=2019-08-01 HTTP/1.1\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n{fields}\r\n",
            body.len()
        ))
        .await;
    connection.send(&body).await;
    assert_eq!(connection.answer().await.short(), (200, ""));
    assert_eq!(connection.rest().await, "");
}
