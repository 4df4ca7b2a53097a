//! The certificate authority of a realm. The first server creates it; the realm stores it among its secrets.
//!
//! The secret is a text with the key and the certificate of the authority, as PEM. A program that has it can act as any
//! server of the realm.

use std::time::{Duration, SystemTime};

use forewarn_types::{Name, base64url};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::certified_name::dns_name;
use crate::credentials::{CertificateError, Credentials, certificates, private_key};

/// Validity of an authority.
const AUTHORITY_LIFE: Duration = Duration::from_hours(24 * 3_650);

/// Validity of the certificate of a server.
pub const CERTIFICATE_LIFE: Duration = Duration::from_hours(24 * 30);

/// Age at which a certificate is renewed.
const RENEWED: Duration = Duration::from_hours(24 * 10);

/// Certificates are backdated for servers whose clock is late.
const BACKDATED: Duration = Duration::from_hours(1);

/// The text with an authority, in errors.
const PLACE: &str = "the secret of the realm";

/// Bytes of its key that the name of an authority contains, so that errors tell two authorities apart.
const KEY_BYTES_IN_NAME: usize = 6;

/// The certificate authority of a realm.
pub struct RealmAuthority {
    certificate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

impl RealmAuthority {
    /// Creates an authority. Returns its secret.
    ///
    /// # Errors
    /// Fails if no key can be made.
    pub fn create(now: SystemTime) -> Result<String, CertificateError> {
        let key = KeyPair::generate().map_err(CertificateError::Issue)?;
        let certificate = authority_params(&key, now).self_signed(&key).map_err(CertificateError::Issue)?;
        Ok(format!("{}{}", key.serialize_pem(), certificate.pem()))
    }

    /// Reads the secret of an authority.
    ///
    /// # Errors
    /// Fails if it lacks the key or the certificate, or they are not a pair.
    pub fn from_secret(secret: &str) -> Result<Self, CertificateError> {
        let certificate = certificates(secret.as_bytes(), PLACE)?.swap_remove(0);
        let key = private_key(secret.as_bytes(), PLACE)?;
        let key = KeyPair::try_from(&key).map_err(CertificateError::Issue)?;
        let public = key.public_key_raw();
        if !certificate.windows(public.len()).any(|bytes| bytes == public) {
            return Err(CertificateError::Mismatch);
        }
        let params = authority_params(&key, SystemTime::UNIX_EPOCH);
        Ok(Self { certificate, issuer: Issuer::new(params, key) })
    }

    /// Issues a certificate to a server, for a key that is made for it. Host names and addresses are those under which
    /// the server is reached; only its name is verified.
    ///
    /// # Errors
    /// Fails if the server cannot have that name, or a host name is invalid.
    pub fn issue(
        &self,
        server: &Name,
        hosts: &[String],
        now: SystemTime,
    ) -> Result<Credentials, CertificateError> {
        let mut names = vec![dns_name(server)?];
        names.extend_from_slice(hosts);
        let mut params = CertificateParams::new(names).map_err(CertificateError::Issue)?;
        params.distinguished_name = distinguished_name(format!("Forewarn server {server}"));
        params.not_before = (now - BACKDATED).into();
        params.not_after = (now + CERTIFICATE_LIFE).into();
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().map_err(CertificateError::Issue)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(CertificateError::Issue)?;
        Ok(Credentials {
            authorities: vec![self.certificate.clone()],
            chain: vec![certificate.der().clone()],
            key: PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
            renew_at: Some(now + RENEWED),
        })
    }
}

impl std::fmt::Debug for RealmAuthority {
    /// The key is a secret.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("RealmAuthority(secret)")
    }
}

fn authority_params(key: &KeyPair, now: SystemTime) -> CertificateParams {
    let public = key.public_key_raw();
    let mark = base64url::encode(&public[public.len().saturating_sub(KEY_BYTES_IN_NAME)..]);
    let mut params = CertificateParams::default();
    params.distinguished_name = distinguished_name(format!("Forewarn realm {mark}"));
    params.not_before = (now - BACKDATED).into();
    params.not_after = (now + AUTHORITY_LIFE).into();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn distinguished_name(name: String) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}
