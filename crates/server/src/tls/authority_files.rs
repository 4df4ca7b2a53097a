//! The files of an authority as a value, which servers of a realm share.

use std::fs;
use std::path::Path;

use super::TlsError;
use super::authority::{AUTHORITY_FILE, AuthorityError, KEY_FILE, authority, lock, write_whole};

/// Separates the key from the certificate in a secret. No PEM text contains it.
const SEPARATOR: char = '\0';

/// The key and the certificate of an authority, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct AuthorityFiles {
    key: String,
    certificate: String,
}

impl AuthorityFiles {
    /// The authority in a directory, which is created if there is none.
    pub(crate) fn load_or_create(directory: &Path) -> Result<Self, TlsError> {
        let load = || {
            let key = authority(directory)?.serialize_pem();
            Ok(Self { key, certificate: fs::read_to_string(directory.join(AUTHORITY_FILE))? })
        };
        load().map_err(failed(directory))
    }

    /// Replaces the authority in a directory. After an interruption between its two files, the next start does it again.
    pub(crate) fn write(&self, directory: &Path) -> Result<(), TlsError> {
        let write = || {
            let _lock = lock(directory)?;
            write_whole(&directory.join(KEY_FILE), &self.key, 0o600)?;
            write_whole(&directory.join(AUTHORITY_FILE), &self.certificate, 0o644)?;
            Ok(())
        };
        write().map_err(failed(directory))
    }

    /// The authority as a secret of a realm.
    pub(crate) fn to_secret(&self) -> String {
        format!("{}{SEPARATOR}{}", self.key, self.certificate)
    }

    /// Reads the secret of a realm.
    pub(crate) fn from_secret(secret: &[u8]) -> Result<Self, AuthorityError> {
        let (key, certificate) = std::str::from_utf8(secret)?
            .split_once(SEPARATOR)
            .ok_or("the authority of the realm is damaged")?;
        Ok(Self { key: key.to_owned(), certificate: certificate.to_owned() })
    }
}

fn failed(directory: &Path) -> impl Fn(AuthorityError) -> TlsError {
    let path = directory.join(AUTHORITY_FILE);
    move |source| TlsError::Authority { path: path.clone(), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::authority::issue;

    #[test]
    fn servers_that_share_an_authority_sign_certificates_of_it() {
        let scratch = tempfile::tempdir().unwrap();
        let (one, two) = (scratch.path().join("one"), scratch.path().join("two"));
        let first = AuthorityFiles::load_or_create(&one).unwrap();
        assert!(first == AuthorityFiles::load_or_create(&one).unwrap(), "it is created once");
        assert!(first != AuthorityFiles::load_or_create(&two).unwrap());
        let shared = AuthorityFiles::from_secret(first.to_secret().as_bytes()).unwrap();
        shared.write(&two).unwrap();
        assert!(first == AuthorityFiles::load_or_create(&two).unwrap());
        let of = |directory| issue(directory, &[], None).unwrap().0.chain.remove(1);
        assert_eq!(of(&one), of(&two));
        assert!(AuthorityFiles::from_secret(b"half").is_err());
    }
}
