//! TLS for whoever listens: certificates from files, or from an authority of the server's own; read again when asked.
//!
//! ```text
//!   Source (files, or self-signed) ──open──▶ Tls ──current()──▶ what the next connection is shown
//!                                             ▲
//!                                   reload ───┘   connections that are open keep what they have
//! ```
//!
//! What is wrong with a certificate is told when it is read, and what was in use stays in use. TLS 1.2 and 1.3, nothing
//! older; the cryptography is ring's. Certificates of clients are not asked for: operators have tokens.

mod authority;
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
pub(crate) use handshake::shake_hands;
pub use validity::Validity;

/// Bytes of a file of certificates or of a key.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Certificates that are left so long are worth a warning.
pub const SOON: Duration = Duration::from_hours(24 * 14);

/// Where certificates come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// From files of the operator's.
    Files {
        /// The certificate and whatever leads from it to an authority, as PEM.
        certificate: PathBuf,
        /// Its key, as PEM.
        key: PathBuf,
    },
    /// From an authority that is made on first use.
    SelfSigned {
        /// Where the authority is kept.
        directory: PathBuf,
        /// The names by which the server is called, besides its own and those of loopback.
        names: Vec<String>,
        /// The address that it listens on, if it is one.
        address: Option<IpAddr>,
    },
}

/// What is wrong with certificates.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {what}: {}", path.display())]
    Read {
        /// What it is to be.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file has nothing of the kind in it.
    #[error("no {what} in {}\n  hint: it has to be PEM, with -----BEGIN {label}-----", path.display())]
    Empty {
        /// What is looked for.
        what: &'static str,
        /// How it begins.
        label: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// Key and certificate are not a pair.
    #[error("the key does not fit the certificate: {}\n  hint: the key has to be the one that {} was made with", key.display(), certificate.display())]
    Mismatch {
        /// The certificate.
        certificate: PathBuf,
        /// The key.
        key: PathBuf,
    },
    /// They cannot be used.
    #[error("cannot be used for TLS: {}", path.display())]
    Unusable {
        /// The certificate.
        path: PathBuf,
        /// Why.
        #[source]
        source: rustls::Error,
    },
    /// An authority cannot be made or kept.
    #[error("cannot make or keep an authority: {}", path.display())]
    Authority {
        /// Its file.
        path: PathBuf,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// The certificates in use.
#[derive(Debug)]
pub struct Tls {
    source: ArcSwap<Source>,
    shown: ArcSwap<Shown>,
}

/// Certificates that have been read, and that nobody is shown yet.
pub(crate) struct Read<'a> {
    tls: &'a Tls,
    source: Source,
    shown: Shown,
}

/// What a connection is shown.
#[derive(Debug)]
struct Shown {
    config: Arc<rustls::ServerConfig>,
    /// From when on others are to be had from the same source.
    renew_at: Option<SystemTime>,
    /// The authority of the server's own, as PEM.
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
    /// When they cannot be read, do not belong together, or cannot be used.
    pub fn open(source: Source) -> Result<Arc<Self>, TlsError> {
        let shown = show(&source)?;
        Ok(Arc::new(Self { source: ArcSwap::from_pointee(source), shown: ArcSwap::from_pointee(shown) }))
    }

    /// Reads certificates again, from the same source or another one: new connections are shown those.
    ///
    /// # Errors
    /// As [`Tls::open`]; then everything stays as it was.
    pub fn reload(&self, source: Source) -> Result<(), TlsError> {
        self.read(source).map(Read::show)
    }

    /// Reads certificates, and shows nobody yet.
    ///
    /// # Errors
    /// As [`Tls::open`].
    pub(crate) fn read(&self, source: Source) -> Result<Read<'_>, TlsError> {
        let shown = show(&source)?;
        Ok(Read { tls: self, source, shown })
    }

    /// Certificate of the authority that clients must trust, as PEM, if the server made it.
    #[must_use]
    pub fn authority(&self) -> Option<String> {
        self.shown.load().authority.clone()
    }

    /// What the next connection is shown.
    pub(crate) fn current(&self) -> Arc<rustls::ServerConfig> {
        let shown = self.shown.load();
        if shown.renew_at.is_some_and(|renew_at| SystemTime::now() >= renew_at) {
            match show(&self.source.load()) {
                Ok(fresh) => self.shown.store(Arc::new(fresh)),
                Err(error) => tracing::warn!(%error, "the certificate could not be renewed"),
            }
            return Arc::clone(&self.shown.load().config);
        }
        Arc::clone(&shown.config)
    }
}

impl Read<'_> {
    /// From now on, new connections are shown these.
    pub(crate) fn show(self) {
        self.tls.source.store(Arc::new(self.source));
        self.tls.shown.store(Arc::new(self.shown));
    }
}

/// From when to when the certificate of a source is good; nothing, if the server makes it as needed.
///
/// # Errors
/// When it cannot be read, or could not be used.
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

/// What the settings of TLS allow on both sides.
#[must_use]
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn show(source: &Source) -> Result<Shown, TlsError> {
    match source {
        Source::Files { certificate, key } => {
            let pair = Pair::read(certificate, key)?;
            warn_of_time(certificate, &pair);
            Ok(Shown { config: config(pair, certificate, key)?, renew_at: None, authority: None })
        }
        Source::SelfSigned { directory, names, address } => {
            let (pair, renew_at) = authority::issue(directory, names, *address)?;
            let file = directory.join(AUTHORITY_FILE);
            let authority = Some(String::from_utf8_lossy(&read("the authority", &file)?).into_owned());
            Ok(Shown { config: config(pair, &file, &file)?, renew_at: Some(renew_at), authority })
        }
    }
}

/// An expired certificate is shown all the same: a server that does not start helps nobody.
fn warn_of_time(file: &Path, pair: &Pair) {
    let Some(validity) = pair.chain.first().and_then(|leaf| Validity::of(leaf)) else { return };
    let (file, now) = (file.display(), SystemTime::now());
    if validity.until <= now {
        tracing::warn!(%file, "the certificate has expired");
    } else if validity.until <= now + SOON {
        tracing::warn!(%file, "the certificate expires soon");
    } else if validity.from > now {
        tracing::warn!(%file, "the certificate is not valid yet");
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
/// When it cannot be read, or has none.
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
