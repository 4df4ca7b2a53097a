//! Tokens: who may ask for what.
//!
//! A token is shown once, when it is issued, and kept as a hash. It says what its holder may do (a role) and to what
//! (a scope). One that has expired is still listed, so that people can see why it no longer works.

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::fmt;

use forewarn_lifecycle::{Name, Timestamp};
use forewarn_types::base64url;
use serde::{Deserialize, Serialize};

use crate::stream::ClusterId;

/// What is kept of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Never used again. It is part of the text of the token, so that the token is found without a search.
    pub number: u32,
    /// What people call it.
    pub name: Name,
    /// What its holder may do.
    pub role: Role,
    /// To what.
    pub scope: Scope,
    /// Of its whole text.
    pub hash: TokenHash,
    /// When it was issued.
    pub created: Timestamp,
    /// From when on it is good for nothing.
    pub expires: Option<Timestamp>,
    /// Who issued it.
    pub by: String,
}

/// What somebody may do. Each may do what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Role {
    /// Looks.
    Viewer,
    /// Works on machines and hosts.
    Operator,
    /// Says what there is, how it behaves, and who may do what.
    Admin,
}

/// What a token is good for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scope {
    /// In which clusters.
    pub clusters: Reach<ClusterId>,
    /// For which tenants of them, by name. A scale set stands for all its placement groups.
    pub tenants: Reach<Name>,
}

/// All of a kind, or only some.
///
/// An empty list of some is none, never all: a token whose last cluster is gone must not become good for every other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de> + Ord"))]
pub enum Reach<T> {
    /// All, those to come included.
    #[default]
    All,
    /// These.
    Only(BTreeSet<T>),
}

/// The SHA-256 of the text of a token. It shows itself to nobody; its JSON is for messages between servers.
#[derive(Clone, Copy, Eq, Serialize, Deserialize)]
pub struct TokenHash(#[serde(with = "base64url")] pub [u8; 32]);

impl Token {
    /// Whether it is good for nothing any more.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

impl Role {
    /// All of them, the lowest first.
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Operator, Self::Admin];

    /// What people call it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.as_str())
    }
}

impl Scope {
    /// Whether it leaves nothing out.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.clusters.is_all() && self.tenants.is_all()
    }
}

impl<T: Ord> Reach<T> {
    /// Whether it leaves nothing out.
    #[must_use]
    pub fn is_all(&self) -> bool {
        match self {
            Self::All => true,
            Self::Only(_) => false,
        }
    }

    /// Whether that one is among them.
    pub fn includes<Q: Ord + ?Sized>(&self, one: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        match self {
            Self::All => true,
            Self::Only(some) => some.contains(one),
        }
    }

    /// Those that are named.
    pub fn named(&self) -> impl Iterator<Item = &T> {
        let some = match self {
            Self::All => None,
            Self::Only(some) => Some(some),
        };
        some.into_iter().flatten()
    }
}

impl<T: Ord> FromIterator<T> for Reach<T> {
    /// These, and if there are none, none.
    fn from_iter<I: IntoIterator<Item = T>>(some: I) -> Self {
        Self::Only(some.into_iter().collect())
    }
}

impl PartialEq for TokenHash {
    /// How long it takes tells nothing of either: all bytes are compared.
    fn eq(&self, other: &Self) -> bool {
        let difference = self.0.iter().zip(other.0).fold(0, |all, (one, other)| all | (one ^ other));
        std::hint::black_box(difference) == 0
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("TokenHash(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(expires: Option<i64>) -> Token {
        Token {
            number: 3,
            name: Name::new("ci").unwrap(),
            role: Role::Operator,
            scope: Scope::default(),
            hash: TokenHash([0xab; 32]),
            created: Timestamp::from_millis(0),
            expires: expires.map(Timestamp::from_millis),
            by: "socket".to_owned(),
        }
    }

    #[test]
    fn a_token_is_good_until_it_expires() {
        let expired = |expires, now| token(expires).is_expired(Timestamp::from_millis(now));
        assert!(!expired(None, i64::MAX));
        assert!(!expired(Some(1_000), 999));
        assert!(expired(Some(1_000), 1_000) && expired(Some(1_000), 1_001));
    }

    #[test]
    fn a_token_does_not_show_its_hash() {
        let shown = format!("{:?}", token(None));
        assert!(
            shown.contains("TokenHash(secret)") && !shown.contains("171") && !shown.contains("ab, "),
            "{shown}"
        );
    }

    #[test]
    fn hashes_are_the_same_when_every_byte_is() {
        let hash = TokenHash([7; 32]);
        assert_eq!(hash, TokenHash([7; 32]));
        for at in 0..32 {
            let mut other = hash;
            other.0[at] ^= 0x80;
            assert_ne!(hash, other, "{at}");
        }
    }

    #[test]
    fn roles_are_in_order_and_have_words() {
        assert!(Role::ALL.is_sorted() && Role::Viewer < Role::Operator && Role::Operator < Role::Admin);
        assert_eq!(Role::ALL.map(|role| role.to_string()), ["viewer", "operator", "admin"]);
    }

    #[test]
    fn some_is_not_all_even_if_it_is_none() {
        let none = Reach::<Name>::from_iter([]);
        assert!(!none.is_all() && !none.includes("a") && none.named().next().is_none());
        let some = Reach::from_iter([Name::new("b").unwrap(), Name::new("a").unwrap()]);
        assert!(some.includes("a") && some.includes("b") && !some.includes("c") && !some.is_all());
        assert_eq!(some.named().map(Name::as_str).collect::<Vec<_>>(), ["a", "b"]);
        assert!(Reach::<Name>::All.includes("c") && Scope::default().is_all());
        assert!(!Scope { tenants: some, ..Scope::default() }.is_all());
    }
}
