//! Token texts, and authentication by token.
//!
//! ```text
//!   fwt_NUMBER_SECRET     NUMBER finds it, SECRET is 32 random bytes in hexadecimal
//! ```
//!
//! The text is returned once. The shared state stores the SHA-256 of the whole text, so that a number cannot be
//! combined with the secret of another token. A secret of 256 bits needs no slow hash.

use data_encoding::HEXLOWER;
use std::fmt;
use std::io;

use forewarn_control::shared::{SharedState, Token, TokenHash};
use forewarn_lifecycle::{Name, Timestamp};
use sha2::{Digest, Sha256};

use forewarn_control::Permit;

/// Prefix of every token, which makes leaked tokens easy to find.
const PREFIX: &str = "fwt_";

/// Random bytes in a token.
const SECRET_BYTES: usize = 32;

/// The random part of a new token.
pub(crate) struct Secret([u8; SECRET_BYTES]);

/// A token that a caller presents: its number, and the hash of the whole text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PresentedToken {
    pub(crate) number: u32,
    pub(crate) hash: TokenHash,
}

/// Reason for rejecting a token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// No token, an unknown one, or a revoked one. Clients must not be able to tell which.
    #[error(
        "the token is missing or invalid\n  hint: `forewarn context set NAME --token-file FILE`, or FOREWARN_TOKEN"
    )]
    Invalid,
    /// The token was valid until it expired.
    #[error("the token has expired: {0}\n  hint: an admin can issue another: `forewarn token create`")]
    Expired(Name),
}

impl Secret {
    /// Generates a secret.
    ///
    /// # Errors
    /// Returns an error if no random numbers are available.
    pub(crate) fn new() -> io::Result<Self> {
        let mut bytes = [0; SECRET_BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// The text of the token with this number.
    pub(crate) fn text(&self, number: u32) -> String {
        format!("{PREFIX}{number}_{}", HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret(secret)")
    }
}

/// The stored hash of a token.
pub(crate) fn hash(text: &str) -> TokenHash {
    TokenHash(Sha256::digest(text.as_bytes()).into())
}

impl PresentedToken {
    /// Parses a text that has the form of a token.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (number, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let is_secret =
            secret.len() == 2 * SECRET_BYTES && secret.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_digits(number) || !is_secret {
            return None;
        }
        Some(Self { number: number.parse().ok()?, hash: hash(text) })
    }
}

/// The permit of the token with this text.
pub(crate) fn admit(shared: &SharedState, text: &str, now: Timestamp) -> Result<Permit, TokenError> {
    find(shared, text, now).map(Permit::of)
}

/// Finds the token with this text.
///
/// # Errors
/// Returns an error if there is none, or it has expired.
pub fn find<'a>(shared: &'a SharedState, text: &str, now: Timestamp) -> Result<&'a Token, TokenError> {
    let presented = PresentedToken::parse(text).ok_or(TokenError::Invalid)?;
    let token = shared.find_token(presented.number).ok_or(TokenError::Invalid)?;
    if token.hash != presented.hash {
        return Err(TokenError::Invalid);
    }
    if token.is_expired(now) {
        return Err(TokenError::Expired(token.name.clone()));
    }
    Ok(token)
}

#[cfg(test)]
mod tests {
    use forewarn_control::shared::{Command, Role, Scope};
    use forewarn_lifecycle::Now;

    use super::*;

    /// A shared state with another token, and its text.
    fn issue(shared: &mut SharedState, name: &str, expires: Option<i64>) -> String {
        let now = Now::at_millis(0);
        let number = shared.next_token();
        let text = Secret::new().unwrap().text(number);
        let command = Command::IssueToken {
            number,
            name: Name::new(name).unwrap(),
            role: Role::Operator,
            scope: Scope::default(),
            hash: hash(&text),
            expires: expires.map(Timestamp::from_millis),
            by: "socket".to_owned(),
        };
        let changes = shared.decide(now, &command).unwrap();
        changes.iter().for_each(|change| drop(shared.apply(now, change)));
        text
    }

    /// promise: S2
    #[test]
    fn a_token_is_valid_until_it_expires_or_is_revoked() {
        let mut shared = SharedState::new(forewarn_lifecycle::Seed([7; 16]));
        let text = issue(&mut shared, "ci", Some(1_000));
        let at = |shared: &SharedState, millis| admit(shared, &text, Timestamp::from_millis(millis));
        let permit = at(&shared, 999).unwrap();
        assert_eq!((permit.by.as_str(), permit.role), ("token ci", Role::Operator));
        let expired = at(&shared, 1_000).unwrap_err();
        assert_eq!(expired, TokenError::Expired(Name::new("ci").unwrap()));
        let revoke = Command::RevokeToken(Name::new("ci").unwrap());
        for change in shared.decide(Now::at_millis(0), &revoke).unwrap() {
            shared.apply(Now::at_millis(0), &change);
        }
        assert_eq!(at(&shared, 0), Err(TokenError::Invalid));
    }

    /// promise: S2
    #[test]
    fn nothing_else_is_taken_for_a_token() {
        let mut shared = SharedState::new(forewarn_lifecycle::Seed([7; 16]));
        let (one, two) = (issue(&mut shared, "one", None), issue(&mut shared, "two", None));
        let admitted = |text: &str| admit(&shared, text, Timestamp::from_millis(0));
        assert!(admitted(&one).is_ok() && admitted(&two).is_ok());
        let of_the_other = one.replace("fwt_0_", "fwt_1_");
        let secret = &one["fwt_0_".len()..];
        let unknown = format!("fwt_7_{secret}");
        let beyond = format!("fwt_4294967296_{secret}");
        let (padded, signed) = (format!("fwt_00_{secret}"), format!("fwt_+0_{secret}"));
        let upper = format!("fwt_0_{}", secret.to_uppercase());
        for wrong in [
            "",
            "fwt_",
            "fwt_0",
            "fwt_0_",
            secret,
            &of_the_other,
            &unknown,
            &beyond,
            &padded,
            &signed,
            &one[..one.len() - 1],
            &format!("{one}0"),
            &format!(" {one}"),
            "fwk_0_00",
            "fwt__0",
        ] {
            assert_eq!(admitted(wrong), Err(TokenError::Invalid), "{wrong:?}");
        }
        // Upper-case letters make a different text.
        assert!(upper == one || admitted(&upper) == Err(TokenError::Invalid));
        let last = if one.ends_with('0') { '1' } else { '0' };
        assert_eq!(admitted(&format!("{}{last}", &one[..one.len() - 1])), Err(TokenError::Invalid));
    }

    /// promise: S4
    #[test]
    fn secrets_differ_and_are_redacted_in_debug_output() {
        let (one, two) = (Secret::new().unwrap(), Secret::new().unwrap());
        assert_ne!(one.text(0), two.text(0));
        assert_eq!(format!("{one:?}"), "Secret(secret)");
        let presented = PresentedToken::parse(&one.text(4_294_967_295)).unwrap();
        assert_eq!(presented.number, u32::MAX);
        assert_eq!(
            format!("{presented:?}"),
            "PresentedToken { number: 4294967295, hash: TokenHash(secret) }"
        );
        assert_eq!(presented.hash, hash(&one.text(u32::MAX)));
        let wrong = TokenError::Invalid.to_string();
        assert!(wrong.starts_with("the token is missing or invalid\n  hint: "));
    }
}
