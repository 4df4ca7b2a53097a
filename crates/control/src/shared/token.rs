//! Tokens: the permissions of callers.
//!
//! A token is shown once, when it is issued, and stored as a hash. It has a role and a scope. An expired token is
//! still listed, so that operators can see why it no longer works.

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::fmt;

use forewarn_lifecycle::{Name, Timestamp};
use forewarn_types::base64url;
use serde::{Deserialize, Serialize};

use crate::stream::ClusterId;

/// A token, without its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its number, which is never used again. It is part of the text, so that the token is found without a search.
    pub number: u32,
    pub name: Name,
    /// The role of its holder.
    pub role: Role,
    /// The clusters and tenants that it is limited to.
    pub scope: Scope,
    /// SHA-256 of its text.
    pub hash: TokenHash,
    /// Time at which it was issued.
    pub created: Timestamp,
    /// Time at which it expires.
    pub expires: Option<Timestamp>,
    /// The caller that issued it.
    pub by: String,
}

/// Permitted actions. Each role includes the roles before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Role {
    /// Reads everything in its scope.
    Viewer,
    /// Works on machines and hosts.
    Operator,
    /// Adds and removes objects, and changes settings, tokens and webhooks.
    Admin,
}

/// The scope of a token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scope {
    pub clusters: Reach<ClusterId>,
    /// The tenants in these clusters, by name. A scale set stands for all of its placement groups.
    pub tenants: Reach<Name>,
}

/// All objects of a kind, or only some.
///
/// An empty list means none, never all: a token whose last cluster was removed must not become valid for every other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de> + Ord"))]
pub enum Reach<T> {
    /// All, including objects that are created later.
    #[default]
    All,
    Only(BTreeSet<T>),
}

/// SHA-256 of the text of a token. `Debug` hides it; its JSON is for messages between servers.
#[derive(Clone, Copy, Eq, Serialize, Deserialize)]
pub struct TokenHash(#[serde(with = "base64url")] pub [u8; 32]);

impl Token {
    /// Returns true if the token has expired.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

impl Role {
    /// All roles, the lowest first.
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Operator, Self::Admin];

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
    /// Returns true if nothing is excluded.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.clusters.is_all() && self.tenants.is_all()
    }
}

impl<T: Ord> Reach<T> {
    /// Returns true if nothing is excluded.
    #[must_use]
    pub fn is_all(&self) -> bool {
        match self {
            Self::All => true,
            Self::Only(_) => false,
        }
    }

    /// Returns true if the item is included.
    pub fn includes<Q: Ord + ?Sized>(&self, one: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        match self {
            Self::All => true,
            Self::Only(some) => some.contains(one),
        }
    }

    /// The items of a list.
    pub fn named(&self) -> impl Iterator<Item = &T> {
        let some = match self {
            Self::All => None,
            Self::Only(some) => Some(some),
        };
        some.into_iter().flatten()
    }
}

impl<T: Ord> FromIterator<T> for Reach<T> {
    /// Only these items; no items mean none.
    fn from_iter<I: IntoIterator<Item = T>>(some: I) -> Self {
        Self::Only(some.into_iter().collect())
    }
}

impl PartialEq for TokenHash {
    /// Compares all bytes, so that the duration reveals nothing.
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

    /// promise: S4
    #[test]
    fn a_token_does_not_show_its_hash() {
        let shown = format!("{:?}", token(None));
        assert!(
            shown.contains("TokenHash(secret)") && !shown.contains("171") && !shown.contains("ab, "),
            "{shown}"
        );
    }

    /// promise: S4
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
