//! Reads, writes and transactions on one healthy member.

use forewarn_etcd::{
    Condition, EtcdClient, KeyRange, Operation, OperationAnswer, Property, PutOperation, RangeQuery,
    Rejection, Relation, Transaction,
};
use forewarn_testkit::etcd::EtcdCluster;

use crate::support::{count, patient_client, put};

#[tokio::test]
async fn a_key_is_written_read_and_deleted() {
    let Some(cluster) = EtcdCluster::start(1) else { return };
    check_a_key(&patient_client(&cluster)).await;
}

pub(crate) async fn check_a_key(client: &EtcdClient) {
    let written = client.put(&PutOperation::new("a", "1")).await.unwrap();
    let read = client.range(&RangeQuery::new(KeyRange::key("a"))).await.unwrap();
    assert_eq!(read.header, written);
    assert!(written.cluster_id != 0 && written.member_id != 0 && written.raft_term > 0, "{written:?}");
    let entry = &read.found.entries[0];
    assert_eq!((&entry.value[..], entry.mod_revision, entry.version), (&b"1"[..], written.revision, 1));
    let deleted = client.delete(&KeyRange::key("a")).await.unwrap();
    assert_eq!((deleted.deleted, deleted.header.revision), (1, written.revision + 1));
    let read = client.range(&RangeQuery::new(KeyRange::key("a"))).await.unwrap();
    assert_eq!((read.found.entries.len(), read.found.count), (0, 0));
    let old = client.range(&RangeQuery::new(KeyRange::key("a")).at_revision(written.revision)).await.unwrap();
    assert_eq!(old.found.count, 1);
    assert_eq!(client.delete(&KeyRange::key("a")).await.unwrap().deleted, 0);
}

#[tokio::test]
async fn a_transaction_applies_one_list_of_operations() {
    let Some(cluster) = EtcdCluster::start(1) else { return };
    check_a_transaction(&patient_client(&cluster)).await;
}

pub(crate) async fn check_a_transaction(client: &EtcdClient) {
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
    let remove = Transaction::new()
        .when(Condition::written_at("k", first.header.revision))
        .then(Operation::Delete(KeyRange::prefix("k")))
        .then(Operation::put("other", "second"));
    let removed = client.transact(&remove).await.unwrap();
    assert_eq!(removed.answers, [OperationAnswer::Delete(1), OperationAnswer::Put]);
    assert!(!client.transact(&remove).await.unwrap().succeeded);
}

#[tokio::test]
async fn a_condition_compares_every_property_of_a_key() {
    let Some(cluster) = EtcdCluster::start(1) else { return };
    let client = patient_client(&cluster);
    let lease = client.grant_lease(0, 600).await.unwrap().lease;
    let created = put(&client, "k", "1").await;
    let written = client.put(&PutOperation::new("k", "2").with_lease(lease)).await.unwrap().revision;
    for (property, greater) in [
        (Property::Version(2), Property::Version(3)),
        (Property::CreateRevision(created), Property::CreateRevision(created + 1)),
        (Property::ModRevision(written), Property::ModRevision(written + 1)),
        (Property::Value("2".into()), Property::Value("3".into())),
        (Property::Lease(lease), Property::Lease(lease + 1)),
    ] {
        for (relation, property, holds) in [
            (Relation::Equal, &property, true),
            (Relation::Equal, &greater, false),
            (Relation::NotEqual, &property, false),
            (Relation::NotEqual, &greater, true),
            (Relation::Less, &greater, true),
            (Relation::Less, &property, false),
            (Relation::Greater, &greater, false),
        ] {
            let condition = Condition::new(KeyRange::key("k"), relation, property.clone());
            let answer = client.transact(&Transaction::new().when(condition)).await.unwrap();
            assert_eq!(answer.succeeded, holds, "{relation:?} {property:?}");
        }
    }
}

#[tokio::test]
async fn a_condition_holds_for_every_key_of_a_range() {
    let Some(cluster) = EtcdCluster::start(1) else { return };
    let client = patient_client(&cluster);
    put(&client, "r/1", "same").await;
    let last = put(&client, "r/2", "same").await;
    let all = |property| Condition::new(KeyRange::prefix("r/"), Relation::Less, property);
    let holds =
        async |property| client.transact(&Transaction::new().when(all(property))).await.unwrap().succeeded;
    assert!(holds(Property::ModRevision(last + 1)).await);
    assert!(!holds(Property::ModRevision(last)).await);
}

#[tokio::test]
async fn pages_at_one_revision_are_one_state() {
    let Some(cluster) = EtcdCluster::start(1) else { return };
    let client = patient_client(&cluster);
    for number in 0..25 {
        put(&client, &format!("p/{number:02}"), format!("{number}")).await;
    }
    put(&client, "q", "not in the range").await;
    let mut range = KeyRange::prefix("p/");
    let first = client.range(&RangeQuery::new(range.clone()).limit(10)).await.unwrap();
    let (revision, mut page) = (first.header.revision, first.found);
    let mut keys = Vec::new();
    loop {
        assert_eq!(page.count, i64::try_from(25 - keys.len()).unwrap());
        keys.extend(page.entries.iter().map(|entry| entry.key.clone()));
        if !page.has_more {
            break;
        }
        // Changes that a reader of one revision does not see.
        put(&client, "p/99", "new").await;
        client.delete(&KeyRange::key("p/24")).await.unwrap();
        range = range.after(keys.last().unwrap());
        let query = RangeQuery::new(range.clone()).limit(10).at_revision(revision);
        page = client.range(&query).await.unwrap().found;
    }
    let expected: Vec<_> = (0..25).map(|number| format!("p/{number:02}")).collect();
    assert_eq!(keys, expected);
    assert_eq!(count(&client, "p/").await, 25, "one key has come, one has gone");
}

#[tokio::test]
async fn keys_only_counts_and_serializable_reads() {
    let Some(cluster) = EtcdCluster::start(1) else { return };
    let client = patient_client(&cluster);
    let revision = put(&client, "k", "value").await;
    let query = RangeQuery::new(KeyRange::all());
    let keys = client.range(&query.clone().keys_only()).await.unwrap().found;
    assert_eq!((keys.entries[0].value.len(), keys.entries[0].mod_revision), (0, revision));
    let counted = client.range(&query.clone().count_only()).await.unwrap().found;
    assert_eq!((counted.entries.len(), counted.count), (0, 1));
    let local = client.range(&query.serializable()).await.unwrap().found;
    assert_eq!(&local.entries[0].value[..], b"value");
}

#[tokio::test]
async fn compacted_and_future_revisions_are_rejected() {
    let Some(cluster) = EtcdCluster::start(1) else { return };
    let client = patient_client(&cluster);
    let first = put(&client, "k", "1").await;
    let second = put(&client, "k", "2").await;
    client.compact(second).await.unwrap();
    let read = async |revision| {
        let query = RangeQuery::new(KeyRange::key("k")).at_revision(revision);
        client.range(&query).await.map_err(|error| error.rejection())
    };
    assert_eq!(read(first).await, Err(Some(Rejection::Compacted)));
    assert!(read(second).await.is_ok());
    assert_eq!(read(second + 1).await, Err(Some(Rejection::FutureRevision)));
    let compacted = async |revision| client.compact(revision).await.map_err(|error| error.rejection());
    assert_eq!(compacted(first).await, Err(Some(Rejection::Compacted)));
    assert_eq!(compacted(second + 1).await, Err(Some(Rejection::FutureRevision)));
}
