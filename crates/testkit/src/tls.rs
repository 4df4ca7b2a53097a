//! Certificate authorities and clients of TLS.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use serde_json::Value;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::DEADLINE;

const DAY: Duration = Duration::from_hours(24);

pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key, as PEM.
pub struct Leaf {
    pub certificate: String,
    pub key: String,
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Self { issuer }
    }

    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    pub fn leaf(&self, names: &[&str]) -> Leaf {
        self.signed(names, SystemTime::now() + 90 * DAY)
    }

    pub fn expired_leaf(&self, names: &[&str]) -> Leaf {
        self.signed(names, SystemTime::now() - DAY)
    }

    pub fn leaf_for(&self, names: &[&str], life: Duration) -> Leaf {
        self.signed(names, SystemTime::now() + life)
    }

    fn signed(&self, names: &[&str], until: SystemTime) -> Leaf {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.not_before = (SystemTime::now() - 10 * DAY).into();
        params.not_after = until.into();
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Leaf { certificate: certificate.pem(), key: key.serialize_pem() }
    }
}

/// A client that speaks TLS.
pub struct TlsClient {
    at: SocketAddr,
    config: Arc<ClientConfig>,
    pub bearer: Option<String>,
}

impl TlsClient {
    /// Of the server there, with an authority to believe.
    pub fn new(at: SocketAddr, authority: &str) -> Self {
        let config = trusting(authority);
        Self { at, config, bearer: None }
    }

    pub fn with(self, bearer: &str) -> Self {
        Self { bearer: Some(bearer.to_owned()), ..self }
    }

    /// Status and body of an answer. The name is the one that the certificate has to have.
    pub fn ask_as(&self, name: &str, line: &str, fields: &str, body: &str) -> (u16, String) {
        let mut stream = self.stream(name);
        let bearer = self.bearer.as_ref().map(|text| format!("Authorization: Bearer {text}\r\n"));
        let request = format!(
            "{line} HTTP/1.1\r\nHost: {name}:{}\r\nConnection: close\r\n{}{fields}Content-Length: {}\r\n\r\n{body}",
            self.at.port(),
            bearer.unwrap_or_default(),
            body.len(),
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        // The other side may close without a word of TLS.
        drop(stream.read_to_end(&mut answer));
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    fn stream(&self, name: &str) -> StreamOwned<ClientConnection, TcpStream> {
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let session = ClientConnection::new(Arc::clone(&self.config), name).unwrap();
        let socket = TcpStream::connect(self.at).unwrap();
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
        StreamOwned::new(session, socket)
    }

    /// A connection on which those bytes were sent.
    pub fn connect(&self, bytes: &str) -> StreamOwned<ClientConnection, TcpStream> {
        let mut stream = self.stream("localhost");
        stream.write_all(bytes.as_bytes()).unwrap();
        stream.flush().unwrap();
        stream
    }

    pub fn get(&self, path: &str) -> (u16, Value) {
        self.json(&format!("GET {path}"), "", "")
    }

    pub fn put(&self, path: &str, body: &Value) -> (u16, Value) {
        self.json(&format!("PUT {path}"), "Content-Type: application/json\r\n", &body.to_string())
    }

    pub fn post_form(&self, path: &str, form: &str) -> (u16, Value) {
        self.json(&format!("POST {path}"), "Content-Type: application/x-www-form-urlencoded\r\n", form)
    }

    fn json(&self, line: &str, fields: &str, body: &str) -> (u16, Value) {
        let (status, body) = self.ask_as("localhost", line, fields, body);
        (status, serde_json::from_str(&body).unwrap_or_default())
    }
}

/// The configuration of a client that believes these authorities, as PEM, and no others.
fn trusting(authorities: &str) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authorities.as_bytes()) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap();
    Arc::new(config.with_root_certificates(roots).with_no_client_auth())
}
