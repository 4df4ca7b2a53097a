//! Whom others are believed to be: the authorities of the system, those in a file, or both, and nobody else.
//!
//! Nothing is read before the first encrypted connection: whoever only speaks in the clear pays nothing. What was read stays in
//! use; a file that could not be read is tried again. There is no way to do without.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::told;

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
}

impl Trust {
    /// Whoever the system believes.
    #[must_use]
    pub fn system() -> Arc<Self> {
        Self::of(true, None)
    }

    /// Whoever the authorities in a file of PEM vouch for, and nobody else.
    #[must_use]
    pub fn file(file: impl Into<PathBuf>) -> Arc<Self> {
        Self::of(false, Some(file.into()))
    }

    /// Whoever the system believes, and whoever the authorities in a file of PEM vouch for.
    #[must_use]
    pub fn system_and_file(file: impl Into<PathBuf>) -> Arc<Self> {
        Self::of(true, Some(file.into()))
    }

    fn of(of_system: bool, of_file: Option<PathBuf>) -> Arc<Self> {
        Arc::new(Self { authorities: Authorities { of_system, of_file }, config: OnceCell::new() })
    }

    /// A connection that is encrypted, with somebody who is believed to be that host; or why not.
    pub(crate) async fn secure(&self, stream: TcpStream, host: &str) -> Result<TlsStream<TcpStream>, String> {
        let name = ServerName::try_from(host.to_owned()).map_err(|problem| told(&problem))?;
        let config = self.config.get_or_try_init(|| read(self.authorities.clone())).await?;
        let secured = TlsConnector::from(Arc::clone(config)).connect(name, stream).await;
        secured.map_err(|problem| told(&problem))
    }
}

/// Files are read where nobody waits for it.
async fn read(authorities: Authorities) -> Result<Arc<ClientConfig>, String> {
    let read = tokio::task::spawn_blocking(move || config(&authorities));
    read.await.map_err(|problem| told(&problem))?
}

fn config(authorities: &Authorities) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    if authorities.of_system {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    if let Some(file) = &authorities.of_file {
        for certificate in certificates(file)? {
            roots.add(certificate).map_err(|problem| told(&problem))?;
        }
    }
    if roots.is_empty() {
        let hint = "install ca-certificates, or name a file with authorities";
        return Err(format!("the system knows no authorities\n  hint: {hint}"));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|problem| told(&problem))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// At least one.
fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong =
        |problem: &dyn std::error::Error| format!("cannot read {}: {}", file.display(), told(problem));
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
