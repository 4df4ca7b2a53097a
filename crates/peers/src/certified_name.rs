//! Names of servers in certificates.
//!
//! The certificate of a server has one DNS name `NAME.server.forewarn.internal`. The suffix states the purpose: a
//! certificate of a host, or of a website, has no such name, even if the same authority has issued it.

use forewarn_types::Name;
use rustls_pki_types::{CertificateDer, ServerName};
use webpki::EndEntityCert;

/// Suffix of the DNS name of a server.
const SUFFIX: &str = ".server.forewarn.internal";

/// Maximum bytes of the name of a server: those of a label in DNS.
const NAME_BYTES_MAX: usize = 63;

/// A name that a server cannot have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a name for a server: {0}\n  hint: 1 to {NAME_BYTES_MAX} lower-case letters, digits and '-', which is neither first nor last"
)]
pub struct BadServerName(pub Name);

/// Checks the name of a server: it must be a label in DNS, in lower case.
///
/// # Errors
/// Fails if a certificate cannot have the name.
pub fn check_server_name(name: &Name) -> Result<(), BadServerName> {
    if is_label(name.as_str()) { Ok(()) } else { Err(BadServerName(name.clone())) }
}

/// The name of a server in its certificate.
pub(crate) fn dns_name(name: &Name) -> Result<String, BadServerName> {
    check_server_name(name)?;
    Ok(format!("{name}{SUFFIX}"))
}

/// The server to which a certificate belongs. `None` if it is not the certificate of a server, or of several.
pub(crate) fn certified_name(certificate: &CertificateDer<'_>) -> Option<Name> {
    let parsed = EndEntityCert::try_from(certificate).ok()?;
    let mut labels = parsed.valid_dns_names().filter_map(|name| name.strip_suffix(SUFFIX));
    let label = labels.next().filter(|label| is_label(label))?;
    if labels.next().is_some() {
        return None;
    }
    let name = Name::new(label).ok()?;
    let subject = ServerName::try_from(dns_name(&name).ok()?).ok()?;
    parsed.verify_is_valid_for_subject_name(&subject).ok().map(|()| name)
}

fn is_label(text: &str) -> bool {
    let is_permitted = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=NAME_BYTES_MAX).contains(&text.len())
        && text.bytes().all(is_permitted)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair};

    fn name_of(names: &[&str]) -> Option<String> {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let params = CertificateParams::new(names).unwrap();
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        certified_name(certificate.der()).map(|name| name.to_string())
    }

    #[test]
    fn a_certificate_names_one_server() {
        let server = |name: &str| format!("{name}{SUFFIX}");
        assert_eq!(name_of(&["localhost", &server("a-1"), "10.0.0.1"]).as_deref(), Some("a-1"));
        for wrong in ["", "A", "*", "a.b", "a_b"] {
            assert_eq!(name_of(&[&server(wrong)]), None, "{wrong}");
        }
        assert_eq!(name_of(&["localhost"]), None);
        assert_eq!(name_of(&["a.host.forewarn.internal"]), None);
        assert_eq!(name_of(&[&server("a"), &server("b")]), None, "one certificate, two servers");
        assert_eq!(certified_name(&CertificateDer::from(vec![0x30, 0])), None);
    }

    #[test]
    fn a_server_has_the_name_of_a_label() {
        let check = |text: &str| check_server_name(&Name::new(text).unwrap());
        assert!(check("a").is_ok() && check("zone-1-b").is_ok() && check(&"a".repeat(63)).is_ok());
        for wrong in ["A", "a.b", "a_b", "-a", "a-", &"a".repeat(64)] {
            let problem = check(wrong).unwrap_err().to_string();
            assert!(problem.starts_with(&format!("not a name for a server: {wrong}\n  hint: ")), "{problem}");
        }
    }
}
