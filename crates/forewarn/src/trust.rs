//! The CA certificates that a client trusts: those of the system, or those of a file.
//!
//! A connection with an untrusted certificate ends before any data is sent, the API token included. Verification cannot
//! be turned off.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use forewarn_http_client::{self as http, TrustError};
use forewarn_server::tls;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::rustls::{CertificateError, Error};

/// The source of CA certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CaSource {
    System,
    /// Only those of a PEM file.
    File(PathBuf),
    /// Only those of a PEM text.
    Text(Vec<u8>),
}

impl CaSource {
    /// Starts TLS on a connection and verifies the certificate for the host.
    pub(crate) async fn secure(
        &self,
        stream: TcpStream,
        host: &str,
    ) -> Result<impl AsyncRead + AsyncWrite + Unpin + Send + use<>> {
        let secured = self.authorities()?.secure(stream, host).await;
        secured.map_err(|error| self.describe(error))
    }

    /// The CA certificates, read again for each connection.
    fn authorities(&self) -> Result<Arc<http::Trust>> {
        Ok(match self {
            Self::System => http::Trust::system(),
            Self::File(path) => http::Trust::list(tls::certificates(path)?),
            Self::Text(text) => {
                let certificates = CertificateDer::pem_slice_iter(text).collect::<Result<Vec<_>, _>>();
                http::Trust::list(certificates.context("invalid PEM certificate")?)
            }
        })
    }

    /// The error with a message for the command line.
    fn describe(&self, error: TrustError) -> anyhow::Error {
        match (error, self) {
            (TrustError::Name(error), _) => {
                anyhow::Error::from(error).context("invalid host name for a certificate")
            }
            (TrustError::NoAuthorities, _) => {
                anyhow!("the system store has no CA certificates\n  hint: use --ca FILE")
            }
            (TrustError::NotAuthority(error), Self::File(path)) => {
                anyhow::Error::from(error).context(format!("not a CA certificate: {}", path.display()))
            }
            (TrustError::NotAuthority(error), Self::System | Self::Text(_)) => {
                anyhow::Error::from(error).context("not a CA certificate")
            }
            (TrustError::Setup(error), _) => error.into(),
            (TrustError::Handshake(error), _) => error.into(),
            (error @ (TrustError::File(_) | TrustError::Interrupted(_)), _) => error.into(),
        }
    }
}

/// A hint for a failed TLS handshake. None for other errors.
pub(crate) fn hint(error: &anyhow::Error) -> Option<String> {
    let causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    let error = causes.filter_map(io::Error::get_ref).find_map(|inner| inner.downcast_ref::<Error>())?;
    let text = if let Error::InvalidCertificate(why) = error {
        of_certificate(why)
    } else if matches!(error, Error::InvalidMessage(_)) {
        "the server does not use TLS: try http:// instead of https://"
    } else {
        return None;
    };
    Some(text.to_owned())
}

fn of_certificate(why: &CertificateError) -> &'static str {
    use CertificateError as Why;
    if matches!(why, Why::UnknownIssuer | Why::BadSignature) {
        "the CA of the server's certificate is not trusted: use --ca FILE (for a self-signed server: tls/ca.pem in its data \
         directory)"
    } else if matches!(why, Why::Expired | Why::ExpiredContext { .. }) {
        "the server's certificate has expired: replace it (then systemctl reload forewarn), or check the clock of this computer"
    } else if matches!(why, Why::NotValidYet | Why::NotValidYetContext { .. }) {
        "the server's certificate is not valid yet: check the clocks of this computer and of the server"
    } else if matches!(why, Why::NotValidForName | Why::NotValidForNameContext { .. }) {
        "the server's certificate is for other names: use one of them, or add this one (for a self-signed server: api.tls.names)"
    } else {
        "the server's certificate is not trusted"
    }
}
