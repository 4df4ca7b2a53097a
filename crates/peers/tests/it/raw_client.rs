//! A client that sends exact bytes, with any certificate or none.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use forewarn_peers::Credentials;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::support::DEADLINE;

const DAY: Duration = Duration::from_hours(24);

/// An authority that issues any certificate.
pub(crate) struct AnyAuthority(CertifiedIssuer<'static, KeyPair>);

impl AnyAuthority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "operator");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn certificate(&self) -> CertificateDer<'static> {
        self.0.der().clone()
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate with names and purposes; PEM of certificate and key.
    pub(crate) fn pair(&self, names: &[&str], purposes: &[ExtendedKeyUsagePurpose]) -> (String, KeyPair) {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.extended_key_usages = purposes.to_vec();
        params.not_before = (SystemTime::now() - DAY).into();
        params.not_after = (SystemTime::now() + DAY).into();
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.0).unwrap().pem(), key)
    }

    pub(crate) fn credentials(&self, names: &[&str], purposes: &[ExtendedKeyUsagePurpose]) -> Credentials {
        use rustls_pki_types::pem::PemObject as _;
        let (certificate, key) = self.pair(names, purposes);
        Credentials {
            authorities: vec![self.certificate()],
            chain: vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
            key: PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
            renew_at: None,
        }
    }
}

/// Connects with credentials, or without a certificate, to the server of a name.
pub(crate) async fn connect(
    address: SocketAddr,
    server: &str,
    authorities: &[CertificateDer<'static>],
    credentials: Option<Credentials>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    authorities.iter().for_each(|authority| roots.add(authority.clone()).unwrap());
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match credentials {
        Some(Credentials { chain, key, .. }) => config.with_client_auth_cert(chain, key).unwrap(),
        None => config.with_no_client_auth(),
    };
    let name = ServerName::try_from(format!("{server}.server.forewarn.internal")).unwrap();
    let stream = TcpStream::connect(address).await?;
    timeout(DEADLINE, TlsConnector::from(Arc::new(config)).connect(name, stream)).await.expect("in time")
}

/// Sends bytes, and reads until the other side closes the connection.
pub(crate) async fn say(stream: &mut TlsStream<TcpStream>, bytes: &[u8]) -> std::io::Result<String> {
    stream.write_all(bytes).await?;
    stream.flush().await?;
    let mut answer = Vec::new();
    let reading = stream.read_to_end(&mut answer);
    timeout(DEADLINE, reading).await.expect("in time")?;
    Ok(String::from_utf8(answer).unwrap())
}
