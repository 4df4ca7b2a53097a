//! The end of a listener: requests in flight are answered, others are not accepted.

use std::sync::Arc;

use forewarn_control::ClusterId;
use forewarn_control::request::{ClusterRequest, Request};
use forewarn_peers::{ForwardOutcome, PeerError};
use tokio::time::timeout;

use crate::support::{DEADLINE, Realm};

#[tokio::test]
async fn a_listener_that_stops_answers_requests_in_flight() {
    let realm = Realm::new();
    let (a, mut b) = (realm.server("a").await, realm.server("b").await);
    let (client, idle) = (a.client(&b), a.client(&b));
    let request = Arc::new(Request::Cluster(ClusterId::DEFAULT, ClusterRequest::Sweep));
    assert!(matches!(idle.forward(1, &request).await, ForwardOutcome::Answered(_)));
    b.handler.hangs.send_replace(true);
    let stopping = async {
        b.handler.requests.wait(2, |_| true).await;
        b.stop.send_replace(true);
        // The connection without a request is closed; nobody listens any more.
        let refused = async {
            loop {
                let outcome = idle.forward(1, &request).await;
                if let ForwardOutcome::NotSent(PeerError::Unreachable(_)) = outcome {
                    break;
                }
            }
        };
        timeout(DEADLINE, refused).await.expect("in time");
        b.handler.hangs.send_replace(false);
    };
    let (outcome, ()) = tokio::join!(client.forward(1, &request), stopping);
    assert!(matches!(outcome, ForwardOutcome::Answered(_)), "{outcome:?}");
    timeout(DEADLINE, &mut b.listener).await.expect("in time").unwrap();
}
