//! Leases that are kept alive, end and expire.

use forewarn_etcd::{PutOperation, Rejection};
use forewarn_testkit::etcd::EtcdCluster;

use crate::support::{count, patient_client, until};

#[tokio::test]
async fn a_revoked_lease_deletes_its_keys() {
    let Some(cluster) = EtcdCluster::start(1) else { return };
    let client = patient_client(&cluster);
    let lease = client.grant_lease(7, 60).await.unwrap();
    assert_eq!((lease.lease, lease.ttl_seconds), (7, 60));
    assert_eq!(client.grant_lease(7, 60).await.unwrap_err().rejection(), Some(Rejection::LeaseExists));
    client.put(&PutOperation::new("l", "1").with_lease(7)).await.unwrap();
    let kept = client.keep_lease_alive(7).await.unwrap();
    assert_eq!((kept.lease, kept.ttl_seconds), (7, 60));
    client.revoke_lease(7).await.unwrap();
    assert_eq!(count(&client, "l").await, 0);
    assert_eq!(client.revoke_lease(7).await.unwrap_err().rejection(), Some(Rejection::LeaseNotFound));
}

#[tokio::test]
async fn an_expired_lease_deletes_its_keys_and_cannot_be_kept_alive() {
    let Some(cluster) = EtcdCluster::start(1) else { return };
    let client = patient_client(&cluster);
    let lease = client.grant_lease(0, 1).await.unwrap();
    assert!(lease.lease != 0 && lease.ttl_seconds >= 1, "{lease:?}");
    client.put(&PutOperation::new("l", "1").with_lease(lease.lease)).await.unwrap();
    until("the lease expires", async || (count(&client, "l").await == 0).then_some(())).await;
    let error = client.keep_lease_alive(lease.lease).await.unwrap_err();
    assert_eq!(error.rejection(), Some(Rejection::LeaseNotFound), "{error}");
}

#[tokio::test]
async fn a_lease_is_kept_alive_by_any_member() {
    let Some(cluster) = EtcdCluster::start(3) else { return };
    let client = patient_client(&cluster);
    let lease = client.grant_lease(0, 60).await.unwrap().lease;
    for member in 0..3 {
        let settings = crate::support::settings_beginning_with(&cluster, member);
        let kept = crate::support::client(settings).keep_lease_alive(lease).await.unwrap();
        assert_eq!(kept.ttl_seconds, 60, "{member}");
    }
}
