//! The end of a listener: requests in flight are answered, others are not accepted.

use std::sync::Arc;

use forewarn_control::ClusterId;
use forewarn_control::request::{ClusterRequest, Request};
use forewarn_peers::{ForwardOutcome, SeenNumbers};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::{DEADLINE, Realm};

#[tokio::test]
async fn a_listener_that_stops_answers_requests_in_flight() {
    let realm = Realm::new();
    let (a, mut b) = (realm.server("a").await, realm.server("b").await);
    // A connection without a request does not delay the end.
    let (client, idle) = (a.client(&b), a.client(&b));
    let request = Arc::new(Request::Cluster(ClusterId::DEFAULT, ClusterRequest::Sweep));
    assert!(matches!(idle.forward(1, SeenNumbers::new(), &request).await, ForwardOutcome::Answered(_)));
    b.handler.holds_requests.send_replace(true);
    let stopping = async {
        b.handler.requests.wait(2, |_| true).await;
        b.stop.send_replace(true);
        let refused = async { while TcpStream::connect(b.address).await.is_ok() {} };
        timeout(DEADLINE, refused).await.expect("in time");
        b.handler.holds_requests.send_replace(false);
    };
    let (outcome, ()) = tokio::join!(client.forward(1, SeenNumbers::new(), &request), stopping);
    assert!(matches!(outcome, ForwardOutcome::Answered(_)), "{outcome:?}");
    timeout(DEADLINE, &mut b.listener).await.expect("in time").unwrap();
}
