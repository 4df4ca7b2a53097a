//! Credentials of a server: its certificate with its key, and the authorities that it trusts.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use forewarn_types::Name;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls;

use crate::certified_name::BadServerName;

/// Maximum bytes of a file.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Error of a certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("cannot read {what}: {}", path.display())]
    Read {
        /// Description of the file.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The text contains no such item.
    #[error("no {what} in {place}\n  hint: PEM with -----BEGIN {label}----- is expected")]
    Empty {
        /// Description of the item.
        what: &'static str,
        /// Label of the item.
        label: &'static str,
        /// The text.
        place: String,
    },
    /// A server cannot have that name.
    #[error(transparent)]
    Name(#[from] BadServerName),
    /// The certificate is not that of this server.
    #[error(
        "the certificate is not that of server {expected}: {}\n  hint: it needs the DNS name {expected}.server.forewarn.internal, and no other server's",
        found.as_ref().map_or("it is not that of a server", Name::as_str)
    )]
    OtherServer {
        /// Name of this server.
        expected: Name,
        /// The server of the certificate, if it is that of a server.
        found: Option<Name>,
    },
    /// The key of the authority is not that of its certificate.
    #[error("the key does not match the certificate in the secret of the realm")]
    Mismatch,
    /// The certificate cannot be made.
    #[error("cannot issue a certificate")]
    Issue(#[source] rcgen::Error),
    /// The certificate, its key or the authorities cannot be used.
    #[error("unusable certificate")]
    Unusable(#[source] rustls::Error),
    /// The authorities cannot be used.
    #[error("unusable certificate authority")]
    Authority(#[source] rustls::server::VerifierBuilderError),
}

/// The certificate of a server with its key, and the authorities that it trusts.
#[derive(Debug)]
pub struct Credentials {
    /// Authorities whose certificates are accepted.
    pub authorities: Vec<CertificateDer<'static>>,
    /// The certificate of the server, then those of intermediate authorities.
    pub chain: Vec<CertificateDer<'static>>,
    /// Key of the certificate.
    pub key: PrivateKeyDer<'static>,
    /// Time to replace them. `None` if they are replaced on request only.
    pub renew_at: Option<SystemTime>,
}

/// PEM files of the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialFiles {
    /// Authorities of all servers of the realm.
    pub authorities: PathBuf,
    /// Certificate of this server and its chain.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

impl CredentialFiles {
    /// Reads the files.
    ///
    /// # Errors
    /// Fails if a file cannot be read, or lacks what it should contain.
    pub fn read(&self) -> Result<Credentials, CertificateError> {
        let key = read("the key", &self.key)?;
        Ok(Credentials {
            authorities: certificates(
                &read("the authorities", &self.authorities)?,
                &shown(&self.authorities),
            )?,
            chain: certificates(&read("the certificate", &self.certificate)?, &shown(&self.certificate))?,
            key: private_key(&key, &shown(&self.key))?,
            renew_at: None,
        })
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn read(what: &'static str, path: &Path) -> Result<Vec<u8>, CertificateError> {
    let mut bytes = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes));
    read.map_err(|source| CertificateError::Read { what, path: path.to_owned(), source })?;
    Ok(bytes)
}

/// The certificates in a text: at least one.
pub(crate) fn certificates(
    text: &[u8],
    place: &str,
) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let empty =
        || CertificateError::Empty { what: "certificate", label: "CERTIFICATE", place: place.to_owned() };
    found.ok().filter(|found| !found.is_empty()).ok_or_else(empty)
}

/// The key in a text.
pub(crate) fn private_key(text: &[u8], place: &str) -> Result<PrivateKeyDer<'static>, CertificateError> {
    let empty = |_| CertificateError::Empty { what: "key", label: "PRIVATE KEY", place: place.to_owned() };
    PrivateKeyDer::from_pem_slice(text).map_err(empty)
}
