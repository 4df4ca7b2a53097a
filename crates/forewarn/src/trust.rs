//! Whom a client believes: the authorities of the system, or those in a file.
//!
//! A certificate that is not believed ends the connection before anything is said, the key included. There is no way to
//! do without.

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
    pub(crate) async fn secure(
        &self,
        stream: TcpStream,
        host: &str,
    ) -> Result<impl AsyncRead + AsyncWrite + Unpin + Send + use<>> {
        let secured = self.authorities()?.secure(stream, host).await;
        secured.map_err(|problem| self.told(problem))
    }

    /// The authorities, read anew for each connection.
    fn authorities(&self) -> Result<Arc<http::Trust>> {
        Ok(match self {
            Self::System => http::Trust::system(),
            Self::File(path) => http::Trust::list(tls::certificates(path)?),
            Self::Text(text) => {
                let certificates = CertificateDer::pem_slice_iter(text).collect::<Result<Vec<_>, _>>();
                http::Trust::list(certificates.context("not a certificate, as PEM")?)
            }
        })
    }

    /// An error in the words of the command line.
    fn told(&self, problem: TrustError) -> anyhow::Error {
        match (problem, self) {
            (TrustError::Name(problem), _) => {
                anyhow::Error::from(problem).context("not a name that a certificate can have")
            }
            (TrustError::NoAuthorities, _) => anyhow!("the system knows no authorities: use --ca FILE"),
            (TrustError::NotAuthority(problem), Self::File(path)) => anyhow::Error::from(problem)
                .context(format!("not the certificate of an authority: {}", path.display())),
            (TrustError::NotAuthority(problem), Self::System | Self::Text(_)) => {
                anyhow::Error::from(problem).context("not the certificate of an authority")
            }
            (TrustError::Setup(problem), _) => problem.into(),
            (TrustError::Handshake(problem), _) => problem.into(),
            (problem @ (TrustError::File(_) | TrustError::Interrupted(_)), _) => problem.into(),
        }
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
