//! Names of hosts, tenants, scale sets and machines.
//!
//! A name is short and uses letters, digits, `.`, `_` and `-`, so it needs no escaping anywhere: not in JSON, not in a
//! URL, not on a command line. Copies share one allocation.

use std::fmt;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::flexible_suffix;
use crate::limits::NAME_BYTES_MAX;

/// A checked name; cheap to copy. A text in JSON, where only a chosen name is read; see [`derived_name`] for others.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct Name(Arc<str>);

/// The FNV-1a hash of a text, in which the case of ASCII letters makes no difference. The same on every computer.
///
/// ```
/// use forewarn_types::caseless_hash;
/// assert_eq!(caseless_hash("Web"), caseless_hash("wEB"));
/// assert_eq!(caseless_hash("a"), 0xe40c_292c);
/// ```
#[must_use]
pub fn caseless_hash(text: &str) -> u32 {
    let mix = |hash: u32, byte: u8| (hash ^ u32::from(byte.to_ascii_lowercase())).wrapping_mul(0x0100_0193);
    text.bytes().fold(0x811c_9dc5, mix)
}

/// The number of an instance in decimal digits. It has one spelling: no sign, no leading zero.
#[must_use]
pub fn instance_digits(digits: &str) -> Option<u32> {
    digits.parse().ok().filter(|number: &u32| number.to_string() == digits)
}

/// The reason why a text is not a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum BadName {
    /// The text is empty.
    #[error("a name must not be empty")]
    Empty,
    /// More than [`NAME_BYTES_MAX`] bytes.
    #[error("a name has at most {NAME_BYTES_MAX} characters; this one has {0}")]
    TooLong(usize),
    /// A character outside the permitted ones.
    #[error("a name has only letters, digits, '.', '_' and '-'; this one has {0:?}")]
    Character(char),
    /// `.` or `..`.
    #[error("a name must not be '.' or '..', which have a meaning in paths")]
    Dots,
}

/// Bytes that the number of a placement group or an instance may add to a name.
const SUFFIX_BYTES_MAX: usize = 11;

impl Name {
    /// Checks a text and makes it a name.
    ///
    /// ```
    /// use forewarn_types::Name;
    /// assert!(Name::new("web_0").is_ok());
    /// assert!(Name::new("web/0").is_err());
    /// ```
    ///
    /// # Errors
    /// The text is empty, too long, `.` or `..`, or has a character that a name may not have.
    pub fn new(text: &str) -> Result<Self, BadName> {
        // They have a meaning in URLs and file names, where names are written without escaping.
        if matches!(text, "." | "..") {
            return Err(BadName::Dots);
        }
        let chosen = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        Self::checked(text, NAME_BYTES_MAX, chosen)
    }

    /// A stored name: a chosen one, or one derived for a placement group or an instance.
    ///
    /// # Errors
    /// The text is neither a chosen name nor derived from one.
    pub fn restored(text: &str) -> Result<Self, BadName> {
        let given = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':');
        Self::checked(text, NAME_BYTES_MAX + SUFFIX_BYTES_MAX, given)
    }

    fn checked(text: &str, bytes_max: usize, permitted: impl Fn(char) -> bool) -> Result<Self, BadName> {
        if text.is_empty() {
            return Err(BadName::Empty);
        }
        if text.len() > bytes_max {
            return Err(BadName::TooLong(text.len()));
        }
        match text.chars().find(|&c| !permitted(c)) {
            Some(wrong) => Err(BadName::Character(wrong)),
            None => Ok(Self(text.into())),
        }
    }

    /// The name of the `n`-th placement group of a scale set: its own name for the first, `web:2` for the second.
    /// A chosen name has no colon.
    #[must_use]
    pub fn of_placement_group(&self, ordinal: usize) -> Self {
        if ordinal <= 1 { self.clone() } else { Self(format!("{self}:{ordinal}").into()) }
    }

    /// The name of an instance of a scale set: `web_5`.
    #[must_use]
    pub fn of_instance(&self, instance: u32) -> Self {
        Self(format!("{self}_{instance}").into())
    }

    /// The name of an instance of a flexible scale set: `web_c0ffee12`, the same for the same number. Numbers are less
    /// than [`FLEXIBLE_INSTANCES`](crate::FLEXIBLE_INSTANCES).
    #[must_use]
    pub fn of_flexible_instance(&self, instance: u32) -> Self {
        Self(format!("{self}_{}", flexible_suffix::suffix(caseless_hash(&self.0), instance)).into())
    }

    /// The number of an instance of that scale set: 5 for `web_5`, and for the fifth name of a flexible scale set.
    #[must_use]
    pub fn instance_number(&self, scale_set: &Self) -> Option<u32> {
        let suffix = self.0.strip_prefix(scale_set.as_str())?.strip_prefix('_')?;
        flexible_suffix::number(caseless_hash(&scale_set.0), suffix).or_else(|| instance_digits(suffix))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl TryFrom<String> for Name {
    type Error = BadName;

    fn try_from(text: String) -> Result<Self, BadName> {
        Self::new(&text)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// Names in JSON that are chosen, or derived for a placement group or an instance: `serde(with)`.
pub mod derived_name {
    use super::*;

    /// Writes a name.
    ///
    /// # Errors
    /// Fails if the serializer fails.
    pub fn serialize<S: Serializer>(name: &Name, serializer: S) -> Result<S::Ok, S::Error> {
        name.serialize(serializer)
    }

    /// Reads a name.
    ///
    /// # Errors
    /// Fails if the text is not a name.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
        Name::restored(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// Lists of such names: `serde(with)`.
pub mod derived_names {
    use super::*;

    /// Writes a list of names.
    ///
    /// # Errors
    /// Fails if the serializer fails.
    pub fn serialize<S: Serializer>(names: &[Name], serializer: S) -> Result<S::Ok, S::Error> {
        names.serialize(serializer)
    }

    /// Reads a list of names.
    ///
    /// # Errors
    /// Fails if a text is not a name.
    pub fn deserialize<'de, D: Deserializer<'de>, L: FromIterator<Name>>(
        deserializer: D,
    ) -> Result<L, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        texts.iter().map(|text| Name::restored(text)).collect::<Result<_, _>>().map_err(D::Error::custom)
    }
}

impl std::borrow::Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// promise: C3
    #[test]
    fn a_name_is_short_and_needs_no_escaping() {
        assert_eq!(Name::new(""), Err(BadName::Empty));
        assert_eq!(Name::new(&"a".repeat(81)), Err(BadName::TooLong(81)));
        assert!(Name::new(&"a".repeat(80)).is_ok());
        for wrong in ["a b", "a/b", "a\"b", "é", "a:2", "a\n"] {
            assert!(matches!(Name::new(wrong), Err(BadName::Character(_))), "{wrong:?}");
        }
        assert_eq!((Name::new("."), Name::new("..")), (Err(BadName::Dots), Err(BadName::Dots)));
        assert!(Name::new("...").is_ok() && Name::new(".a").is_ok());
        assert_eq!(Name::new("FrontEnd_IN_0.x-y").unwrap().as_str(), "FrontEnd_IN_0.x-y");
    }

    #[test]
    fn only_later_placement_groups_carry_a_number() {
        let web = Name::new("web").unwrap();
        assert_eq!(web.of_placement_group(1).as_str(), "web");
        assert_eq!(web.of_placement_group(2).as_str(), "web:2");
        assert_eq!(web.of_instance(7).as_str(), "web_7");
        assert_eq!(web.of_instance(7).instance_number(&web), Some(7));
        assert_eq!(web.instance_number(&web), None);
        for wrong in ["web_07", "web_+7", "web_", "web_7x", "db_7"] {
            assert_eq!(
                Name::new(wrong).map(|name| name.instance_number(&web)).unwrap_or_default(),
                None,
                "{wrong}"
            );
        }
        let flexible = web.of_flexible_instance(7);
        let stable = [0, 1].map(|number| web.of_flexible_instance(number).to_string());
        assert_eq!(stable, ["web_dd6d6b41", "web_c3d18c1c"], "stored names never change");
        assert_eq!((flexible.as_str().len(), flexible.instance_number(&web)), ("web_".len() + 8, Some(7)));
        let long = Name::new(&"a".repeat(80)).unwrap().of_instance(u32::MAX);
        for name in [web.of_placement_group(2), web.of_instance(7), flexible, long.clone(), web.clone()] {
            assert_eq!(Name::restored(name.as_str()), Ok(name));
        }
        for wrong in ["", "a b", &format!("{long}0")] {
            assert!(Name::restored(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(format!("{web:>5} {web:?}"), "  web \"web\"");
    }

    #[test]
    fn derived_names_need_their_own_deserializer() {
        let read = |json: &str| serde_json::from_str::<Name>(json);
        let derived = |json: &str| derived_name::deserialize(&mut serde_json::Deserializer::from_str(json));
        assert_eq!(read("\"web\"").unwrap().as_str(), "web");
        assert_eq!(derived("\"web:2\"").unwrap().as_str(), "web:2");
        for wrong in ["\"web:2\"", "\"..\"", "\"\"", "\"a b\"", "7"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        for wrong in ["\"\"", "\"a b\"", "7"] {
            assert!(derived(wrong).is_err(), "{wrong}");
        }
        let web = Name::new("web").unwrap().of_placement_group(2);
        assert_eq!(serde_json::to_string(&web).unwrap(), "\"web:2\"");
    }
}
