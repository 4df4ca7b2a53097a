//! Proofs that somebody has the key that peers share. Comparing one takes the same time whatever is wrong with it.

use std::fmt;
use std::io::Read as _;
use std::path::Path;

use ring::hmac;

use crate::{chance, os};

/// Who asks, by name.
pub(crate) const ASKER: &str = "forewarn-asker";
/// What makes a question unlike any other.
pub(crate) const NONCE: &str = "forewarn-nonce";
/// That somebody has the key.
pub(crate) const PROOF: &str = "forewarn-proof";

/// Bytes of a key.
const KEY_BYTES_MIN: usize = 32;
const KEY_BYTES_MAX: usize = 4096;

/// Random bytes of a nonce.
const NONCE_BYTES: usize = 16;

/// Bytes of the name of an asker.
const ASKER_BYTES_MAX: usize = 1024;

/// The key that peers share.
#[derive(Clone)]
pub(crate) struct Key(hmac::Key);

/// What makes a question unlike any other: 32 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Nonce(String);

/// Why a file has no key.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadKey {
    #[error("cannot read the key of the peers: {0}")]
    Read(#[from] std::io::Error),
    #[error("the key of the peers is no file")]
    NotAFile,
    #[error(
        "everybody on this machine can read or change the key of the peers\n  hint: chmod 600, and a new key if others have been here"
    )]
    Open,
    #[error(
        "the key of the peers has {0} bytes: at least {KEY_BYTES_MIN}, at most {KEY_BYTES_MAX}\n  hint: openssl rand -hex 32"
    )]
    Length(usize),
}

/// The two things that are proved; neither can be taken for the other.
enum About<'a> {
    Ask { asker: &'a [u8] },
    Word { body: &'a [u8] },
}

impl Key {
    /// Reads a key that only its owner and its group can read. White space at its end does not count.
    pub(crate) fn read(file: &Path) -> Result<Self, BadKey> {
        let opened = std::fs::File::open(file)?;
        let about = opened.metadata()?;
        if !about.is_file() {
            return Err(BadKey::NotAFile);
        }
        if os::is_open_to_all(&about) {
            return Err(BadKey::Open);
        }
        let mut bytes = Vec::new();
        opened.take(KEY_BYTES_MAX as u64 + 16).read_to_end(&mut bytes)?;
        Self::new(&bytes)
    }

    pub(crate) fn new(bytes: &[u8]) -> Result<Self, BadKey> {
        let bytes = bytes.trim_ascii_end();
        if !(KEY_BYTES_MIN..=KEY_BYTES_MAX).contains(&bytes.len()) {
            return Err(BadKey::Length(bytes.len()));
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, bytes)))
    }

    /// The proof of a question.
    pub(crate) fn prove_ask(&self, nonce: &Nonce, asker: &str) -> String {
        self.prove(nonce, &About::Ask { asker: asker.as_bytes() })
    }

    /// Whether a question comes from somebody who has the key.
    pub(crate) fn is_ask(&self, nonce: &Nonce, asker: &[u8], proof: &str) -> bool {
        self.is_proof(nonce, &About::Ask { asker }, proof)
    }

    /// The proof of an answer to a question.
    pub(crate) fn prove_word(&self, nonce: &Nonce, body: &[u8]) -> String {
        self.prove(nonce, &About::Word { body })
    }

    /// Whether an answer to this question comes from somebody who has the key.
    pub(crate) fn is_word(&self, nonce: &Nonce, body: &[u8], proof: &str) -> bool {
        self.is_proof(nonce, &About::Word { body }, proof)
    }

    fn prove(&self, nonce: &Nonce, about: &About<'_>) -> String {
        hex(hmac::sign(&self.0, &message(nonce, about)).as_ref())
    }

    fn is_proof(&self, nonce: &Nonce, about: &About<'_>, proof: &str) -> bool {
        let Some(tag) = unhex(proof) else { return false };
        hmac::verify(&self.0, &message(nonce, about), &tag).is_ok()
    }
}

/// No part of it but the last may hold a zero, so that no two have the same bytes.
fn message(nonce: &Nonce, about: &About<'_>) -> Vec<u8> {
    let (word, rest) = match about {
        About::Ask { asker } => ("ask", asker),
        About::Word { body } => ("word", body),
    };
    [word.as_bytes(), nonce.0.as_bytes(), rest].join(&0)
}

/// Whether somebody may be called that.
pub(crate) fn is_asker(name: &[u8]) -> bool {
    (1..=ASKER_BYTES_MAX).contains(&name.len())
}

impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Key")
    }
}

impl Nonce {
    /// One that there never was; nothing if the system has no random numbers.
    pub(crate) fn fresh() -> Option<Self> {
        Some(Self(hex(&chance::bytes::<NONCE_BYTES>()?)))
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let is_one = text.len() == NONCE_BYTES * 2 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_one.then(|| Self(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != bytes.len() * 2 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(at * 2..at * 2 + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(byte: u8) -> Key {
        Key::new(&[byte; 32]).unwrap()
    }

    #[test]
    fn a_proof_is_what_anybody_can_compute_who_has_the_key() {
        let nonce = Nonce::parse("000102030405060708090a0b0c0d0e0f").unwrap();
        // printf 'ask\0000102030405060708090a0b0c0d0e0f\0web_0' | openssl dgst -sha256 -mac HMAC -macopt hexkey:6b6b…
        let proof = key(b'k').prove_ask(&nonce, "web_0");
        assert_eq!(proof, ASK_PROOF);
        assert!(key(b'k').is_ask(&nonce, b"web_0", &proof));
    }

    const ASK_PROOF: &str = "e7e18259dda9a6e7aacba9b228f755615ebe9d4bdd0042bdb34851bb0524168d";

    #[test]
    fn a_proof_fits_one_key_one_question_one_content_and_one_direction() {
        let (nonce, other) = (Nonce::fresh().unwrap(), Nonce::fresh().unwrap());
        assert_ne!(nonce, other);
        let proof = key(1).prove_word(&nonce, b"body");
        assert!(key(1).is_word(&nonce, b"body", &proof));
        assert!(key(1).is_word(&nonce, b"body", &proof.to_uppercase()));
        assert!(!key(2).is_word(&nonce, b"body", &proof), "another key");
        assert!(!key(1).is_word(&other, b"body", &proof), "an answer to another question");
        assert!(!key(1).is_word(&nonce, b"bodY", &proof), "another answer");
        assert!(!key(1).is_ask(&nonce, b"body", &proof), "an answer is no question");
    }

    #[test]
    fn a_key_is_long_enough_and_not_everybodys() {
        use std::os::unix::fs::PermissionsExt as _;
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("peers.key");
        let read = |text: &str, mode: u32| {
            std::fs::write(&file, text).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            Key::read(&file)
        };
        let long = "x".repeat(32);
        let nonce = Nonce::fresh().unwrap();
        let one = read(&format!("{long}\n"), 0o600).unwrap();
        let other = read(&long, 0o640).unwrap();
        assert!(other.is_ask(&nonce, b"a", &one.prove_ask(&nonce, "a")), "a line end is no difference");
        for mode in [0o644, 0o602, 0o601] {
            assert!(matches!(read(&long, mode), Err(BadKey::Open)), "{mode:o}");
        }
        assert!(matches!(read(&"x".repeat(31), 0o600), Err(BadKey::Length(31))));
        assert!(matches!(read(&"x".repeat(5000), 0o600), Err(BadKey::Length(_))));
        assert!(matches!(Key::read(place.path()), Err(BadKey::NotAFile)));
        assert!(matches!(Key::read(&place.path().join("none")), Err(BadKey::Read(_))));
        assert_eq!(format!("{one:?}"), "Key", "it is never shown");
    }

    #[test]
    fn a_nonce_is_32_digits() {
        for wrong in ["", "00", &"g".repeat(32), &"é".repeat(16), &"0".repeat(33)] {
            assert_eq!(Nonce::parse(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn nothing_but_the_proof_is_one(text in "[0-9a-fé ]{0,70}", body in prop::collection::vec(any::<u8>(), 0..40)) {
            let nonce = Nonce::parse(&"0".repeat(32)).unwrap();
            let proof = key(1).prove_word(&nonce, &body);
            prop_assert_eq!(key(1).is_word(&nonce, &body, &text), text == proof);
        }

        #[test]
        fn one_bit_less_and_it_is_none(at in 0usize..256) {
            let nonce = Nonce::parse(&"0".repeat(32)).unwrap();
            let mut bytes = unhex(&key(1).prove_word(&nonce, b"x")).unwrap();
            bytes[at / 8] ^= 1 << (at % 8);
            prop_assert!(!key(1).is_word(&nonce, b"x", &hex(&bytes)));
        }
    }
}
