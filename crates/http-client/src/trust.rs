//! Trusted certificate authorities: those of the system, those in a file, both, or only those in a list.
//!
//! Nothing is read before the first encrypted connection: whoever only speaks in the clear pays nothing. What was read stays in
//! use; a file that could not be read is tried again. There is no way to do without.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, InvalidDnsNameError, ServerName};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio::task::JoinError;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use crate::error_chain;

/// Bytes of a file of authorities.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Whom others are believed to be.
#[derive(Debug)]
pub struct Trust {
    authorities: Authorities,
    config: OnceCell<Arc<ClientConfig>>,
}

/// Who vouches for others.
#[derive(Clone, Debug)]
struct Authorities {
    /// Those that the system knows.
    of_system: bool,
    /// Those in a file, as PEM.
    of_file: Option<PathBuf>,
    /// Those in a list.
    of_list: Vec<CertificateDer<'static>>,
}

/// The reason why there is no encrypted connection.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The host is not a name that a certificate can have.
    #[error(transparent)]
    Name(InvalidDnsNameError),
    /// The system has no authorities.
    #[error(
        "the system knows no authorities\n  hint: install ca-certificates, or name a file with authorities"
    )]
    NoAuthorities,
    /// A file with authorities cannot be read, or has none.
    #[error("{0}")]
    File(String),
    /// A certificate is not that of an authority.
    #[error(transparent)]
    NotAuthority(rustls::Error),
    /// TLS cannot be set up.
    #[error(transparent)]
    Setup(rustls::Error),
    /// Reading the authorities was interrupted.
    #[error(transparent)]
    Interrupted(JoinError),
    /// The other side is not believed, or does not speak TLS.
    #[error(transparent)]
    Handshake(std::io::Error),
}

impl Trust {
    /// Whoever the system believes.
    #[must_use]
    pub fn system() -> Arc<Self> {
        Self::of(Authorities { of_system: true, of_file: None, of_list: Vec::new() })
    }

    /// Whoever the authorities in a file of PEM vouch for, and nobody else.
    #[must_use]
    pub fn file(file: impl Into<PathBuf>) -> Arc<Self> {
        Self::of(Authorities { of_system: false, of_file: Some(file.into()), of_list: Vec::new() })
    }

    /// Whoever the system believes, and whoever the authorities in a file of PEM vouch for.
    #[must_use]
    pub fn system_and_file(file: impl Into<PathBuf>) -> Arc<Self> {
        Self::of(Authorities { of_system: true, of_file: Some(file.into()), of_list: Vec::new() })
    }

    /// Only the authorities in a list.
    #[must_use]
    pub fn list(certificates: Vec<CertificateDer<'static>>) -> Arc<Self> {
        Self::of(Authorities { of_system: false, of_file: None, of_list: certificates })
    }

    fn of(authorities: Authorities) -> Arc<Self> {
        Arc::new(Self { authorities, config: OnceCell::new() })
    }

    /// A connection that is encrypted, with somebody who is believed to be that host.
    ///
    /// # Errors
    /// Fails if there are no authorities, or the certificate of the server is not trusted.
    pub async fn secure(&self, stream: TcpStream, host: &str) -> Result<TlsStream<TcpStream>, TrustError> {
        let name = ServerName::try_from(host.to_owned()).map_err(TrustError::Name)?;
        let config = self.config.get_or_try_init(|| read(self.authorities.clone())).await?;
        let secured = TlsConnector::from(Arc::clone(config)).connect(name, stream).await;
        secured.map_err(TrustError::Handshake)
    }
}

/// Files are read where nobody waits for it.
async fn read(authorities: Authorities) -> Result<Arc<ClientConfig>, TrustError> {
    let read = tokio::task::spawn_blocking(move || config(authorities));
    read.await.map_err(TrustError::Interrupted)?
}

fn config(authorities: Authorities) -> Result<Arc<ClientConfig>, TrustError> {
    let mut roots = RootCertStore::empty();
    if authorities.of_system {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    let of_file = authorities.of_file.as_deref().map(certificates).transpose().map_err(TrustError::File)?;
    for certificate in of_file.unwrap_or_default().into_iter().chain(authorities.of_list) {
        roots.add(certificate).map_err(TrustError::NotAuthority)?;
    }
    // A file has at least one; an empty list means that nobody is believed.
    if authorities.of_system && roots.is_empty() {
        return Err(TrustError::NoAuthorities);
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(TrustError::Setup)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// At least one.
fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong =
        |problem: &dyn std::error::Error| format!("cannot read {}: {}", file.display(), error_chain(problem));
    let opened = std::fs::File::open(file).map_err(|problem| wrong(&problem))?;
    let mut pem = Vec::new();
    opened.take(FILE_BYTES_MAX).read_to_end(&mut pem).map_err(|problem| wrong(&problem))?;
    let found = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    let found = found.map_err(|problem| wrong(&problem))?;
    if found.is_empty() {
        return Err(format!(
            "no certificate in {}\n  hint: it has to be PEM, with -----BEGIN CERTIFICATE-----",
            file.display()
        ));
    }
    Ok(found)
}
