//! Users and passwords: tokens that expire and are revoked, wrong passwords, and permissions.

use std::time::Duration;

use forewarn_etcd::{EtcdClient, EtcdLogin, KeyRange, PutOperation, Rejection, WatchEnd, WatchQuery};
use forewarn_testkit::etcd::EtcdCluster;
use serde_json::json;

use crate::support::{client, events, patient_client, put, settings, until};

const PASSWORD: &str = "s3cret";

fn client_of(cluster: &EtcdCluster, user: &str, password: &str) -> EtcdClient {
    let mut settings = settings(cluster);
    settings.login = Some(EtcdLogin::new(user, password));
    client(settings)
}

#[tokio::test]
async fn a_user_with_a_password_is_served_and_others_are_rejected() {
    let Some(cluster) = EtcdCluster::start(1) else { return };
    check_passwords(&cluster).await;
}

pub(crate) async fn check_passwords(cluster: &EtcdCluster) {
    cluster.enable_authentication(PASSWORD);
    let client = client_of(cluster, "root", PASSWORD);
    client.authenticate().await.unwrap();
    put(&client, "k", "v").await;
    assert!(format!("{client:?}").contains("value: Some(Sensitive)"), "a token is not displayed");
    for (user, password) in [("root", "wr0ng"), ("nobody", PASSWORD)] {
        let wrong = client_of(cluster, user, password);
        let error = wrong.put(&PutOperation::new("k", "v")).await.unwrap_err();
        assert_eq!(error.rejection(), Some(Rejection::WrongLogin), "{error}");
        assert!(!format!("{error} {error:?} {wrong:?}").contains(password), "{error}");
        assert_eq!(wrong.authenticate().await.unwrap_err().rejection(), Some(Rejection::WrongLogin));
    }
    let anonymous = patient_client(cluster);
    let error = anonymous.put(&PutOperation::new("k", "v")).await.unwrap_err();
    assert_eq!(error.rejection(), Some(Rejection::NotAuthenticated), "{error}");
}

#[tokio::test]
async fn a_revoked_token_is_renewed() {
    let Some(cluster) = EtcdCluster::start(1) else { return };
    check_renewal(&cluster).await;
}

/// A new password revokes all tokens of a user.
pub(crate) async fn check_renewal(cluster: &EtcdCluster) {
    cluster.enable_authentication(PASSWORD);
    let client = client_of(cluster, "root", PASSWORD);
    put(&client, "k", "1").await;
    let change = |password: &str| {
        let body = json!({ "name": "root", "password": password });
        cluster.post(0, "/v3/auth/user/changepw", Some(&cluster.token(PASSWORD)), &body);
    };
    change(PASSWORD);
    let calls: Vec<_> = (0..4)
        .map(|number| {
            let client = client.clone();
            tokio::spawn(async move { put(&client, &format!("k/{number}"), "2").await })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
    change(PASSWORD);
    let mut watch = client.watch(&WatchQuery::new(KeyRange::prefix("w/"))).await.unwrap();
    put(&client, "w/1", "3").await;
    assert_eq!(events(&mut watch).await.len(), 1);
    change("an0ther");
    let error = client.put(&PutOperation::new("k", "4")).await.unwrap_err();
    assert_eq!(error.rejection(), Some(Rejection::WrongLogin), "{error}");
}

#[tokio::test]
async fn an_expired_token_is_renewed() {
    let Some(cluster) = EtcdCluster::start_with(1, &["--auth-token-ttl", "1"]) else { return };
    cluster.enable_authentication(PASSWORD);
    let client = client_of(&cluster, "root", PASSWORD);
    put(&client, "k", "1").await;
    // A token that was issued later and is not used either: when it has expired, the other one has.
    let token = cluster.token(PASSWORD);
    until("the token expires", async || {
        let body = json!({ "key": "aw==" });
        // Looking prolongs it; etcd removes expired tokens every second.
        tokio::time::sleep(Duration::from_secs(3)).await;
        cluster.try_post(0, "/v3/kv/range", Some(&token), &body).err()
    })
    .await;
    put(&client, "k", "2").await;
}

#[tokio::test]
async fn a_member_that_restarts_forgets_tokens() {
    let Some(mut cluster) = EtcdCluster::start(1) else { return };
    cluster.enable_authentication(PASSWORD);
    let client = client_of(&cluster, "root", PASSWORD);
    put(&client, "k", "1").await;
    cluster.restart(0);
    crate::support::repeat(async || client.put(&PutOperation::new("k", "2")).await).await;
}

#[tokio::test]
async fn authentication_can_be_switched_on_later() {
    let Some(cluster) = EtcdCluster::start(1) else { return };
    let client = client_of(&cluster, "root", PASSWORD);
    put(&client, "k", "1").await;
    cluster.enable_authentication(PASSWORD);
    put(&client, "k", "2").await;
}

#[tokio::test]
async fn a_user_without_a_permission_is_rejected() {
    let Some(cluster) = EtcdCluster::start(1) else { return };
    let user = json!({ "name": "guest", "password": "guest-s3cret" });
    cluster.post(0, "/v3/auth/user/add", None, &user);
    cluster.enable_authentication(PASSWORD);
    let client = client_of(&cluster, "guest", "guest-s3cret");
    let error = client.put(&PutOperation::new("k", "v")).await.unwrap_err();
    assert_eq!(error.rejection(), Some(Rejection::PermissionDenied), "{error}");
    let watched = match client.watch(&WatchQuery::new(KeyRange::key("k"))).await {
        Ok(mut watch) => match watch.next().await {
            Err(WatchEnd::Lost(error)) => error,
            other => panic!("{other:?}"),
        },
        Err(error) => error,
    };
    assert_eq!(watched.rejection(), Some(Rejection::PermissionDenied), "{watched}");
}
