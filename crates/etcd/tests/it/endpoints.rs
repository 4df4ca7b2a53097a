//! Members that are killed, stopped or missing: a call fails once, and the next one is made on the next endpoint.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use forewarn_etcd::{
    Doubt, EtcdClient, EtcdError, KeyRange, Obstacle, PutOperation, RangeQuery, Rejection, Url,
};
use forewarn_testkit::etcd::EtcdCluster;

use crate::support::{
    PATIENT, client, patient_client, put, repeat, settings, settings_beginning_with, until,
};

/// A port on which nobody listens.
fn closed_port() -> Url {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    Url::parse(&format!("http://127.0.0.1:{port}")).unwrap()
}

#[tokio::test]
async fn a_request_to_a_closed_port_is_not_sent_and_the_next_call_succeeds() {
    let Some(cluster) = EtcdCluster::start(1) else { return };
    let mut settings = settings(&cluster);
    settings.endpoints.insert(0, closed_port());
    let client = client(settings);
    let error = client.put(&PutOperation::new("k", "v")).await.unwrap_err();
    assert!(matches!(error, EtcdError::NotSent { obstacle: Obstacle::Unreachable, .. }), "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
    put(&client, "k", "v").await;
    assert_eq!(client.current_endpoint(), 1);
}

#[tokio::test]
async fn clones_share_the_endpoint_and_several_failures_skip_no_endpoint() {
    let Some(cluster) = EtcdCluster::start(1) else { return };
    let mut settings = settings(&cluster);
    settings.endpoints.insert(0, closed_port());
    settings.endpoints.push(closed_port());
    let client = client(settings);
    let calls: Vec<_> = (0..8)
        .map(|_| {
            let clone = client.clone();
            tokio::spawn(async move { clone.put(&PutOperation::new("k", "v")).await.is_ok() })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!(client.current_endpoint(), 1);
    put(&client, "k", "v").await;
}

#[tokio::test]
async fn a_killed_leader_is_replaced_and_calls_come_back_on_another_endpoint() {
    let Some(mut cluster) = EtcdCluster::start(3) else { return };
    let leader = cluster.leader();
    let client = EtcdClient::new(settings_beginning_with(&cluster, leader)).unwrap();
    repeat(async || client.put(&PutOperation::new("before", "1")).await).await;
    cluster.kill(leader);
    repeat(async || client.put(&PutOperation::new("after", "2")).await).await;
    assert_ne!(client.current_endpoint(), 0);
    let read = repeat(async || client.range(&RangeQuery::new(KeyRange::all())).await).await;
    assert_eq!(read.found.count, 2, "nothing is lost");
    cluster.restart(leader);
    let status = repeat(async || client.status(0).await).await;
    assert!(status.leader.is_some());
}

#[tokio::test]
async fn a_call_on_a_stopped_member_times_out_and_the_next_one_succeeds() {
    let Some(mut cluster) = EtcdCluster::start(3) else { return };
    let follower = (cluster.leader() + 1) % 3;
    let mut settings = settings_beginning_with(&cluster, follower);
    // A busy machine is slow, too.
    settings.limits.connect = PATIENT;
    settings.limits.examination = Duration::from_secs(5);
    let client = EtcdClient::new(settings).unwrap();
    repeat(async || client.status(0).await).await;
    // Calls on a busy machine may have moved on.
    while client.current_endpoint() != 0 {
        drop(client.within(Duration::ZERO).put(&PutOperation::new("k", "0")).await);
    }
    cluster.stop(follower);
    let begin = Instant::now();
    let error = client.put(&PutOperation::new("k", "1")).await.unwrap_err();
    assert!(begin.elapsed() < PATIENT, "{:?}", begin.elapsed());
    assert_eq!(error.doubt(), Some(Doubt::TimedOut), "{error}");
    assert_eq!(client.current_endpoint(), 1);
    put(&client.within(PATIENT), "k", "2").await;
    assert_eq!(client.current_endpoint(), 1);
    // The connection to the stopped member is given up, and another one is opened when it goes on.
    let error = until("the connection is closed", async || {
        client.status(0).await.err().filter(|error| !error.may_be_applied())
    });
    error.await;
    cluster.resume(follower);
    repeat(async || client.status(0).await).await;
}

#[tokio::test]
async fn a_request_to_a_member_that_never_answered_is_not_sent() {
    let Some(mut cluster) = EtcdCluster::start(1) else { return };
    let client = EtcdClient::new(settings(&cluster)).unwrap();
    cluster.stop(0);
    let error = client.put(&PutOperation::new("k", "1")).await.unwrap_err();
    assert!(matches!(error, EtcdError::NotSent { obstacle: Obstacle::TimedOut, .. }), "{error}");
    cluster.resume(0);
    repeat(async || client.put(&PutOperation::new("k", "2")).await).await;
}

#[tokio::test]
async fn a_long_call_on_a_stopped_member_ends_before_its_time() {
    let Some(mut cluster) = EtcdCluster::start(1) else { return };
    let client = EtcdClient::new(settings(&cluster)).unwrap();
    repeat(async || client.put(&PutOperation::new("k", "1")).await).await;
    cluster.stop(0);
    let begin = Instant::now();
    let error = client.within(Duration::from_secs(600)).put(&PutOperation::new("k", "2")).await.unwrap_err();
    assert!(begin.elapsed() < PATIENT, "{:?}", begin.elapsed());
    assert_eq!(error.doubt(), Some(Doubt::Broken), "{error}");
    assert!(error.to_string().contains("no longer answers"), "{error}");
}

#[tokio::test]
async fn a_member_without_a_majority_rejects_writes_and_serves_old_reads() {
    let Some(mut cluster) = EtcdCluster::start(3) else { return };
    let client = patient_client(&cluster);
    put(&client, "k", "v").await;
    cluster.stop(1);
    cluster.stop(2);
    let alone = self::client({
        let mut settings = settings(&cluster);
        settings.endpoints.truncate(1);
        settings
    });
    let write = PutOperation::new("k", "new");
    let error = until("the member has no leader", async || {
        let error = alone.within(Duration::from_millis(300)).put(&write).await.unwrap_err();
        (!error.may_be_applied()).then_some(error)
    });
    assert_eq!(error.await.rejection(), Some(Rejection::NoLeader));
    let read = alone.range(&RangeQuery::new(KeyRange::key("k")).serializable()).await.unwrap();
    assert_eq!(read.found.count, 1);
    assert!(alone.status(0).await.unwrap().leader.is_none());
    cluster.resume(1);
    cluster.resume(2);
    repeat(async || alone.range(&RangeQuery::new(KeyRange::key("k"))).await).await;
}

#[tokio::test]
async fn a_member_that_restarts_is_connected_again() {
    let Some(mut cluster) = EtcdCluster::start(1) else { return };
    let client = patient_client(&cluster);
    put(&client, "k", "1").await;
    cluster.kill(0);
    let error = client.put(&PutOperation::new("k", "2")).await.unwrap_err();
    assert!(matches!(error, EtcdError::NotSent { .. } | EtcdError::Unknown { .. }), "{error}");
    cluster.restart(0);
    repeat(async || client.put(&PutOperation::new("k", "3")).await).await;
}
