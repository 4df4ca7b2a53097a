//! Authorities: the secret of a realm, and files of an operator.

use std::fs;
use std::time::SystemTime;

use forewarn_control::ClusterId;
use forewarn_control::request::{ClusterRequest, Request};
use forewarn_peers::{
    CertificateError, CredentialFiles, ForwardOutcome, PeerIdentity, RealmAuthority, SeenNumbers,
};
use rcgen::ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};

use crate::raw_client::AnyAuthority;
use crate::support::{Realm, TestServer, name, unavailable};

#[test]
fn a_secret_has_a_key_and_its_certificate() {
    let secret = RealmAuthority::create(SystemTime::now()).unwrap();
    let shown = format!("{:?}", RealmAuthority::from_secret(&secret).unwrap());
    assert_eq!(shown, "RealmAuthority(secret)");
    let (key, certificate) = secret.split_at(secret.find("-----BEGIN CERTIFICATE").unwrap());
    let other = RealmAuthority::create(SystemTime::now()).unwrap();
    let other_certificate = &other[other.find("-----BEGIN CERTIFICATE").unwrap()..];
    let problem = |text: &str| RealmAuthority::from_secret(text).unwrap_err().to_string();
    assert!(problem(key).starts_with("no certificate in the secret of the realm"));
    assert!(problem(certificate).starts_with("no key in the secret of the realm"));
    assert!(problem(&format!("{key}{other_certificate}")).starts_with("the key does not match"));
    assert!(problem("").starts_with("no certificate"));
}

#[test]
fn a_certificate_is_that_of_its_server() {
    let realm = Realm::new();
    let error = PeerIdentity::of_authority(realm.authority(), name("A.b"), Vec::new()).unwrap_err();
    assert!(matches!(error, CertificateError::Name(_)), "{error}");
    let authority = realm.authority();
    let error = PeerIdentity::new(name("a"), move |now| authority.issue(&name("b"), &[], now)).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("the certificate is not that of server a: b\n  hint: "), "{text}");
    let error = PeerIdentity::of_authority(realm.authority(), name("a"), vec!["ü".to_owned()]).unwrap_err();
    assert!(matches!(error, CertificateError::Issue(_)), "{error}");
}

#[tokio::test]
async fn an_operator_may_give_files() {
    let operator = AnyAuthority::new();
    let place = tempfile::tempdir().unwrap();
    let path = |file: &str| place.path().join(file);
    fs::write(path("ca.pem"), operator.pem()).unwrap();
    let files = |server: &str| {
        let dns = format!("{server}.server.forewarn.internal");
        let (certificate, key) = operator.pair(&[&dns], &[ClientAuth, ServerAuth]);
        fs::write(path(&format!("{server}.pem")), certificate).unwrap();
        fs::write(path(&format!("{server}.key")), key.serialize_pem()).unwrap();
        CredentialFiles {
            authorities: path("ca.pem"),
            certificate: path(&format!("{server}.pem")),
            key: path(&format!("{server}.key")),
        }
    };
    let a = TestServer::start(PeerIdentity::of_files(name("a"), files("a")).unwrap(), unavailable).await;
    let b = TestServer::start(PeerIdentity::of_files(name("b"), files("b")).unwrap(), unavailable).await;
    let request = Request::Cluster(ClusterId::DEFAULT, ClusterRequest::Sweep).into();
    assert!(matches!(
        a.client(&b).forward(1, SeenNumbers::new(), &request).await,
        ForwardOutcome::Answered(_)
    ));
    // Files that no longer fit leave the old ones in use.
    fs::write(path("b.key"), "no key").unwrap();
    let error = b.identity.reload().unwrap_err();
    assert!(error.to_string().starts_with("no key in ") && error.to_string().contains("b.key"), "{error}");
    assert!(matches!(
        a.client(&b).forward(1, SeenNumbers::new(), &request).await,
        ForwardOutcome::Answered(_)
    ));
    let swapped = CredentialFiles { key: path("a.key"), ..files("b") };
    let error = PeerIdentity::of_files(name("b"), swapped).unwrap_err();
    assert!(matches!(error, CertificateError::Unusable(_)), "{error}");
    let missing = CredentialFiles { authorities: path("missing.pem"), ..files("b") };
    let error = PeerIdentity::of_files(name("b"), missing).unwrap_err();
    assert!(error.to_string().starts_with("cannot read the authorities: "), "{error}");
}
