//! Whom webhooks are believed to be: the authorities of the system, and those in a file of the settings.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::line::told;
use crate::tls;

/// Whom webhooks are believed to be. It is read when it is first needed.
#[derive(Debug)]
pub(super) struct Trust {
    /// Authorities besides those of the system, as PEM.
    authorities: Option<PathBuf>,
    config: OnceCell<Arc<ClientConfig>>,
}

impl Trust {
    pub(super) fn new(authorities: Option<PathBuf>) -> Self {
        Self { authorities, config: OnceCell::new() }
    }

    /// A connection that is encrypted, with somebody who is believed to be that host; or why not.
    pub(super) async fn secure(&self, stream: TcpStream, host: &str) -> Result<TlsStream<TcpStream>, String> {
        let name = ServerName::try_from(host.to_owned()).map_err(|problem| told(&problem))?;
        let config = self.config.get_or_try_init(|| read(self.authorities.clone())).await?;
        let secured = TlsConnector::from(Arc::clone(config)).connect(name, stream).await;
        secured.map_err(|problem| told(&problem))
    }
}

/// Files are read where nobody waits for it.
async fn read(authorities: Option<PathBuf>) -> Result<Arc<ClientConfig>, String> {
    let read = tokio::task::spawn_blocking(move || config(authorities.as_deref()));
    read.await.map_err(|problem| told(&problem))?
}

fn config(authorities: Option<&Path>) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(file) = authorities {
        for certificate in tls::certificates(file).map_err(|problem| told(&problem))? {
            roots.add(certificate).map_err(|problem| told(&problem))?;
        }
    }
    if roots.is_empty() {
        return Err("the system knows no authorities: webhooks.ca names a file with some".to_owned());
    }
    let config = ClientConfig::builder_with_provider(tls::provider())
        .with_safe_default_protocol_versions()
        .map_err(|problem| told(&problem))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
