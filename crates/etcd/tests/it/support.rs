//! Clients of clusters of a test.

use std::time::{Duration, Instant};

use forewarn_etcd::{EtcdClient, EtcdError, EtcdSettings, Url};
use forewarn_testkit::DEADLINE;
use forewarn_testkit::etcd::EtcdCluster;

/// A time limit for calls that have to succeed on a busy machine.
pub(crate) const PATIENT: Duration = Duration::from_secs(20);

/// Settings with all endpoints of a cluster.
pub(crate) fn settings(cluster: &EtcdCluster) -> EtcdSettings {
    let endpoints = cluster.endpoints();
    EtcdSettings::new(endpoints.iter().map(|url| Url::parse(url).unwrap()).collect())
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
