//! The text of a token, and how its holder is let in.
//!
//! ```text
//!   fwt_NUMBER_SECRET     NUMBER finds it, SECRET is 32 random bytes in hexadecimal
//! ```
//!
//! The text is shown once. The shared has the SHA-256 of all of it, so that a number cannot be put before the secret of
//! another token; and a secret of 256 bits needs no slow hash: nobody guesses it.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};

use forewarn_control::shared::{SharedState, Token, TokenHash};
use forewarn_lifecycle::{Name, Timestamp};
use sha2::{Digest, Sha256};

use forewarn_control::Permit;

/// What every token begins with, so that one is known where it should not be.
const PREFIX: &str = "fwt_";

/// Random bytes in a token.
const SECRET_BYTES: usize = 32;

/// The random part of a token that is to be issued.
pub(crate) struct Secret([u8; SECRET_BYTES]);

/// What somebody has shown: a number, and the hash of all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) number: u32,
    pub(crate) hash: TokenHash,
}

/// Reason for rejecting a token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAdmitted {
    /// No token, an unknown one, or a revoked one. Clients must not be able to tell which.
    #[error("the token is missing or wrong\n  hint: --token TOKEN, or FOREWARN_TOKEN")]
    Wrong,
    /// The token was valid until it expired.
    #[error("the token has expired: {0}\n  hint: an admin can issue another: `forewarn token create`")]
    Expired(Name),
}

impl Secret {
    /// Another one.
    ///
    /// # Errors
    /// When no random numbers can be had.
    pub(crate) fn new() -> io::Result<Self> {
        let mut bytes = [0; SECRET_BYTES];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// The whole text of the token of that number.
    pub(crate) fn text(&self, number: u32) -> String {
        let secret: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{PREFIX}{number}_{secret}")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret(secret)")
    }
}

/// What is kept of a token.
pub(crate) fn hash(text: &str) -> TokenHash {
    TokenHash(Sha256::digest(text.as_bytes()).into())
}

impl Shown {
    /// What a text shows, if it looks like a token.
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

/// What the holder of that text may do.
pub(crate) fn admit(shared: &SharedState, text: &str, now: Timestamp) -> Result<Permit, NotAdmitted> {
    find(shared, text, now).map(Permit::of)
}

/// The token with that text.
///
/// # Errors
/// When there is none, or it has expired.
pub fn find<'a>(shared: &'a SharedState, text: &str, now: Timestamp) -> Result<&'a Token, NotAdmitted> {
    let shown = Shown::parse(text).ok_or(NotAdmitted::Wrong)?;
    let token = shared.find_token(shown.number).ok_or(NotAdmitted::Wrong)?;
    if token.hash != shown.hash {
        return Err(NotAdmitted::Wrong);
    }
    if token.is_expired(now) {
        return Err(NotAdmitted::Expired(token.name.clone()));
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
        changes.iter().for_each(|change| shared.evolve(now, change));
        text
    }

    #[test]
    fn a_token_lets_its_holder_in_until_it_expires_or_is_revoked() {
        let mut shared = SharedState::new();
        let text = issue(&mut shared, "ci", Some(1_000));
        let at = |shared: &SharedState, millis| admit(shared, &text, Timestamp::from_millis(millis));
        let permit = at(&shared, 999).unwrap();
        assert_eq!((permit.by.as_str(), permit.role), ("token ci", Role::Operator));
        let expired = at(&shared, 1_000).unwrap_err();
        assert_eq!(expired, NotAdmitted::Expired(Name::new("ci").unwrap()));
        let revoke = Command::RevokeToken(Name::new("ci").unwrap());
        for change in shared.decide(Now::at_millis(0), &revoke).unwrap() {
            shared.evolve(Now::at_millis(0), &change);
        }
        assert_eq!(at(&shared, 0), Err(NotAdmitted::Wrong));
    }

    #[test]
    fn nothing_else_is_taken_for_a_token() {
        let mut shared = SharedState::new();
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
            assert_eq!(admitted(wrong), Err(NotAdmitted::Wrong), "{wrong:?}");
        }
        // Letters in the secret of another case make another text.
        assert!(upper == one || admitted(&upper) == Err(NotAdmitted::Wrong));
        let last = if one.ends_with('0') { '1' } else { '0' };
        assert_eq!(admitted(&format!("{}{last}", &one[..one.len() - 1])), Err(NotAdmitted::Wrong));
    }

    #[test]
    fn no_two_secrets_are_the_same_and_none_shows_itself() {
        let (one, two) = (Secret::new().unwrap(), Secret::new().unwrap());
        assert_ne!(one.text(0), two.text(0));
        assert_eq!(format!("{one:?}"), "Secret(secret)");
        let shown = Shown::parse(&one.text(4_294_967_295)).unwrap();
        assert_eq!(shown.number, u32::MAX);
        assert_eq!(format!("{shown:?}"), "Shown { number: 4294967295, hash: TokenHash(secret) }");
        assert_eq!(shown.hash, hash(&one.text(u32::MAX)));
        let wrong = NotAdmitted::Wrong.to_string();
        assert!(wrong.starts_with("the token is missing or wrong\n  hint: "));
    }
}
