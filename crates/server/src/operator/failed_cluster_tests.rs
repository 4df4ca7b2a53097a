//! Requests to a cluster that has failed.

use axum::body::Body;
use axum::http::{Method, header};
use forewarn_control::ClusterId;
use forewarn_control::request::{Administration, RequestContext};
use forewarn_lifecycle::Name;

use super::Access;
use super::tests::TestServer;
use crate::message::ClusterMessage;
use crate::stale::STALE;

const NORTH: ClusterId = ClusterId(1);

/// A server whose cluster `north` has failed.
async fn with_failed_cluster() -> TestServer {
    let server = TestServer::new(Access::Open("anyone"));
    let create = Administration::CreateCluster(Name::new("north").unwrap());
    server.control.administer(create, RequestContext::default()).await.unwrap();
    server.control.send_to_cluster(NORTH, ClusterMessage::Panic).await;
    // The reply comes once the failure is known.
    let command = forewarn_lifecycle::Command::AdmitHost {
        name: Name::new("h9").unwrap(),
        zone: None,
        capacity: forewarn_lifecycle::Size::NONE,
    };
    assert!(server.control.of(NORTH).submit(command).await.is_err());
    server
}

/// promise: C7
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_of_a_cluster_that_has_failed_are_marked_as_stale() {
    let server = with_failed_cluster().await;
    let is_stale = async |path: &str| {
        let (status, headers, body) = server.send(Method::GET, path, "", Body::empty()).await;
        assert!(status.is_success(), "{path}: {body}");
        headers.contains_key(STALE)
    };
    assert!(is_stale("/v1/hosts?cluster=north").await);
    for other in ["/v1/hosts", "/v1/hosts?cluster=default", "/v1/clusters", "/v1/tokens", "/readyz"] {
        assert!(!is_stale(other).await, "{other}");
    }
}

/// promise: C7
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_a_cluster_that_has_failed_is_not_to_be_repeated() {
    let server = with_failed_cluster().await;
    let body = r#"{"command":"admit_host","name":"h1"}"#;
    let path = "/v1/commands?cluster=north";
    let (status, headers, problem) = server.send(Method::POST, path, "application/json", body).await;
    assert_eq!((status.as_u16(), &problem["type"]), (503, &"/problems/cluster-failed".into()), "{problem}");
    assert_eq!(headers.get(header::RETRY_AFTER), None);
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("a test has made the driver")));
    let (status, _, _) = server.send(Method::POST, "/v1/commands", "application/json", body).await;
    assert!(status.is_success(), "another cluster goes on");
}
