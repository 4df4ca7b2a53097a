//! CPUs and memory in entries: sizes of machines, capacities of hosts.

use std::borrow::Cow;
use std::fmt;
use std::num::{NonZeroU16, NonZeroU32};
use std::str::FromStr;

use forewarn_lifecycle::Size;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An amount of memory in MiB; a text such as `8GiB` in JSON and TOML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory(NonZeroU32);

/// A text that is not an amount of memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an amount of memory: {0:?}\n  hint: write 512MiB, 8GiB or 2TiB")]
pub struct NotMemory(String);

/// The units, the number of MiB in each, and the digits that a number of them may have.
const UNITS: [(&str, u32, usize); 3] = [("MiB", 1, 9), ("GiB", 1 << 10, 6), ("TiB", 1 << 20, 3)];

const PATTERN: &str = "^([1-9][0-9]{0,8}MiB|[1-9][0-9]{0,5}GiB|[1-9][0-9]{0,2}TiB)$";

impl FromStr for Memory {
    type Err = NotMemory;

    fn from_str(text: &str) -> Result<Self, NotMemory> {
        let parse = |(unit, mib, digits_max): (&str, u32, usize)| {
            let digits = text.strip_suffix(unit)?;
            let is_number = digits.len() <= digits_max && digits.bytes().all(|byte| byte.is_ascii_digit());
            let number = digits.parse::<u32>().ok().filter(|_| is_number && !digits.starts_with('0'))?;
            NonZeroU32::new(number.checked_mul(mib)?)
        };
        let mib = UNITS.into_iter().find_map(parse);
        mib.map(Self).ok_or_else(|| NotMemory(text.chars().take(100).collect()))
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.get() {
            mib if mib.is_multiple_of(1024) => write!(out, "{}GiB", mib / 1024),
            mib => write!(out, "{mib}MiB"),
        }
    }
}

impl Serialize for Memory {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Memory {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for Memory {
    fn schema_name() -> Cow<'static, str> {
        "Memory".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "An amount of memory, such as `512MiB`, `8GiB` or `2TiB`.",
            "type": "string",
            "pattern": PATTERN,
        })
    }
}

/// CPUs and memory of an entry as a size.
pub(crate) fn size(cpus: Option<NonZeroU16>, memory: Option<Memory>) -> Size {
    Size { cpus: cpus.map_or(0, NonZeroU16::get), memory_mib: memory.map_or(0, |memory| memory.0.get()) }
}

/// A size as CPUs and memory of an entry.
#[must_use]
pub fn cpus_and_memory(size: Size) -> (Option<NonZeroU16>, Option<Memory>) {
    (NonZeroU16::new(size.cpus), NonZeroU32::new(size.memory_mib).map(Memory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_as_it_is_written() {
        for (text, mib) in [("1MiB", 1), ("8GiB", 8 * 1024), ("2TiB", 2 << 20), ("999TiB", 999 << 20)] {
            assert_eq!(text.parse::<Memory>().unwrap().0.get(), mib, "{text}");
        }
        for text in ["1536MiB", "8GiB", "2048GiB"] {
            assert_eq!(text.parse::<Memory>().unwrap().to_string(), text);
        }
        assert_eq!("2TiB".parse::<Memory>().unwrap().to_string(), "2048GiB");
    }

    #[test]
    fn other_texts_are_no_memory() {
        for text in
            ["", "8", "GiB", "0GiB", "08GiB", "+8GiB", "8 GiB", "8gib", "8GB", "1000TiB", "9999999999MiB"]
        {
            assert!(text.parse::<Memory>().is_err(), "{text}");
        }
    }
}
