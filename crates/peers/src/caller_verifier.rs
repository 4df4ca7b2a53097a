//! Verification of the certificates of callers: issued by the authority of the realm, for clients, to a server.

use std::io;
use std::sync::Arc;

use forewarn_http_client::error_chain;
use rustls_pki_types::{CertificateDer, UnixTime};
use tokio_rustls::rustls::client::danger::HandshakeSignatureValid;
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, SignatureScheme,
};

use crate::certified_name::certified_name;

/// Verifies certificates of callers.
#[derive(Debug)]
pub(crate) struct CallerVerifier(pub(crate) Arc<dyn ClientCertVerifier>);

/// A certificate with another purpose.
#[derive(Debug, thiserror::Error)]
#[error("the certificate is not that of a server of the realm")]
struct NotServerCertificate;

/// The reason why a handshake has failed.
pub(crate) fn handshake_reason(error: &io::Error) -> String {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
    if let Some(Error::InvalidCertificate(CertificateError::Other(OtherError(other)))) = cause {
        return other.to_string();
    }
    error_chain(error)
}

impl ClientCertVerifier for CallerVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.0.verify_client_cert(end_entity, intermediates, now)?;
        let other = || CertificateError::Other(OtherError(Arc::new(NotServerCertificate)));
        certified_name(end_entity).map(|_| verified).ok_or_else(|| Error::InvalidCertificate(other()))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
