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

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Selection {
        #[serde(deserialize_with = "at_least_one")]
        hosts: Vec<String>,
        #[serde(default, deserialize_with = "at_least_one_or_absent")]
        tenants: Option<Vec<String>>,
    }

    #[test]
    fn a_list_has_an_entry_or_is_absent() {
        let read = |text: &str| serde_json::from_str::<Selection>(text).map_err(|error| error.to_string());
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let both = Selection { hosts: names(&["h1", "h2"]), tenants: Some(names(&["web"])) };
        assert_eq!(read(r#"{"hosts": ["h1", "h2"], "tenants": ["web"]}"#), Ok(both));
        assert_eq!(read(r#"{"hosts": ["h1"]}"#), Ok(Selection { hosts: names(&["h1"]), tenants: None }));
        for empty in [r#"{"hosts": []}"#, r#"{"hosts": ["h1"], "tenants": []}"#] {
            assert!(read(empty).unwrap_err().starts_with("an empty list: name at least one"), "{empty}");
        }
    }
}
