//! Limits of etcd and of the client: a request that exceeds one is not applied, and the error says so.

use forewarn_etcd::{
    Alarm, AlarmKind, Doubt, EtcdClient, EtcdError, KeyRange, Obstacle, Operation, PutOperation, RangeQuery,
    Rejection, Transaction,
};
use forewarn_testkit::etcd::EtcdCluster;

use crate::support::{PATIENT, client, count, patient_client, put, settings};

/// Bytes that etcd accepts by default in a request, and a value that does not fit.
const REQUEST_BYTES_MAX: usize = 1_536 * 1_024;

#[tokio::test]
async fn a_request_that_is_too_large_is_not_applied() {
    let Some(cluster) = EtcdCluster::start(1) else { return };
    check_large_requests(&cluster).await;
}

pub(crate) async fn check_large_requests(cluster: &EtcdCluster) {
    let client = patient_client(cluster);
    put(&client, "fits", vec![b'x'; REQUEST_BYTES_MAX - 100]).await;
    let rejected = try_put(&client, REQUEST_BYTES_MAX + 1).await.unwrap_err();
    assert_eq!(rejected.rejection(), Some(Rejection::TooLarge), "{rejected}");
    let kept = try_put(&client, 2 * 1_024 * 1_024).await.unwrap_err();
    assert!(matches!(kept, EtcdError::NotSent { obstacle: Obstacle::TooLarge, .. }), "{kept}");
    // A client that sends more is stopped by the gRPC library of etcd.
    let mut generous = settings(cluster);
    generous.limits.request_bytes = 8 * 1_024 * 1_024;
    let rejected = try_put(&crate::support::client(generous), 4 * 1_024 * 1_024).await.unwrap_err();
    assert_eq!(rejected.rejection(), Some(Rejection::TooLarge), "{rejected}");
    assert_eq!(count(&client, "large").await, 0);
    assert_eq!(client.current_endpoint(), 0);
}

async fn try_put(client: &EtcdClient, bytes: usize) -> Result<(), EtcdError> {
    client.put(&PutOperation::new("large", vec![b'x'; bytes])).await.map(drop)
}

#[tokio::test]
async fn a_transaction_with_too_many_operations_is_not_applied() {
    let Some(cluster) = EtcdCluster::start(1) else { return };
    check_many_operations(&patient_client(&cluster)).await;
}

pub(crate) async fn check_many_operations(client: &EtcdClient) {
    let puts = |number: usize| {
        let operation = |number| Operation::put(format!("o/{number}"), "1");
        (0..number).map(operation).fold(Transaction::new(), Transaction::then)
    };
    let rejected = client.transact(&puts(129)).await.unwrap_err();
    assert_eq!(rejected.rejection(), Some(Rejection::TooManyOperations), "{rejected}");
    assert_eq!(count(client, "o/").await, 0);
    client.transact(&puts(128)).await.unwrap();
    assert_eq!(count(client, "o/").await, 128);
}

#[tokio::test]
async fn invalid_requests_are_rejected() {
    let Some(cluster) = EtcdCluster::start(1) else { return };
    let client = patient_client(&cluster);
    let twice = Transaction::new().then(Operation::put("k", "1")).then(Operation::put("k", "2"));
    assert_eq!(client.transact(&twice).await.unwrap_err().rejection(), Some(Rejection::DuplicateKey));
    let nameless = client.put(&PutOperation::new("", "1")).await.unwrap_err();
    assert_eq!(nameless.rejection(), Some(Rejection::Invalid), "{nameless}");
    let lease = PutOperation::new("k", "1").with_lease(99);
    assert_eq!(client.put(&lease).await.unwrap_err().rejection(), Some(Rejection::LeaseNotFound));
    let transaction = Transaction::new().then(Operation::put("a", "1")).then(Operation::Put(lease));
    let rejected = client.transact(&transaction).await.unwrap_err();
    assert_eq!(rejected.rejection(), Some(Rejection::LeaseNotFound), "{rejected}");
    assert_eq!(count(&client, "").await, 0);
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_an_error_and_the_client_goes_on() {
    let Some(cluster) = EtcdCluster::start(1) else { return };
    let mut narrow = settings(&cluster);
    narrow.limits.answer_bytes = 10_000;
    let client = client(narrow);
    put(&client, "k", vec![b'x'; 10_000]).await;
    let query = RangeQuery::new(KeyRange::key("k"));
    let error = client.range(&query).await.unwrap_err();
    assert_eq!(error.doubt(), Some(Doubt::InvalidAnswer), "{error}");
    assert_eq!(client.range(&query.keys_only()).await.unwrap().found.count, 1);
}

/// The write that exceeds the quota may be applied and still be answered with an error.
#[tokio::test]
async fn a_full_database_raises_an_alarm_and_results_are_unknown() {
    let Some(cluster) = EtcdCluster::start_with(1, &["--quota-backend-bytes", "2000000"]) else { return };
    let client = patient_client(&cluster);
    let mut error = None;
    // etcd compares its quota with the size of the file, to which it writes at intervals: fast puts exceed the quota.
    for _ in 0..10_000 {
        error = try_put(&client, 100_000).await.err();
        if error.is_some() {
            break;
        }
    }
    let error = error.expect("the database is full");
    assert_eq!(error.doubt(), Some(Doubt::NoSpace), "{error}");
    let member_id = client.status(0).await.unwrap().header.member_id;
    let alarm = Alarm { member_id, kind: AlarmKind::NoSpace };
    assert_eq!(client.alarms().await.unwrap(), [alarm]);
    assert!(client.within(PATIENT).delete(&KeyRange::key("large")).await.is_ok(), "deletions go on");
    assert_eq!(client.disarm(alarm).await.unwrap(), [alarm]);
    assert_eq!(client.alarms().await.unwrap(), []);
}
