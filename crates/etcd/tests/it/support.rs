//! Clients of clusters of a test.

use std::time::{Duration, Instant};

use forewarn_etcd::{
    EtcdClient, EtcdError, EtcdSettings, KeyRange, PutOperation, RangeQuery, Url, Watch, WatchEvent,
    WatchItem,
};
use forewarn_testkit::DEADLINE;
use forewarn_testkit::etcd::EtcdCluster;

/// A time limit for calls that have to succeed on a busy machine.
pub(crate) const PATIENT: Duration = Duration::from_secs(20);

/// Settings with all endpoints of a cluster.
pub(crate) fn settings(cluster: &EtcdCluster) -> EtcdSettings {
    let endpoints = cluster.endpoints();
    EtcdSettings::new(endpoints.iter().map(|url| Url::parse(url).unwrap()).collect())
}

/// Settings with all endpoints, this one first.
pub(crate) fn settings_beginning_with(cluster: &EtcdCluster, member: usize) -> EtcdSettings {
    let mut settings = settings(cluster);
    settings.endpoints.rotate_left(member);
    settings
}

/// A client of all endpoints with a long time limit.
pub(crate) fn patient_client(cluster: &EtcdCluster) -> EtcdClient {
    client(settings(cluster))
}

/// A client with a long time limit.
pub(crate) fn client(mut settings: EtcdSettings) -> EtcdClient {
    settings.limits.call = PATIENT;
    settings.limits.connect = PATIENT;
    settings.limits.examination = PATIENT;
    EtcdClient::new(settings).unwrap()
}

/// Repeats a call until it succeeds.
pub(crate) async fn repeat<T>(mut call: impl AsyncFnMut() -> Result<T, EtcdError>) -> T {
    let begin = Instant::now();
    loop {
        match call().await {
            Ok(answer) => return answer,
            Err(error) => assert!(begin.elapsed() < DEADLINE, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Looks until something is seen.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(begin.elapsed() < DEADLINE, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Writes a key; gives the revision.
pub(crate) async fn put(client: &EtcdClient, key: &str, value: impl Into<Vec<u8>>) -> i64 {
    client.put(&PutOperation::new(key.to_owned(), value.into())).await.unwrap().revision
}

/// The number of keys with a prefix.
pub(crate) async fn count(client: &EtcdClient, prefix: &str) -> i64 {
    let query = RangeQuery::new(KeyRange::prefix(prefix.to_owned())).count_only();
    client.range(&query).await.unwrap().found.count
}

/// The next events of a watch; fails if there is something else.
pub(crate) async fn events(watch: &mut Watch) -> Vec<WatchEvent> {
    let next = tokio::time::timeout(DEADLINE, watch.next()).await.expect("an event in time");
    match next.unwrap() {
        WatchItem::Events(events) => events,
        progress @ WatchItem::Progress { .. } => panic!("no events: {progress:?}"),
    }
}
