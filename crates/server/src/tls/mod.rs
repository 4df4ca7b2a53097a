//! TLS of listeners: certificates from files, or from the server's own authority; reloaded on request.
//!
//! ```text
//!   Source (files, or self-signed) ──open──▶ Tls ──current()──▶ configuration of the next connection
//!                                             ▲
//!                                   reload ───┘   open connections keep theirs
//! ```
//!
//! A certificate is checked when it is read; after an error the old one stays in use. TLS 1.2 and 1.3, nothing
//! older; the cryptography is ring's. Client certificates are not requested: operators have tokens.

mod authority;
mod authority_files;
mod handshake;
mod validity;

use std::fs;
use std::io::Read as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};

pub use authority::AUTHORITY_FILE;
pub use authority::write_whole;
pub(crate) use authority_files::AuthorityFiles;
pub(crate) use handshake::shake_hands;
pub use validity::Validity;

/// Maximum size of a certificate or key file.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Remaining validity that is worth a warning.
pub const SOON: Duration = Duration::from_hours(24 * 14);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Files of the operator.
    Files {
        /// PEM file of the certificate and its chain.
        certificate: PathBuf,
        /// PEM file of the key.
        key: PathBuf,
    },
    /// An authority that is created on first use.
    SelfSigned {
        /// Directory of the authority.
        directory: PathBuf,
        /// Names of the server besides its host name and those of loopback.
        names: Vec<String>,
        /// Address of the listener, if it has one.
        address: Option<IpAddr>,
    },
}

/// Error of a certificate.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {what}: {}", path.display())]
    Read {
        /// Description of the file.
        what: &'static str,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// The file contains no such item.
    #[error("no {what} in {}\n  hint: a PEM file with -----BEGIN {label}----- is expected", path.display())]
    Empty {
        /// Description of the item.
        what: &'static str,
        label: &'static str,
        path: PathBuf,
    },
    /// Key and certificate are not a pair.
    #[error("the key does not match the certificate: {}\n  hint: use the key of {}", key.display(), certificate.display())]
    Mismatch { certificate: PathBuf, key: PathBuf },
    /// The certificate cannot be used.
    #[error("unusable TLS certificate: {}", path.display())]
    Unusable {
        path: PathBuf,
        #[source]
        source: rustls::Error,
    },
    /// The authority cannot be created.
    #[error("cannot create the certificate authority: {}", path.display())]
    Authority {
        path: PathBuf,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// The certificates in use.
#[derive(Debug)]
pub struct Tls {
    source: ArcSwap<Source>,
    loaded: ArcSwap<LoadedCertificate>,
}

/// Certificates that have been read and are not in use yet.
pub(crate) struct PendingCertificate<'a> {
    tls: &'a Tls,
    source: Source,
    loaded: LoadedCertificate,
}

/// The certificate and configuration of new connections.
#[derive(Debug)]
struct LoadedCertificate {
    config: Arc<rustls::ServerConfig>,
    /// Time to renew it. None if it comes from files.
    renew_at: Option<SystemTime>,
    /// The server's own authority, as PEM.
    authority: Option<String>,
}

/// A certificate with its chain, and its key.
pub(crate) struct Pair {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
}

impl Tls {
    /// Reads certificates.
    ///
    /// # Errors
    /// Returns an error if they cannot be read, do not match, or cannot be used.
    pub fn open(source: Source) -> Result<Arc<Self>, TlsError> {
        let loaded = load(&source)?;
        Ok(Arc::new(Self { source: ArcSwap::from_pointee(source), loaded: ArcSwap::from_pointee(loaded) }))
    }

    /// Reads certificates again, from the same source or another one, for new connections.
    ///
    /// # Errors
    /// As [`Tls::open`]; then the old ones stay in use.
    pub fn reload(&self, source: Source) -> Result<(), TlsError> {
        self.read(source).map(PendingCertificate::use_now)
    }

    /// Reads certificates without using them yet.
    ///
    /// # Errors
    /// As [`Tls::open`].
    pub(crate) fn read(&self, source: Source) -> Result<PendingCertificate<'_>, TlsError> {
        let loaded = load(&source)?;
        Ok(PendingCertificate { tls: self, source, loaded })
    }

    /// Certificate of the authority that clients must trust, as PEM, if the server made it.
    #[must_use]
    pub fn authority(&self) -> Option<String> {
        self.loaded.load().authority.clone()
    }

    /// TLS configuration of the next connection.
    pub(crate) fn current(&self) -> Arc<rustls::ServerConfig> {
        let loaded = self.loaded.load();
        if loaded.renew_at.is_some_and(|renew_at| SystemTime::now() >= renew_at) {
            match load(&self.source.load()) {
                Ok(fresh) => self.loaded.store(Arc::new(fresh)),
                Err(error) => tracing::warn!(%error, "cannot renew the TLS certificate"),
            }
            return Arc::clone(&self.loaded.load().config);
        }
        Arc::clone(&loaded.config)
    }
}

impl PendingCertificate<'_> {
    /// Uses these for new connections.
    pub(crate) fn use_now(self) {
        self.tls.source.store(Arc::new(self.source));
        self.tls.loaded.store(Arc::new(self.loaded));
    }
}

/// Validity of the certificate of a source. None if the server issues it.
///
/// # Errors
/// Returns an error if it cannot be read or used.
pub fn examine(source: &Source) -> Result<Option<Validity>, TlsError> {
    match source {
        Source::SelfSigned { .. } => Ok(None),
        Source::Files { certificate, key } => {
            let pair = Pair::read(certificate, key)?;
            let validity = pair.chain.first().and_then(|leaf| Validity::of(leaf));
            config(pair, certificate, key)?;
            Ok(validity)
        }
    }
}

/// The cryptography of TLS, for servers and clients.
#[must_use]
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn load(source: &Source) -> Result<LoadedCertificate, TlsError> {
    match source {
        Source::Files { certificate, key } => {
            let pair = Pair::read(certificate, key)?;
            warn_of_expiry(certificate, &pair);
            Ok(LoadedCertificate { config: config(pair, certificate, key)?, renew_at: None, authority: None })
        }
        Source::SelfSigned { directory, names, address } => {
            let (pair, renew_at) = authority::issue(directory, names, *address)?;
            let file = directory.join(AUTHORITY_FILE);
            let authority = Some(String::from_utf8_lossy(&read("the authority", &file)?).into_owned());
            Ok(LoadedCertificate { config: config(pair, &file, &file)?, renew_at: Some(renew_at), authority })
        }
    }
}

/// Warns of an expired certificate, which is used all the same.
fn warn_of_expiry(file: &Path, pair: &Pair) {
    let Some(validity) = pair.chain.first().and_then(|leaf| Validity::of(leaf)) else { return };
    let (file, now) = (file.display(), SystemTime::now());
    if validity.until <= now {
        tracing::warn!(%file, "TLS certificate has expired");
    } else if validity.until <= now + SOON {
        tracing::warn!(%file, "TLS certificate expires soon");
    } else if validity.from > now {
        tracing::warn!(%file, "TLS certificate is not valid yet");
    }
}

fn config(pair: Pair, certificate: &Path, key: &Path) -> Result<Arc<rustls::ServerConfig>, TlsError> {
    let unusable = |source| {
        if matches!(source, rustls::Error::InconsistentKeys(_)) {
            return TlsError::Mismatch { certificate: certificate.to_owned(), key: key.to_owned() };
        }
        TlsError::Unusable { path: certificate.to_owned(), source }
    };
    let builder = rustls::ServerConfig::builder_with_provider(provider());
    let builder = builder.with_safe_default_protocol_versions().map_err(unusable)?;
    let mut config =
        builder.with_no_client_auth().with_single_cert(pair.chain, pair.key).map_err(unusable)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

impl Pair {
    fn read(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let chain = certificates(certificate)?;
        let text = read("the key", key)?;
        let key = PrivateKeyDer::from_pem_slice(&text).map_err(|_| TlsError::Empty {
            what: "key",
            label: "PRIVATE KEY",
            path: key.to_owned(),
        })?;
        Ok(Self { chain, key })
    }
}

/// The certificates in a file, as PEM.
///
/// # Errors
/// Returns an error if it cannot be read, or has none.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = read("the certificate", path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let empty = || TlsError::Empty { what: "certificate", label: "CERTIFICATE", path: path.to_owned() };
    found.ok().filter(|found| !found.is_empty()).ok_or_else(empty)
}

fn read(what: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    let mut bytes = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes));
    read.map_err(|source| TlsError::Read { what, path: path.to_owned(), source })?;
    Ok(bytes)
}
