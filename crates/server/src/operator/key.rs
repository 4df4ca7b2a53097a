//! The key of operators: who shows it may do anything.
//!
//! It is made once, shown once, and kept only as a hash: whoever reads the data directory learns nothing of it.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use sha2::{Digest, Sha256};

/// The file of the hash, in the data directory.
const FILE: &str = "operator-key";

/// What every key begins with, so that one is known where it should not be.
const PREFIX: &str = "fwk_";

/// Random bytes in a key.
const KEY_BYTES: usize = 32;

/// Bytes of the file that are read.
const FILE_BYTES_MAX: u64 = 1_024;

/// What is kept of a key.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyHash([u8; 32]);

impl std::fmt::Debug for KeyHash {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("KeyHash(secret)")
    }
}

impl KeyHash {
    fn of(key: &str) -> Self {
        Self(Sha256::digest(key.as_bytes()).into())
    }

    /// Whether this is the key. How long that takes tells nothing of it: hashes are compared, and all of them.
    #[must_use]
    pub fn fits(&self, key: &str) -> bool {
        let difference = self.0.iter().zip(Self::of(key).0).fold(0, |all, (one, other)| all | (one ^ other));
        difference == 0
    }

    /// The key of a data directory. If there is none yet, one is made, and given back in clear: nobody will see it again.
    ///
    /// # Errors
    /// When the file cannot be read or written, or is none.
    pub fn of_directory(directory: &Path) -> io::Result<(Self, Option<String>)> {
        let path = directory.join(FILE);
        match fs::File::open(&path) {
            Ok(file) => {
                let mut text = String::new();
                file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
                let hash = from_hex(text.trim()).ok_or_else(|| io::Error::from(ErrorKind::InvalidData))?;
                Ok((Self(hash), None))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let key = new_key()?;
                let hash = Self::of(&key);
                write_whole(&path, &format!("{}\n", to_hex(&hash.0)))?;
                Ok((hash, Some(key)))
            }
            Err(error) => Err(error),
        }
    }

    /// A key that is good for as long as the process lives.
    ///
    /// # Errors
    /// When no random numbers can be had.
    pub fn of_process() -> io::Result<(Self, Option<String>)> {
        let key = new_key()?;
        Ok((Self::of(&key), Some(key)))
    }
}

fn new_key() -> io::Result<String> {
    let mut bytes = [0; KEY_BYTES];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(format!("{PREFIX}{}", to_hex(&bytes)))
}

/// The file appears whole, or not at all, and only its owner can read it.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let unfinished = path.with_extension("new");
    let mut file =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&unfinished, path)?;
    let directory = path.parent().unwrap_or(Path::new("."));
    fs::File::open(directory)?.sync_all()
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_is_made_once_and_kept_as_a_hash() {
        let directory = tempfile::tempdir().unwrap();
        let (hash, made) = KeyHash::of_directory(directory.path()).unwrap();
        let key = made.expect("the first time");
        assert!(hash.fits(&key) && !hash.fits("") && !hash.fits(&key[..key.len() - 1]));
        let (again, made) = KeyHash::of_directory(directory.path()).unwrap();
        assert_eq!((again, made), (hash.clone(), None));
        let file = directory.path().join(FILE);
        assert!(!fs::read_to_string(&file).unwrap().contains(&key[PREFIX.len()..]));
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(format!("{hash:?}"), "KeyHash(secret)");
    }

    #[test]
    fn a_file_that_is_no_hash_is_not_taken_for_one() {
        let directory = tempfile::tempdir().unwrap();
        for wrong in ["", "zz", &"é".repeat(32), &"0".repeat(63)] {
            fs::write(directory.path().join(FILE), wrong).unwrap();
            assert!(KeyHash::of_directory(directory.path()).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn two_keys_differ() {
        let (one, other) = (KeyHash::of_process().unwrap(), KeyHash::of_process().unwrap());
        assert_ne!(one.0, other.0);
        assert_ne!(one.1, other.1);
    }
}
