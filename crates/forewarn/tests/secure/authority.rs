//! Authorities and certificates, as an operator would have them made.

use std::time::{Duration, SystemTime};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};

const DAY: Duration = Duration::from_hours(24);

pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key, as PEM.
pub(crate) struct Leaf {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Self { issuer }
    }

    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn pem(&self) -> String {
        self.issuer.pem()
    }

    pub(crate) fn leaf(&self, names: &[&str]) -> Leaf {
        self.signed(names, SystemTime::now() + 90 * DAY)
    }

    pub(crate) fn expired_leaf(&self, names: &[&str]) -> Leaf {
        self.signed(names, SystemTime::now() - DAY)
    }

    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn leaf_for(&self, names: &[&str], life: Duration) -> Leaf {
        self.signed(names, SystemTime::now() + life)
    }

    fn signed(&self, names: &[&str], until: SystemTime) -> Leaf {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.not_before = (SystemTime::now() - 10 * DAY).into();
        params.not_after = until.into();
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Leaf { certificate: certificate.pem(), key: key.serialize_pem() }
    }
}
