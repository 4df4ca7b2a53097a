//! Authentication of peers by a shared key. Proofs are compared in constant time.

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use std::fmt;
use std::io::Read as _;
use std::path::Path;

use ring::hmac;

use crate::{os, random};

/// Header with the name of the requesting peer.
pub(crate) const PEER: &str = "forewarn-peer";
/// Header with the nonce.
pub(crate) const NONCE: &str = "forewarn-nonce";
/// Header with the proof.
pub(crate) const PROOF: &str = "forewarn-proof";

/// Limits of the length of a key.
const KEY_BYTES_MIN: usize = 32;
const KEY_BYTES_MAX: usize = 4096;

/// Random bytes of a nonce.
const NONCE_BYTES: usize = 16;

/// Limit of the length of a peer name.
const PEER_BYTES_MAX: usize = 1024;

#[derive(Clone)]
pub(crate) struct Key(hmac::Key);

/// A nonce: 32 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Nonce(String);

/// The reason why a key file is rejected.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadKey {
    #[error("cannot read the peer key: {0}")]
    Read(#[from] std::io::Error),
    #[error("the peer key is not a regular file")]
    NotAFile,
    #[error(
        "the peer key is accessible to all users\n  hint: chmod 600, and create a new key if it may have leaked"
    )]
    Open,
    #[error(
        "the peer key has {0} bytes, expected {KEY_BYTES_MIN} to {KEY_BYTES_MAX}\n  hint: openssl rand -hex 32"
    )]
    Length(usize),
}

/// The subject of a proof. Proofs of requests and of responses are not interchangeable.
enum ProofSubject<'a> {
    Request { peer: &'a [u8] },
    Response { body: &'a [u8] },
}

impl Key {
    /// Reads a key that only its owner and group can read. Trailing white space is ignored.
    pub(crate) fn read(file: &Path) -> Result<Self, BadKey> {
        let opened = std::fs::File::open(file)?;
        let subject = opened.metadata()?;
        if !subject.is_file() {
            return Err(BadKey::NotAFile);
        }
        if os::is_world_readable(&subject) {
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

    /// The proof of a request.
    pub(crate) fn prove_request(&self, nonce: &Nonce, peer: &str) -> String {
        self.prove(nonce, &ProofSubject::Request { peer: peer.as_bytes() })
    }

    /// True if a request was made with this key.
    pub(crate) fn is_request(&self, nonce: &Nonce, peer: &[u8], proof: &str) -> bool {
        self.is_proof(nonce, &ProofSubject::Request { peer }, proof)
    }

    /// The proof of a response to a request.
    pub(crate) fn prove_response(&self, nonce: &Nonce, body: &[u8]) -> String {
        self.prove(nonce, &ProofSubject::Response { body })
    }

    /// True if a response to this request was made with this key.
    pub(crate) fn is_response(&self, nonce: &Nonce, body: &[u8], proof: &str) -> bool {
        self.is_proof(nonce, &ProofSubject::Response { body }, proof)
    }

    fn prove(&self, nonce: &Nonce, subject: &ProofSubject<'_>) -> String {
        HEXLOWER.encode(hmac::sign(&self.0, &message(nonce, subject)).as_ref())
    }

    fn is_proof(&self, nonce: &Nonce, subject: &ProofSubject<'_>, proof: &str) -> bool {
        let Some(tag) = unhex(proof) else { return false };
        hmac::verify(&self.0, &message(nonce, subject), &tag).is_ok()
    }
}

/// The signed bytes. Only the last part may contain a zero, so that the encoding is unambiguous.
fn message(nonce: &Nonce, subject: &ProofSubject<'_>) -> Vec<u8> {
    let (label, rest) = match subject {
        ProofSubject::Request { peer } => ("request", peer),
        ProofSubject::Response { body } => ("response", body),
    };
    [label.as_bytes(), nonce.0.as_bytes(), rest].join(&0)
}

/// True for a valid name of a peer.
pub(crate) fn is_peer_name(name: &[u8]) -> bool {
    (1..=PEER_BYTES_MAX).contains(&name.len())
}

impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Key")
    }
}

impl Nonce {
    /// A new nonce; `None` if the system has no random numbers.
    pub(crate) fn random() -> Option<Self> {
        Some(Self(HEXLOWER.encode(&random::bytes::<NONCE_BYTES>()?)))
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let is_one = text.len() == NONCE_BYTES * 2 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_one.then(|| Self(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(byte: u8) -> Key {
        Key::new(&[byte; 32]).unwrap()
    }

    #[test]
    fn a_proof_is_an_hmac_of_the_request() {
        let nonce = Nonce::parse("000102030405060708090a0b0c0d0e0f").unwrap();
        // printf 'request\0000102030405060708090a0b0c0d0e0f\0web_0' | openssl dgst -sha256 -mac HMAC -macopt hexkey:6b6b…
        let proof = key(b'k').prove_request(&nonce, "web_0");
        assert_eq!(proof, REQUEST_PROOF);
        assert!(key(b'k').is_request(&nonce, b"web_0", &proof));
    }

    const REQUEST_PROOF: &str = "1002a8bacd24186b964fb86229dd3a9384a4aa529bdfdcfee3061485d9f51cb8";

    /// promise: A5
    #[test]
    fn a_proof_fits_one_key_one_question_one_content_and_one_direction() {
        let (nonce, other) = (Nonce::random().unwrap(), Nonce::random().unwrap());
        assert_ne!(nonce, other);
        let proof = key(1).prove_response(&nonce, b"body");
        assert!(key(1).is_response(&nonce, b"body", &proof));
        assert!(key(1).is_response(&nonce, b"body", &proof.to_uppercase()));
        assert!(!key(2).is_response(&nonce, b"body", &proof), "another key");
        assert!(!key(1).is_response(&other, b"body", &proof), "a response to another request");
        assert!(!key(1).is_response(&nonce, b"bodY", &proof), "another response");
        assert!(!key(1).is_request(&nonce, b"body", &proof), "a response is not a request");
    }

    #[test]
    fn a_key_is_long_enough_and_not_world_readable() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("peers.key");
        let read = |text: &str, mode: u32| {
            std::fs::write(&file, text).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            Key::read(&file)
        };
        let long = "x".repeat(32);
        let nonce = Nonce::random().unwrap();
        let one = read(&format!("{long}\n"), 0o600).unwrap();
        let other = read(&long, 0o640).unwrap();
        assert!(
            other.is_request(&nonce, b"a", &one.prove_request(&nonce, "a")),
            "trailing line ends are ignored"
        );
        for mode in [0o644, 0o602, 0o601] {
            assert!(matches!(read(&long, mode), Err(BadKey::Open)), "{mode:o}");
        }
        assert!(matches!(read(&"x".repeat(31), 0o600), Err(BadKey::Length(31))));
        assert!(matches!(read(&"x".repeat(5000), 0o600), Err(BadKey::Length(_))));
        assert!(matches!(Key::read(dir.path()), Err(BadKey::NotAFile)));
        assert!(matches!(Key::read(&dir.path().join("none")), Err(BadKey::Read(_))));
        assert_eq!(format!("{one:?}"), "Key", "the key is never printed");
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
            let proof = key(1).prove_response(&nonce, &body);
            prop_assert_eq!(key(1).is_response(&nonce, &body, &text), text == proof);
        }

        #[test]
        fn one_bit_less_and_it_is_none(at in 0usize..256) {
            let nonce = Nonce::parse(&"0".repeat(32)).unwrap();
            let mut bytes = unhex(&key(1).prove_response(&nonce, b"x")).unwrap();
            bytes[at / 8] ^= 1 << (at % 8);
            prop_assert!(!key(1).is_response(&nonce, b"x", &HEXLOWER.encode(&bytes)));
        }
    }
}
