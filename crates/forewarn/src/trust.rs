//! Whom a client believes: the authorities of the system, or those in a file.
//!
//! A certificate that is not believed ends the connection before anything is said, the key included. There is no way to
//! do without.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use forewarn_server::tls;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::{CertificateError, ClientConfig, Error, RootCertStore};

/// Whom a client believes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// The authorities that the system knows.
    System,
    /// Those in a file, as PEM, and nobody else.
    File(PathBuf),
    /// Those in a text, as PEM, and nobody else.
    Text(Vec<u8>),
}

impl Trust {
    /// A connection that is encrypted, with somebody whom this one believes to be that host.
    pub(crate) async fn secure(&self, stream: TcpStream, host: &str) -> Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from(host.to_owned()).context("not a name that a certificate can have")?;
        let config = ClientConfig::builder_with_provider(tls::provider())
            .with_safe_default_protocol_versions()?
            .with_root_certificates(self.roots()?)
            .with_no_client_auth();
        Ok(TlsConnector::from(Arc::new(config)).connect(name, stream).await?)
    }

    fn roots(&self) -> Result<RootCertStore> {
        let mut roots = RootCertStore::empty();
        match self {
            Self::System => {
                let found = rustls_native_certs::load_native_certs();
                roots.add_parsable_certificates(found.certs);
                if roots.is_empty() {
                    bail!("the system knows no authorities: use --ca FILE");
                }
            }
            Self::File(path) => {
                for certificate in tls::certificates(path)? {
                    let added = roots.add(certificate);
                    added.with_context(|| {
                        format!("not the certificate of an authority: {}", path.display())
                    })?;
                }
            }
            Self::Text(text) => {
                for certificate in CertificateDer::pem_slice_iter(text) {
                    let certificate = certificate.context("not a certificate, as PEM")?;
                    roots.add(certificate).context("not the certificate of an authority")?;
                }
            }
        }
        Ok(roots)
    }
}

/// What to do about a connection that is not believed, or not spoken to in its language.
pub(crate) fn hint(problem: &anyhow::Error) -> Option<String> {
    let causes = problem.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    let error = causes.filter_map(io::Error::get_ref).find_map(|inner| inner.downcast_ref::<Error>())?;
    let text = if let Error::InvalidCertificate(why) = error {
        of_certificate(why)
    } else if matches!(error, Error::InvalidMessage(_)) {
        "it does not speak TLS: http:// instead of https://"
    } else {
        return None;
    };
    Some(text.to_owned())
}

fn of_certificate(why: &CertificateError) -> &'static str {
    use CertificateError as Why;
    if matches!(why, Why::UnknownIssuer | Why::BadSignature) {
        "nobody here knows who made its certificate: --ca FILE names the authority (of a self-signed server: tls/ca.pem \
         in its data directory)"
    } else if matches!(why, Why::Expired | Why::ExpiredContext { .. }) {
        "its certificate has expired: have the server read a new one (systemctl reload forewarn), or look at the clock here"
    } else if matches!(why, Why::NotValidYet | Why::NotValidYetContext { .. }) {
        "its certificate is not valid yet: look at the clock here, and at the server's"
    } else if matches!(why, Why::NotValidForName | Why::NotValidForNameContext { .. }) {
        "its certificate is for other names: call it by one of them, or add this one (of a self-signed server: api.tls.names)"
    } else {
        "its certificate is not one to believe"
    }
}
