//! Reads, writes, transactions, leases and watches on one healthy member.

use forewarn_etcd::{
    Condition, KeyRange, Operation, OperationAnswer, PutOperation, RangeQuery, Transaction, WatchEvent,
    WatchItem, WatchQuery,
};
use forewarn_testkit::etcd::EtcdCluster;

use crate::support::patient_client;

#[tokio::test]
async fn a_key_is_written_read_and_deleted() {
    let Some(cluster) = EtcdCluster::start(1) else { return };
    let client = patient_client(&cluster);
    let written = client.put(&PutOperation::new("a", "1")).await.unwrap();
    let read = client.range(&RangeQuery::new(KeyRange::key("a"))).await.unwrap();
    assert_eq!((read.header.revision, read.header.cluster_id), (written.revision, written.cluster_id));
    let entry = &read.found.entries[0];
    assert_eq!((&entry.value[..], entry.mod_revision, entry.version), (&b"1"[..], written.revision, 1));
    let deleted = client.delete(&KeyRange::key("a")).await.unwrap();
    assert_eq!((deleted.deleted, deleted.header.revision), (1, written.revision + 1));
    let read = client.range(&RangeQuery::new(KeyRange::key("a"))).await.unwrap();
    assert_eq!((read.found.entries.len(), read.found.count), (0, 0));
    let old = client.range(&RangeQuery::new(KeyRange::key("a")).at_revision(written.revision)).await.unwrap();
    assert_eq!(old.found.count, 1);
}

#[tokio::test]
async fn a_transaction_applies_one_list_of_operations() {
    let Some(cluster) = EtcdCluster::start(1) else { return };
    let client = patient_client(&cluster);
    let create = Transaction::new()
        .when(Condition::absent("k"))
        .then(Operation::put("k", "first"))
        .then(Operation::put("other", "first"))
        .otherwise(Operation::Range(RangeQuery::new(KeyRange::key("k"))));
    let first = client.transact(&create).await.unwrap();
    assert!(first.succeeded);
    assert_eq!(first.answers, [OperationAnswer::Put, OperationAnswer::Put]);
    let second = client.transact(&create).await.unwrap();
    assert!(!second.succeeded);
    let [OperationAnswer::Range(found)] = &second.answers[..] else { panic!("{second:?}") };
    assert_eq!((&found.entries[0].value[..], second.header.revision), (&b"first"[..], first.header.revision));
}

#[tokio::test]
async fn a_watch_sees_the_events_of_a_revision_together() {
    let Some(cluster) = EtcdCluster::start(1) else { return };
    let client = patient_client(&cluster);
    let mut watch = client.watch(&WatchQuery::new(KeyRange::prefix("w/"))).await.unwrap();
    client.put(&PutOperation::new("x/0", "not seen")).await.unwrap();
    let both = Transaction::new().then(Operation::put("w/1", "1")).then(Operation::put("w/2", "2"));
    let revision = client.transact(&both).await.unwrap().header.revision;
    let WatchItem::Events(events) = watch.next().await.unwrap() else { panic!("events") };
    let seen: Vec<_> = events.iter().map(|event| (event.key().clone(), event.mod_revision())).collect();
    assert_eq!(seen, [("w/1".into(), revision), ("w/2".into(), revision)]);
    let revision = client.delete(&KeyRange::key("w/1")).await.unwrap().header.revision;
    let deletion = WatchEvent::Delete { key: "w/1".into(), mod_revision: revision };
    assert_eq!(watch.next().await.unwrap(), WatchItem::Events(vec![deletion]));
}

#[tokio::test]
async fn a_revoked_lease_deletes_its_keys() {
    let Some(cluster) = EtcdCluster::start(1) else { return };
    let client = patient_client(&cluster);
    let lease = client.grant_lease(0, 60).await.unwrap();
    assert!(lease.lease != 0 && lease.ttl_seconds == 60, "{lease:?}");
    client.put(&PutOperation::new("l", "1").with_lease(lease.lease)).await.unwrap();
    assert_eq!(client.keep_lease_alive(lease.lease).await.unwrap().ttl_seconds, 60);
    client.revoke_lease(lease.lease).await.unwrap();
    assert_eq!(client.range(&RangeQuery::new(KeyRange::key("l"))).await.unwrap().found.count, 0);
}
