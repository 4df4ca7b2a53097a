//! A certificate authority of the server, for installations without one: created once, in the data directory or in the
//! user's state directory, where several servers may share it.
//!
//! Only the authority is stored. The server's certificate is signed at every start and reload, lives in memory,
//! and is renewed long before it expires; so a name that is added to the settings takes effect at once.

use std::fs;
use std::io::{ErrorKind, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use super::{Pair, TlsError, certificates};

/// File name of the authority's certificate, which clients have to trust.
pub const AUTHORITY_FILE: &str = "ca.pem";

/// File name of its key.
pub(super) const KEY_FILE: &str = "ca-key.pem";

/// Lock of the process that creates an authority; others wait, and find one.
const LOCK_FILE: &str = "lock";

/// Validity of an authority.
const AUTHORITY_LIFE: Duration = Duration::from_hours(24 * 3_650);

/// Validity of a certificate.
const LEAF_LIFE: Duration = Duration::from_hours(24 * 90);

/// Age at which a certificate is renewed.
const LEAF_RENEWED: Duration = Duration::from_hours(24 * 30);

/// Certificates are backdated for clients whose clock is late.
const BACKDATED: Duration = Duration::from_hours(1);

/// File with the host name.
const HOST_NAME: &str = "/proc/sys/kernel/hostname";

pub(super) type AuthorityError = Box<dyn std::error::Error + Send + Sync>;

/// Issues a certificate for names by the authority in a directory, which is created if needed. Returns the time to
/// renew it.
pub(super) fn issue(
    directory: &Path,
    names: &[String],
    address: Option<IpAddr>,
) -> Result<(Pair, SystemTime), TlsError> {
    let file = directory.join(AUTHORITY_FILE);
    let failed = |source: AuthorityError| TlsError::Authority { path: file.clone(), source };
    let key = authority(directory).map_err(failed)?;
    let signed = leaf(key, &all_names(names, address), SystemTime::now()).map_err(failed)?;
    let mut pair = signed;
    pair.chain.extend(certificates(&file)?);
    Ok((pair, SystemTime::now() + LEAF_RENEWED))
}

fn leaf(authority: KeyPair, names: &[String], now: SystemTime) -> Result<Pair, AuthorityError> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = distinguished_name("Forewarn");
    params.not_before = (now - BACKDATED).into();
    params.not_after = (now + LEAF_LIFE).into();
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let issuer = Issuer::new(authority_params(now), authority);
    let certificate = params.signed_by(&key, &issuer)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    Ok(Pair { chain: vec![certificate.der().clone()], key })
}

/// Loads or creates the key of the authority.
pub(super) fn authority(directory: &Path) -> Result<KeyPair, AuthorityError> {
    if let Some(key) = existing(directory)? {
        return Ok(key);
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let _lock = lock(directory)?;
    if let Some(key) = existing(directory)? {
        return Ok(key);
    }
    let key = KeyPair::generate()?;
    let certificate = authority_params(SystemTime::now()).self_signed(&key)?;
    write_whole(&directory.join(KEY_FILE), &key.serialize_pem(), 0o600)?;
    write_whole(&directory.join(AUTHORITY_FILE), &certificate.pem(), 0o644)?;
    Ok(key)
}

/// Waits for the lock of a directory, which is released with the file.
pub(super) fn lock(directory: &Path) -> Result<fs::File, AuthorityError> {
    let mut options = fs::OpenOptions::new();
    let lock =
        options.write(true).create(true).truncate(false).mode(0o600).open(directory.join(LOCK_FILE))?;
    lock.lock()?;
    Ok(lock)
}

/// The key of an existing authority. The certificate is written last: where it is, its key is too.
fn existing(directory: &Path) -> Result<Option<KeyPair>, AuthorityError> {
    let (file, key_file) = (directory.join(AUTHORITY_FILE), directory.join(KEY_FILE));
    match (fs::read_to_string(&key_file), file.exists()) {
        (Ok(key), true) => Ok(Some(KeyPair::from_pem(&key)?)),
        (Err(error), true) => Err(format!("{}: {error}", key_file.display()).into()),
        (Err(error), false) if error.kind() != ErrorKind::NotFound => Err(error.into()),
        // A key without a certificate: its creation was interrupted, or is in progress.
        (Ok(_) | Err(_), false) => Ok(None),
    }
}

fn authority_params(now: SystemTime) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = distinguished_name("Forewarn authority");
    params.not_before = (now - BACKDATED).into();
    params.not_after = (now + AUTHORITY_LIFE).into();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn distinguished_name(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

/// Every name of the server: loopback, host name, address, and names of the settings.
fn all_names(names: &[String], address: Option<IpAddr>) -> Vec<String> {
    let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    let host = fs::read_to_string(HOST_NAME).unwrap_or_default().trim().to_owned();
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte))
    };
    let mut all = vec!["localhost".to_owned()];
    all.extend(loopback.iter().map(IpAddr::to_string));
    all.extend(is_name(&host).then_some(host));
    all.extend(address.filter(|address| !address.is_unspecified()).map(|address| address.to_string()));
    all.extend(names.iter().cloned());
    all.sort();
    all.dedup();
    all
}

/// Writes a file atomically, with a mode.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub fn write_whole(path: &Path, text: &str, mode: u32) -> std::io::Result<()> {
    let unfinished = path.with_extension("new");
    // `mode` only applies to a new file.
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&unfinished)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&unfinished, path)?;
    fs::File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::Validity;
    use std::os::unix::fs::PermissionsExt;

    /// The object identifier of the extension that names the key of the issuer: 2.5.29.35.
    const AUTHORITY_KEY_IDENTIFIER: [u8; 5] = [0x06, 0x03, 0x55, 0x1d, 0x23];

    /// promise: Z5
    #[test]
    fn an_authority_is_made_once_and_its_key_is_for_the_owner_alone() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().join("tls");
        let (first, _) = issue(&directory, &["forewarn.internal".to_owned()], None).unwrap();
        let (second, _) = issue(&directory, &[], Some("10.0.0.1".parse().unwrap())).unwrap();
        assert_eq!(first.chain[1], second.chain[1], "the authority stays");
        assert_ne!(first.chain[0], second.chain[0], "the certificate does not");
        let mode = |name: &str| fs::metadata(directory.join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(KEY_FILE), 0o600);
        assert_eq!(fs::metadata(&directory).unwrap().permissions().mode() & 0o777, 0o700);
        let has = |bytes: &[u8], part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
        assert!(has(&first.chain[0], &AUTHORITY_KEY_IDENTIFIER));
        assert!(has(&first.chain[0], b"forewarn.internal") && !has(&second.chain[0], b"forewarn.internal"));
        assert!(has(&second.chain[0], &[10, 0, 0, 1]));
    }

    /// promise: Z5
    #[test]
    fn servers_that_begin_together_have_one_authority() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().join("tls");
        let issued = std::thread::scope(|scope| {
            let begin = || scope.spawn(|| issue(&directory, &[], None).unwrap().0);
            let servers: Vec<_> = std::iter::repeat_with(begin).take(8).collect();
            servers.into_iter().map(|server| server.join().unwrap()).collect::<Vec<_>>()
        });
        let authority = certificates(&directory.join(AUTHORITY_FILE)).unwrap().remove(0);
        let of_key = KeyPair::from_pem(&fs::read_to_string(directory.join(KEY_FILE)).unwrap()).unwrap();
        let has = |part: &[u8]| authority.windows(part.len()).any(|window| window == part);
        assert!(has(of_key.public_key_raw()), "the key is that of the certificate");
        assert!(issued.iter().all(|pair| pair.chain[1] == authority));
    }

    #[test]
    fn a_certificate_is_renewed_before_it_expires() {
        let directory = tempfile::tempdir().unwrap();
        let (pair, renew_at) = issue(directory.path(), &[], None).unwrap();
        let validity = Validity::of(&pair.chain[0]).unwrap();
        assert!(validity.from < SystemTime::now() && renew_at < validity.until);
    }

    #[test]
    fn an_interrupted_authority_is_created_again_and_a_lost_key_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(KEY_FILE), "half").unwrap();
        assert!(issue(directory.path(), &[], None).is_ok());
        fs::remove_file(directory.path().join(KEY_FILE)).unwrap();
        let problem =
            issue(directory.path(), &[], None).err().expect("a certificate without its key").to_string();
        assert!(problem.contains(AUTHORITY_FILE), "{problem}");
    }
}
