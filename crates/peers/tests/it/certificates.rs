//! Certificates that are rejected: nothing of their connections is carried out, and both sides learn why.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use forewarn_control::ClusterId;
use forewarn_control::request::{ClusterRequest, Request};
use forewarn_peers::{ForwardOutcome, Peer, PeerClient, PeerError, PeerIdentity, SeenNumbers};
use rcgen::ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::raw_client::{AnyAuthority, connect, say};
use crate::support::{Realm, TestServer, name, patient, unavailable};

const HELLO: &[u8] = b"GET /peer/v1/hello HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";

fn sweep() -> Arc<Request> {
    Arc::new(Request::Cluster(ClusterId::DEFAULT, ClusterRequest::Sweep))
}

/// Forwards a request, which fails in the handshake. Returns the reasons of both sides, if the listener has one.
async fn rejected(identity: &Arc<PeerIdentity>, peer: Peer, server: &TestServer) -> (String, Option<String>) {
    let client = PeerClient::new(peer, Arc::clone(identity), patient());
    let outcome = client.forward(1, SeenNumbers::new(), &sweep()).await;
    let ForwardOutcome::NotSent(PeerError::Handshake(reason)) = outcome else { panic!("{outcome:?}") };
    let noted = server.handler.rejections.wait(1, |_| true).await;
    assert_eq!(server.handler.requests.count(|_| true), 0);
    (reason, Some(noted.reason))
}

#[tokio::test]
async fn a_server_of_another_realm_is_rejected() {
    let (realm, other) = (Realm::new(), Realm::new());
    let b = realm.server("b").await;
    let (reason, _) = rejected(&other.identity("a"), b.peer(), &b).await;
    assert!(reason.contains("UnknownIssuer"), "{reason}");
    // It trusts the authority of the realm, but has no certificate of it.
    let trusting = PeerIdentity::new(name("a"), {
        let (authority, realm) = (other.authority(), realm.authority());
        move |now| {
            let mut credentials = authority.issue(&name("a"), &[], now)?;
            credentials.authorities = realm.issue(&name("a"), &[], now)?.authorities;
            Ok(credentials)
        }
    });
    let b = realm.server("b").await;
    let (reason, noted) = rejected(&trusting.unwrap(), b.peer(), &b).await;
    assert!(reason.contains("received fatal alert"), "{reason}");
    assert!(noted.unwrap().contains("UnknownIssuer"));
}

#[tokio::test]
async fn an_expired_certificate_is_rejected_on_both_sides() {
    let realm = Realm::new();
    let expired = || {
        let authority = realm.authority();
        let then = SystemTime::now() - Duration::from_hours(24 * 31);
        let source = move |_| {
            let mut credentials = authority.issue(&name("a"), &[], then)?;
            credentials.renew_at = None;
            Ok(credentials)
        };
        PeerIdentity::new(name("a"), source).unwrap()
    };
    let b = realm.server("b").await;
    let (reason, noted) = rejected(&expired(), b.peer(), &b).await;
    assert!(reason.contains("CertificateExpired"), "{reason}");
    assert!(noted.unwrap().contains("expired"));
    let a = TestServer::start(expired(), unavailable).await;
    let (reason, noted) = rejected(&realm.identity("b"), a.peer(), &a).await;
    assert!(reason.contains("expired"), "{reason}");
    assert!(noted.unwrap().contains("received fatal alert"));
}

#[tokio::test]
async fn a_server_with_another_name_is_rejected() {
    let realm = Realm::new();
    let b = realm.server("b").await;
    let peer = Peer { name: name("c"), ..b.peer() };
    let (reason, noted) = rejected(&realm.identity("a"), peer, &b).await;
    assert!(
        reason.contains("not valid for name") && reason.contains("c.server.forewarn.internal"),
        "{reason}"
    );
    assert!(noted.unwrap().contains("received fatal alert"));
    // A name that no certificate has.
    let client = PeerClient::new(Peer { name: name("C"), ..b.peer() }, realm.identity("a"), patient());
    let outcome = client.forward(1, SeenNumbers::new(), &sweep()).await;
    let ForwardOutcome::NotSent(PeerError::Handshake(reason)) = outcome else { panic!("{outcome:?}") };
    assert!(reason.starts_with("not a name for a server: C"), "{reason}");
}

#[tokio::test]
async fn a_certificate_for_servers_of_websites_is_no_client_certificate() {
    let operator = AnyAuthority::new();
    let credentials = |server: &str, purposes: &[_]| {
        operator.credentials(&[&format!("{server}.server.forewarn.internal")], purposes)
    };
    let both = credentials("b", &[ClientAuth, ServerAuth]);
    let b = PeerIdentity::new(name("b"), once(both)).unwrap();
    let b = TestServer::start(b, unavailable).await;
    let a = PeerIdentity::new(name("a"), once(credentials("a", &[ServerAuth]))).unwrap();
    let (reason, noted) = rejected(&a, b.peer(), &b).await;
    assert!(reason.contains("received fatal alert"), "{reason}");
    let noted = noted.unwrap();
    assert!(noted.contains("purpose") || noted.contains("usage"), "{noted}");
}

/// A source of the same credentials, which are taken once.
fn once(
    credentials: forewarn_peers::Credentials,
) -> impl Fn(SystemTime) -> Result<forewarn_peers::Credentials, forewarn_peers::CertificateError> {
    let credentials = std::sync::Mutex::new(Some(credentials));
    move |_| Ok(credentials.lock().unwrap().take().expect("they are taken once"))
}

#[tokio::test]
async fn a_certificate_of_another_kind_is_rejected() {
    let operator = AnyAuthority::new();
    let credentials = operator.credentials(&["b.server.forewarn.internal"], &[ClientAuth, ServerAuth]);
    let b = TestServer::start(PeerIdentity::new(name("b"), once(credentials)).unwrap(), unavailable).await;
    let authorities = [operator.certificate()];
    let kinds: [&[&str]; 4] = [
        &["a.host.forewarn.internal"],
        &["a.example"],
        &["*.server.forewarn.internal"],
        &["a.server.forewarn.internal", "c.server.forewarn.internal"],
    ];
    for (number, names) in kinds.iter().enumerate() {
        let credentials = operator.credentials(names, &[ClientAuth]);
        // In TLS 1.3 a client learns of the rejection when it reads.
        let mut stream = connect(b.address, "b", &authorities, Some(credentials)).await.unwrap();
        let problem = say(&mut stream, HELLO).await.unwrap_err();
        assert!(problem.to_string().contains("received fatal alert"), "{names:?}: {problem}");
        let noted = b.handler.rejections.wait(number + 1, |_| true).await;
        assert_eq!(noted.reason, "the certificate is not that of a server of the realm");
    }
    let mut stream = connect(b.address, "b", &authorities, None).await.unwrap();
    let problem = say(&mut stream, HELLO).await.unwrap_err();
    assert!(problem.to_string().contains("CertificateRequired"), "{problem}");
    let credentials = operator.credentials(&["a.server.forewarn.internal"], &[ClientAuth]);
    let mut stream = connect(b.address, "b", &authorities, Some(credentials)).await.unwrap();
    let answer = say(&mut stream, HELLO).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("{\"server\":\"b\"}"), "{answer}");
}

#[tokio::test]
async fn bytes_that_are_not_tls_are_rejected_and_others_are_served() {
    let realm = Realm::new();
    let (a, b) = (realm.server("a").await, realm.server("b").await);
    let garbage: [&[u8]; 4] =
        [b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", b"\0", &[22, 3, 1, 0, 5, 1, 2, 3, 4, 5], b""];
    for (number, bytes) in garbage.iter().enumerate() {
        let mut stream = TcpStream::connect(b.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        // The listener may reset the connection.
        stream.read_to_end(&mut answer).await.ok();
        let noted = b.handler.rejections.wait(number + 1, |_| true).await;
        assert!(!noted.reason.is_empty() && noted.from.ip().is_loopback());
    }
    let outcome = a.client(&b).forward(1, SeenNumbers::new(), &sweep()).await;
    assert!(matches!(outcome, ForwardOutcome::Answered(_)), "{outcome:?}");
}
