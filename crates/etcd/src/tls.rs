//! TLS of connections: trusted authorities, the certificate of the client, and HTTP/2 as the only protocol.
//!
//! Files are read again for every connection, so that a renewed certificate needs no restart. TLS 1.2 and 1.3; the
//! cryptography is ring's. Verification cannot be switched off.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

/// Maximum bytes of a file.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The protocol of gRPC, as TLS names it.
const HTTP2: &[u8] = b"h2";

/// Reason why certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// A file contains no such item.
    #[error("no {what} in {}\n  hint: a PEM file with -----BEGIN {label}----- is expected", path.display())]
    Empty {
        /// Description of the item.
        what: &'static str,
        /// The word in its first line.
        label: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// The system has no authorities.
    #[error(
        "the system has no certificate authorities\n  hint: install ca-certificates, or name a file with authorities"
    )]
    NoAuthorities,
    /// A certificate or a key cannot be used.
    #[error("unusable certificate for etcd: {0}")]
    Unusable(#[from] rustls::Error),
}

/// PEM files of the client's certificate, with its chain, and of its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// File of the certificate.
    pub certificate: PathBuf,
    /// File of the key.
    pub key: PathBuf,
}

/// Sources of certificates.
#[derive(Clone, Debug)]
pub(crate) struct TlsFiles {
    authorities: Option<PathBuf>,
    certificate: Option<ClientCertificate>,
}

impl TlsFiles {
    pub(crate) fn new(authorities: Option<PathBuf>, certificate: Option<ClientCertificate>) -> Self {
        Self { authorities, certificate }
    }

    pub(crate) fn has_certificate(&self) -> bool {
        self.certificate.is_some()
    }

    /// Reads the files. Blocks.
    pub(crate) fn read(&self) -> Result<Arc<ClientConfig>, TlsError> {
        let mut roots = RootCertStore::empty();
        match &self.authorities {
            Some(file) => {
                for certificate in certificates(file)? {
                    roots.add(certificate)?;
                }
            }
            None => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
                if roots.is_empty() {
                    return Err(TlsError::NoAuthorities);
                }
            }
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots);
        let mut config = match &self.certificate {
            Some(ClientCertificate { certificate, key }) => {
                builder.with_client_auth_cert(certificates(certificate)?, read_key(key)?)?
            }
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![HTTP2.to_vec()];
        Ok(Arc::new(config))
    }
}

/// Reads at least one certificate.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let pem = read_file(path)?;
    let found = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    let empty = || TlsError::Empty { what: "certificate", label: "CERTIFICATE", path: path.to_owned() };
    found.ok().filter(|found| !found.is_empty()).ok_or_else(empty)
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let pem = read_file(path)?;
    let empty = |_| TlsError::Empty { what: "key", label: "PRIVATE KEY", path: path.to_owned() };
    PrivateKeyDer::from_pem_slice(&pem).map_err(empty)
}

fn read_file(path: &Path) -> Result<Vec<u8>, TlsError> {
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes));
    read.map_err(|source| TlsError::Read { path: path.to_owned(), source })?;
    Ok(bytes)
}
