//! The same with a newer version of etcd.

use forewarn_testkit::etcd::EtcdCluster;

use crate::support::patient_client;
use crate::{basics, limits, login, watches};

#[tokio::test]
async fn keys_and_transactions() {
    let Some(cluster) = EtcdCluster::start_newer(1, &[]) else { return };
    let client = patient_client(&cluster);
    basics::check_a_key(&client).await;
    basics::check_a_transaction(&client).await;
    limits::check_many_operations(&client).await;
    limits::check_large_requests(&cluster).await;
    let version = client.status(0).await.unwrap().version;
    assert!(!version.starts_with("3.4."), "{version}");
}

#[tokio::test]
async fn watches_and_the_order_of_progress() {
    let Some(cluster) = EtcdCluster::start_newer(1, &[]) else { return };
    let client = patient_client(&cluster);
    watches::check_a_watch(&client).await;
    watches::check_the_order_of_progress(&client).await;
    watches::check_compaction(&client).await;
}

#[tokio::test]
async fn passwords() {
    let Some(cluster) = EtcdCluster::start_newer(1, &[]) else { return };
    login::check_passwords(&cluster).await;
}

#[tokio::test]
async fn renewed_tokens() {
    let Some(cluster) = EtcdCluster::start_newer(1, &[]) else { return };
    login::check_renewal(&cluster).await;
}
