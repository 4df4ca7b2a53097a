//! Whom others are believed to be: the authorities of the system, or those in a file, and nobody else.
//!
//! Nothing is read before the first encrypted connection: whoever only speaks in the clear pays nothing. What was read stays in
//! use; a file that could not be read is tried again.

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

use super::told;

/// Bytes of a file of authorities.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Whom others are believed to be.
#[derive(Debug)]
pub struct Trust {
    /// The only authorities, as PEM; those of the system if there is no file.
    file: Option<PathBuf>,
    config: OnceCell<Arc<ClientConfig>>,
}

impl Trust {
    /// Whoever the system believes.
    #[must_use]
    pub fn system() -> Arc<Self> {
        Arc::new(Self { file: None, config: OnceCell::new() })
    }

    /// Whoever the authorities in a file of PEM vouch for, and nobody else.
    #[must_use]
    pub fn file(file: impl Into<PathBuf>) -> Arc<Self> {
        Arc::new(Self { file: Some(file.into()), config: OnceCell::new() })
    }

    /// A connection that is encrypted, with somebody who is believed to be that host; or why not.
    pub(super) async fn secure(&self, stream: TcpStream, host: &str) -> Result<TlsStream<TcpStream>, String> {
        let name = ServerName::try_from(host.to_owned()).map_err(|problem| told(&problem))?;
        let config = self.config.get_or_try_init(|| read(self.file.clone())).await?;
        let secured = TlsConnector::from(Arc::clone(config)).connect(name, stream).await;
        secured.map_err(|problem| told(&problem))
    }
}

/// Files are read where nobody waits for it.
async fn read(file: Option<PathBuf>) -> Result<Arc<ClientConfig>, String> {
    let read = tokio::task::spawn_blocking(move || config(file.as_deref()));
    read.await.map_err(|problem| told(&problem))?
}

fn config(file: Option<&Path>) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    match file {
        Some(file) => {
            for certificate in certificates(file)? {
                roots.add(certificate).map_err(|problem| told(&problem))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        return Err(match file {
            Some(file) => format!("no certificate in {}: it has to be PEM", file.display()),
            None => {
                "the system knows no authorities\n  hint: install ca-certificates, or name a file".to_owned()
            }
        });
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|problem| told(&problem))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong =
        |problem: &dyn std::error::Error| format!("cannot read {}: {}", file.display(), told(problem));
    let opened = std::fs::File::open(file).map_err(|problem| wrong(&problem))?;
    let mut pem = Vec::new();
    opened.take(FILE_BYTES_MAX).read_to_end(&mut pem).map_err(|problem| wrong(&problem))?;
    CertificateDer::pem_slice_iter(&pem).collect::<Result<_, _>>().map_err(|problem| wrong(&problem))
}
