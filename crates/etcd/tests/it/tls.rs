//! TLS with certificates of members and of clients.

use forewarn_etcd::{
    ClientCertificate, EtcdClient, EtcdError, EtcdSettings, Obstacle, PutOperation, SettingsError,
};
use forewarn_testkit::TestDir;
use forewarn_testkit::etcd::EtcdCluster;

use crate::support::{client, put, settings};

fn secure_settings(cluster: &EtcdCluster) -> EtcdSettings {
    let files = cluster.certificates();
    let mut settings = settings(cluster);
    settings.authorities = Some(files.authority.clone());
    settings.certificate = Some(ClientCertificate {
        certificate: files.client_certificate.clone(),
        key: files.client_key.clone(),
    });
    settings
}

async fn obstacle(settings: EtcdSettings) -> EtcdError {
    let client = client(settings);
    let error = client.put(&PutOperation::new("k", "v")).await.unwrap_err();
    assert!(matches!(error, EtcdError::NotSent { obstacle: Obstacle::Unreachable, .. }), "{error}");
    error
}

#[tokio::test]
async fn a_client_with_a_certificate_is_served_and_one_without_is_not() {
    let Some(cluster) = EtcdCluster::start_with_tls(1) else { return };
    put(&client(secure_settings(&cluster)), "k", "v").await;
    let mut without = secure_settings(&cluster);
    without.certificate = None;
    let error = obstacle(without).await;
    assert!(error.to_string().contains("hint: etcd may demand a client certificate"), "{error}");
}

#[tokio::test]
async fn a_member_whose_authority_is_not_trusted_gets_no_request() {
    let Some(cluster) = EtcdCluster::start_with_tls(1) else { return };
    let directory = TestDir::new();
    let other = forewarn_testkit::tls::Authority::new("another authority");
    let mut settings = secure_settings(&cluster);
    settings.authorities = Some(directory.write("other.pem", &other.pem()).into());
    let error = obstacle(settings).await;
    assert!(error.to_string().contains("UnknownIssuer"), "{error}");
}

#[test]
fn files_that_cannot_be_used_are_errors_of_the_settings() {
    let directory = TestDir::new();
    let url = forewarn_etcd::Url::parse("https://127.0.0.1:1").unwrap();
    let with = |file: &str| {
        let mut settings = EtcdSettings::new(vec![url.clone()]);
        settings.authorities = Some(file.into());
        match EtcdClient::new(settings) {
            Err(SettingsError::Tls(error)) => error.to_string(),
            Ok(_) | Err(_) => panic!("{file}"),
        }
    };
    assert!(with(&directory.path("missing.pem")).starts_with("cannot read "));
    assert!(with(&directory.write("empty.pem", "")).starts_with("no certificate in "));
}
