//! Renewal of certificates while servers are connected.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use forewarn_control::ClusterId;
use forewarn_control::request::{ClusterRequest, Request};
use forewarn_peers::{CertificateError, ForwardOutcome, PeerIdentity, SeenNumbers};

use crate::raw_client::connect;
use crate::support::{Realm, TestServer, name, unavailable};

/// An identity that counts its certificates. The source fails after the last of them.
fn counted(
    realm: &Realm,
    server: &'static str,
    renew_after: Option<Duration>,
    last: usize,
) -> (Arc<PeerIdentity>, Arc<AtomicUsize>) {
    let (authority, issued) = (realm.authority(), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&issued);
    let source = move |now: SystemTime| {
        if count.fetch_add(1, Ordering::SeqCst) >= last {
            return Err(CertificateError::Mismatch);
        }
        let mut credentials = authority.issue(&name(server), &[], now)?;
        credentials.renew_at = renew_after.map(|after| now + after);
        Ok(credentials)
    };
    (PeerIdentity::new(name(server), source).unwrap(), issued)
}

async fn is_answered(client: &forewarn_peers::PeerClient) -> bool {
    let request = Request::Cluster(ClusterId::DEFAULT, ClusterRequest::Sweep).into();
    matches!(client.forward(1, SeenNumbers::new(), &request).await, ForwardOutcome::Answered(_))
}

/// The certificate that a listener shows to a new connection.
async fn certificate(realm: &Realm, server: &TestServer) -> Vec<u8> {
    let credentials = realm.authority().issue(&name("x"), &[], SystemTime::now()).unwrap();
    let authorities = credentials.authorities.clone();
    let stream = connect(server.address, "b", &authorities, Some(credentials)).await.unwrap();
    stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
}

#[tokio::test]
async fn a_new_certificate_is_used_by_new_connections_and_disturbs_no_old_one() {
    let realm = Realm::new();
    let (identity, _) = counted(&realm, "b", None, usize::MAX);
    let (a, b) = (realm.server("a").await, TestServer::start(identity, unavailable).await);
    let client = a.client(&b);
    let beating = a.heartbeats([b.peer()]);
    assert!(is_answered(&client).await);
    a.handler.reports.wait(1, |report| report.answer.is_ok()).await;
    let first = certificate(&realm, &b).await;
    assert_eq!(certificate(&realm, &b).await, first);
    b.identity.reload().unwrap();
    a.identity.reload().unwrap();
    assert_ne!(certificate(&realm, &b).await, first);
    let before = a.handler.answers_of("b");
    a.handler.reports.wait(before + 3, |report| report.answer.is_ok()).await;
    assert!(is_answered(&client).await);
    client.disconnect();
    assert!(is_answered(&client).await);
    assert_eq!(a.handler.reports.count(|report| report.answer.is_err()), 0);
    drop(beating);
}

#[tokio::test]
async fn a_certificate_is_renewed_in_time_by_itself() {
    let realm = Realm::new();
    let (identity, issued) = counted(&realm, "b", Some(Duration::ZERO), usize::MAX);
    let (a, b) = (realm.server("a").await, TestServer::start(identity, unavailable).await);
    assert_eq!(issued.load(Ordering::SeqCst), 1);
    let client = a.client(&b);
    for expected in 2..5 {
        client.disconnect();
        assert!(is_answered(&client).await && is_answered(&client).await);
        assert_eq!(issued.load(Ordering::SeqCst), expected, "once for each connection");
    }
}

#[tokio::test]
async fn a_certificate_that_cannot_be_renewed_stays_in_use() {
    let realm = Realm::new();
    let (identity, issued) = counted(&realm, "b", Some(Duration::ZERO), 1);
    let (a, b) = (realm.server("a").await, TestServer::start(identity, unavailable).await);
    for _ in 0..3 {
        assert!(is_answered(&a.client(&b)).await);
    }
    assert_eq!(issued.load(Ordering::SeqCst), 2, "there is a pause before the next try");
    assert!(matches!(b.identity.reload(), Err(CertificateError::Mismatch)));
}
