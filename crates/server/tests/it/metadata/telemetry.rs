//! Metrics of the endpoint.

use crate::metadata::support::{NEWEST, WEB_0, approve, get, restarting};

/// promise: X2
#[tokio::test]
async fn requests_are_counted_by_path_and_code() {
    let (server, id) = restarting().await;
    let mut connection = server.connect(WEB_0).await;
    let with_tag = get(NEWEST).replace("\r\n\r\n", "\r\nIf-None-Match: 2\r\n\r\n");
    for request in [
        get(NEWEST),
        get(NEWEST),
        with_tag,
        get("/metadata/scheduledevents"),
        get("/metadata/instance?api-version=2021-02-01"),
        get("/metadata/nothing?api-version=2021-02-01"),
        get("/metadata/versions").replace("GET", "PUT"),
    ] {
        connection.send(&request).await;
        connection.answer().await;
    }
    connection.send("nonsense\r\n\r\n").await;
    connection.answer().await;
    let requests = |path, code| {
        server.count(&format!("forewarn_metadata_requests_total{{path=\"{path}\",code=\"{code}\"}}"))
    };
    assert_eq!(requests("scheduledevents", 200), 2);
    assert_eq!(requests("scheduledevents", 304), 1);
    assert_eq!(requests("scheduledevents", 400), 1);
    assert_eq!(requests("instance", 200), 1);
    assert_eq!(requests("versions", 405), 1);
    assert_eq!((requests("other", 404), requests("other", 400)), (1, 1));
    server.post(WEB_0, &approve(&[id])).await;
    server.post(WEB_0, "nonsense").await;
    server.post(WEB_0, "{}").await;
    assert_eq!(server.count("forewarn_metadata_start_requests_total{outcome=\"accepted\"}"), 1);
    assert_eq!(server.count("forewarn_metadata_start_requests_total{outcome=\"refused\"}"), 2);
    assert_eq!(server.count("forewarn_metadata_connections_total"), 4);
}
