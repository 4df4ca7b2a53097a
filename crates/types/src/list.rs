//! Lists in requests and settings that select things.
//!
//! An empty list is an error if a missing list means "no limit": a program that computes an empty selection must not
//! select everything.

use serde::{Deserialize, Deserializer};

/// Reads a list that has at least one entry.
///
/// # Errors
/// The list is empty, or an entry is invalid.
pub fn at_least_one<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    check(Vec::deserialize(deserializer)?)
}

/// Reads a list that is absent or has at least one entry.
///
/// # Errors
/// The list is empty, or an entry is invalid.
pub fn at_least_one_or_absent<'de, D, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer)?.map(check).transpose()
}

fn check<T, E: serde::de::Error>(list: Vec<T>) -> Result<Vec<T>, E> {
    if list.is_empty() { Err(E::custom("an empty list: name at least one")) } else { Ok(list) }
}
