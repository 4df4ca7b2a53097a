//! Trusted certificate authorities: those of the system, of a file, of both, or of a list.
//!
//! They are loaded for the first TLS connection, so clients without TLS pay nothing. Loaded authorities stay in use; a
//! file that could not be read is tried again. Verification cannot be switched off.

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

/// Maximum bytes of a file of authorities.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Trusted authorities of TLS connections.
#[derive(Debug)]
pub struct Trust {
    authorities: Authorities,
    config: OnceCell<Arc<ClientConfig>>,
}

/// Sources of authorities.
#[derive(Clone, Debug)]
struct Authorities {
    /// True to use the authorities of the system.
    of_system: bool,
    /// PEM file with authorities.
    of_file: Option<PathBuf>,
    /// Authorities in memory.
    of_list: Vec<CertificateDer<'static>>,
}

/// Reason why there is no TLS connection.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The host is not a valid name for a certificate.
    #[error(transparent)]
    Name(InvalidDnsNameError),
    /// The system has no authorities.
    #[error(
        "the system has no certificate authorities\n  hint: install ca-certificates, or name a file with authorities"
    )]
    NoAuthorities,
    /// The file of authorities cannot be read, or has none.
    #[error("{0}")]
    File(String),
    /// A certificate is not one of an authority.
    #[error(transparent)]
    NotAuthority(rustls::Error),
    /// TLS cannot be configured.
    #[error(transparent)]
    Setup(rustls::Error),
    /// Loading the authorities was interrupted.
    #[error(transparent)]
    Interrupted(JoinError),
    /// The server is not trusted, or does not support TLS.
    #[error(transparent)]
    Handshake(std::io::Error),
}

impl Trust {
    /// Trusts the authorities of the system.
    #[must_use]
    pub fn system() -> Arc<Self> {
        Self::of(Authorities { of_system: true, of_file: None, of_list: Vec::new() })
    }

    /// Trusts only the authorities in a PEM file.
    #[must_use]
    pub fn file(file: impl Into<PathBuf>) -> Arc<Self> {
        Self::of(Authorities { of_system: false, of_file: Some(file.into()), of_list: Vec::new() })
    }

    /// Trusts the authorities of the system and those in a PEM file.
    #[must_use]
    pub fn system_and_file(file: impl Into<PathBuf>) -> Arc<Self> {
        Self::of(Authorities { of_system: true, of_file: Some(file.into()), of_list: Vec::new() })
    }

    /// Trusts only the authorities in a list.
    #[must_use]
    pub fn list(certificates: Vec<CertificateDer<'static>>) -> Arc<Self> {
        Self::of(Authorities { of_system: false, of_file: None, of_list: certificates })
    }

    fn of(authorities: Authorities) -> Arc<Self> {
        Arc::new(Self { authorities, config: OnceCell::new() })
    }

    /// Performs a TLS handshake with a host, and verifies its certificate.
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

/// Reads files on a thread for blocking work.
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
    // A file has at least one; an empty list trusts no server.
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

/// Reads at least one certificate.
fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong =
        |error: &dyn std::error::Error| format!("cannot read {}: {}", file.display(), error_chain(error));
    let opened = std::fs::File::open(file).map_err(|error| wrong(&error))?;
    let mut pem = Vec::new();
    opened.take(FILE_BYTES_MAX).read_to_end(&mut pem).map_err(|error| wrong(&error))?;
    let found = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    let found = found.map_err(|error| wrong(&error))?;
    if found.is_empty() {
        return Err(format!(
            "no certificate in {}\n  hint: it has to be PEM, with -----BEGIN CERTIFICATE-----",
            file.display()
        ));
    }
    Ok(found)
}
