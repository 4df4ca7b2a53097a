//! Access tokens: JSON web tokens that this server signs, and that only this server verifies, or another one of its realm.
//!
//! ```text
//!   header.claims.signature      signature = HMAC-SHA256 with the key of the operator's token behind it
//!                                that key  = HMAC-SHA256 of the hash of that token, with the key of the server or realm
//! ```
//!
//! A signed token is valid as long as the operator's token is: that one is looked up at every request. Neither another
//! token with the same number nor another server can have signed it. Its times are real, not those of a virtual clock.

use std::fmt;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use forewarn_control::shared::{SharedState, Token};
use forewarn_lifecycle::Timestamp;
use forewarn_server::operator::TokenError;
use forewarn_server::tls::write_whole;
use forewarn_types::base64url::{decode, encode};
use ring::hmac;
use serde_json::{Map, Value, json};

/// File of the server's key, in the directory of its authority.
const KEY_FILE: &str = "tokens.key";

/// Bytes of a key.
const KEY_BYTES: usize = 32;

/// Characters of a signed token.
const TEXT_CHARS_MAX: usize = 4_096;

/// Claim with the number of the operator's token.
const NUMBER: &str = "fwt";

/// Claim with the purpose.
const PURPOSE: &str = "use";

/// Purpose of a signed token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Access,
    Refresh,
}

/// Signs and verifies tokens with the key of the server.
pub(crate) struct Signer(hmac::Key);

impl Purpose {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Access => "access",
            Self::Refresh => "refresh",
        }
    }

    /// Lifetime of a token.
    pub(super) const fn life(self) -> Duration {
        match self {
            Self::Access => Duration::from_hours(1),
            Self::Refresh => Duration::from_hours(24 * 14),
        }
    }
}

impl Signer {
    /// A signer with a random key, which is lost with it.
    pub(crate) fn forgetful() -> io::Result<Self> {
        Ok(Self::with(&random()?))
    }

    /// A signer with the key in a directory; creates the key, if there is none.
    pub(crate) fn kept_in(directory: &Path) -> io::Result<Self> {
        let file = directory.join(KEY_FILE);
        match fs::read_to_string(&file) {
            Ok(text) => match decode(text.trim()).filter(|key| key.len() == KEY_BYTES) {
                Some(key) => Ok(Self::with(&key)),
                None => {
                    let wrong = format!(
                        "not a key of this server: {}\n  hint: remove it; clients then log in again",
                        file.display()
                    );
                    Err(io::Error::new(ErrorKind::InvalidData, wrong))
                }
            },
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let key = random()?;
                fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
                write_whole(&file, &encode(&key), 0o600)?;
                Ok(Self::with(&key))
            }
            Err(error) => Err(error),
        }
    }

    /// A signer with the secret of a realm: a token of one server is valid on all of them.
    pub(crate) fn of_realm(secret: &[u8]) -> Self {
        Self::with(secret)
    }

    fn with(key: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, key))
    }

    /// The key for an operator's token. Tokens that stand for none are never admitted.
    fn key_of(&self, token: Option<&Token>) -> hmac::Key {
        let hash = token.map_or(&[][..], |token| &token.hash.0);
        hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&self.0, hash).as_ref())
    }

    /// Signs claims for an operator's token, or for none; adds the claims that every token has.
    pub(super) fn sign(
        &self,
        mut claims: Map<String, Value>,
        purpose: Purpose,
        token: Option<&Token>,
        now: SystemTime,
    ) -> String {
        let begins = seconds(now);
        let ends = begins.saturating_add(purpose.life().as_secs());
        let mut claim = |name: &str, value: Value| claims.insert(name.to_owned(), value);
        claim("iat", json!(begins));
        claim("nbf", json!(begins));
        claim("exp", json!(ends));
        claim(PURPOSE, json!(purpose.as_str()));
        if let Some(token) = token {
            claim(NUMBER, json!(token.number));
        }
        let header = json!({ "typ": "JWT", "alg": "HS256" }).to_string();
        let signed = format!(
            "{}.{}",
            encode(header.as_bytes()),
            encode(&Value::Object(claims).to_string().into_bytes())
        );
        let signature = hmac::sign(&self.key_of(token), signed.as_bytes());
        format!("{signed}.{}", encode(signature.as_ref()))
    }

    /// The operator's token behind a signed one. `now` is the real time, `wall` that of the server's clock.
    pub(super) fn admit<'a>(
        &self,
        shared: &'a SharedState,
        text: &str,
        purpose: Purpose,
        (now, wall): (SystemTime, Timestamp),
    ) -> Result<&'a Token, TokenError> {
        let (claims, signed, signature) = parts(text).ok_or(TokenError::Invalid)?;
        let number = claims[NUMBER].as_u64().and_then(|number| u32::try_from(number).ok());
        let token = number.and_then(|number| shared.find_token(number)).ok_or(TokenError::Invalid)?;
        // Takes constant time.
        let verified = hmac::verify(&self.key_of(Some(token)), signed.as_bytes(), &signature);
        if verified.is_err() || claims[PURPOSE] != purpose.as_str() {
            return Err(TokenError::Invalid);
        }
        let is_over = claims["exp"].as_u64().is_none_or(|ends| ends <= seconds(now));
        if is_over || token.is_expired(wall) {
            return Err(TokenError::Expired(token.name.clone()));
        }
        Ok(token)
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Signer(secret)")
    }
}

/// Unverified claims, the signed text, and the signature.
fn parts(text: &str) -> Option<(Value, &str, Vec<u8>)> {
    if text.len() > TEXT_CHARS_MAX {
        return None;
    }
    let (signed, signature) = text.rsplit_once('.')?;
    let (_, claims) = signed.split_once('.')?;
    Some((serde_json::from_slice(&decode(claims)?).ok()?, signed, decode(signature)?))
}

fn seconds(now: SystemTime) -> u64 {
    now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn random() -> io::Result<[u8; KEY_BYTES]> {
    let mut bytes = [0; KEY_BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use forewarn_control::shared::{Command, Role, Scope, TokenHash};
    use forewarn_lifecycle::{Name, Now, Seed};
    use proptest::prelude::*;
    use sha2::{Digest, Sha256};
    use std::os::unix::fs::PermissionsExt;

    const WALL: Timestamp = Timestamp::from_millis(0);

    /// A shared state with one token of that text.
    fn shared_with(text: &str, expires: Option<i64>) -> SharedState {
        let (mut shared, now) = (SharedState::new(Seed([1; 16])), Now::at_millis(0));
        let command = Command::IssueToken {
            number: shared.next_token(),
            name: Name::new("ci").unwrap(),
            role: Role::Operator,
            scope: Scope::default(),
            hash: TokenHash(Sha256::digest(text.as_bytes()).into()),
            expires: expires.map(Timestamp::from_millis),
            by: "socket".to_owned(),
        };
        let changes = shared.decide(now, &command).unwrap();
        changes.iter().for_each(|change| drop(shared.apply(now, change)));
        shared
    }

    fn signed(signer: &Signer, shared: &SharedState, purpose: Purpose, now: SystemTime) -> String {
        signer.sign(Map::new(), purpose, shared.tokens().next(), now)
    }

    /// promise: Z5
    #[test]
    fn a_signed_token_is_good_for_an_hour_and_for_as_long_as_the_one_behind_it() {
        let signer = Signer::forgetful().unwrap();
        let shared = shared_with("secret", Some(5_000));
        let now = UNIX_EPOCH + Duration::from_hours(1_000);
        let text = signed(&signer, &shared, Purpose::Access, now);
        let at = |after: Duration, wall: i64| {
            let times = (now + after, Timestamp::from_millis(wall));
            signer.admit(&shared, &text, Purpose::Access, times).map(|token| token.name.to_string())
        };
        assert_eq!(at(Duration::ZERO, 0), Ok("ci".to_owned()));
        assert_eq!(at(Duration::from_secs(3_599), 4_999), Ok("ci".to_owned()));
        let expired = Err(TokenError::Expired(Name::new("ci").unwrap()));
        assert_eq!(at(Duration::from_hours(1), 0), expired);
        assert_eq!(at(Duration::ZERO, 5_000), expired);
        let unbound = SharedState::new(Seed([1; 16]));
        let revoked = signer.admit(&unbound, &text, Purpose::Access, (now, WALL));
        assert_eq!(revoked, Err(TokenError::Invalid));
    }

    /// promise: Z5
    #[test]
    fn forged_and_modified_tokens_are_rejected() {
        let signer = Signer::forgetful().unwrap();
        let (shared, now) = (shared_with("secret", None), SystemTime::now());
        let admit = |shared: &SharedState, text: &str| {
            signer.admit(shared, text, Purpose::Access, (now, WALL)).map(|token| token.number)
        };
        let text = signed(&signer, &shared, Purpose::Access, now);
        assert!(admit(&shared, &text).is_ok());
        let same_number = shared_with("another secret", None);
        assert_eq!(admit(&same_number, &text), Err(TokenError::Invalid), "another token under its number");
        let other = signed(&Signer::forgetful().unwrap(), &shared, Purpose::Access, now);
        assert_eq!(admit(&shared, &other), Err(TokenError::Invalid), "another server");
        let refresh = signed(&signer, &shared, Purpose::Refresh, now);
        assert_eq!(admit(&shared, &refresh), Err(TokenError::Invalid), "for something else");
        let unbound = signer.sign(Map::new(), Purpose::Access, None, now);
        assert_eq!(admit(&shared, &unbound), Err(TokenError::Invalid), "without a token");
        let parts: Vec<_> = text.split('.').collect();
        let unsigned = format!("{}.{}.", encode(br#"{"alg":"none"}"#), parts[1]);
        let later = encode(format!(r#"{{"exp":99999999999,"use":"access","{NUMBER}":1}}"#).as_bytes());
        let forged = format!("{}.{later}.{}", parts[0], parts[2]);
        let long = format!("{text}{}", "A".repeat(TEXT_CHARS_MAX));
        for wrong in ["", ".", "..", "a.b.c", parts[1], &unsigned, &forged, &text[..text.len() - 1], &long] {
            assert_eq!(admit(&shared, wrong), Err(TokenError::Invalid), "{wrong}");
        }
    }

    /// promise: Z5
    #[test]
    fn a_token_of_one_server_of_a_realm_is_valid_on_the_others() {
        let (shared, now) = (shared_with("secret", None), SystemTime::now());
        let text = signed(&Signer::of_realm(&[5; KEY_BYTES]), &shared, Purpose::Access, now);
        let admit = |key: u8| {
            let signer = Signer::of_realm(&[key; KEY_BYTES]);
            signer.admit(&shared, &text, Purpose::Access, (now, WALL)).map(|token| token.number)
        };
        assert!(admit(5).is_ok());
        assert_eq!(admit(6), Err(TokenError::Invalid), "another realm");
    }

    proptest! {
        #[test]
        fn arbitrary_text_is_rejected(text in "(.{0,20}\\.){0,3}.{0,20}", claims in ".{0,40}") {
            let signer = Signer::with(&[7; KEY_BYTES]);
            let shared = shared_with("secret", None);
            let times = (UNIX_EPOCH, WALL);
            for text in [text, format!("e30.{}.e30", encode(claims.as_bytes()))] {
                prop_assert_eq!(signer.admit(&shared, &text, Purpose::Access, times), Err(TokenError::Invalid));
            }
        }
    }

    #[test]
    fn a_key_is_made_once_and_is_for_the_owner_alone() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path().join("tls");
        let (shared, now) = (shared_with("secret", None), SystemTime::now());
        let text = signed(&Signer::kept_in(&directory).unwrap(), &shared, Purpose::Access, now);
        let again = Signer::kept_in(&directory).unwrap();
        assert!(again.admit(&shared, &text, Purpose::Access, (now, WALL)).is_ok());
        let file = directory.join(KEY_FILE);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(format!("{again:?}"), "Signer(secret)");
        fs::write(&file, "half").unwrap();
        assert!(Signer::kept_in(&directory).unwrap_err().to_string().contains("hint: remove it"));
    }
}
