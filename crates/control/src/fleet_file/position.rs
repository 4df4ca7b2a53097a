//! Positions in a fleet: JSON pointers (RFC 6901), and the lines of a text at which they are.

use std::fmt;

use forewarn_types::BYTE_ORDER_MARK_BYTES;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Position of an entry or of one of its members in a fleet, as a JSON pointer: `/vm/3/host`. The empty pointer is
/// the whole fleet.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FleetPosition(String);

impl FleetPosition {
    /// The entry with that index in a list.
    pub(crate) fn item(&self, list: &str, index: usize) -> Self {
        Self(format!("{}/{list}/{index}", self.0))
    }

    /// A member of this entry. The names of members have neither `/` nor `~`.
    #[must_use]
    pub fn member(&self, name: &str) -> Self {
        Self(format!("{}/{name}", self.0))
    }

    /// Reads a pointer that a server has sent, without validation: a pointer to a missing value has no line.
    #[must_use]
    pub fn from_pointer(pointer: &str) -> Self {
        Self(pointer.to_owned())
    }

    #[must_use]
    pub fn pointer(&self) -> &str {
        &self.0
    }

    /// The line of a fleet file at which the value is, counted from 1. A member that the file leaves out is looked
    /// for at its entry.
    #[must_use]
    pub fn line_in_file(&self, toml: &str) -> Option<usize> {
        self.first_found(|steps| {
            let search = Search { steps, fail: StopAt::Inside };
            let error = search.deserialize(toml::Deserializer::parse(toml).ok()?).err()?;
            let before = toml.get(..error.span()?.start)?;
            Some(before.matches('\n').count() + 1)
        })
    }

    /// The line of a JSON text at which the value is, counted from 1.
    #[must_use]
    pub fn line_in_json(&self, json: &[u8]) -> Option<usize> {
        let json = json.strip_prefix(BYTE_ORDER_MARK_BYTES).unwrap_or(json);
        self.first_found(|steps| {
            let mut deserializer = serde_json::Deserializer::from_slice(json);
            let error = Search { steps, fail: StopAt::Before }.deserialize(&mut deserializer).err()?;
            Some(error.line())
        })
    }

    /// Searches the value, then the values around it, but never the whole fleet.
    fn first_found(&self, line: impl Fn(&[&str]) -> Option<usize>) -> Option<usize> {
        let steps: Vec<_> = self.0.split('/').skip(1).collect();
        (1..=steps.len()).rev().find_map(|count| line(&steps[..count]))
    }
}

impl fmt::Display for FleetPosition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Walks to a value and fails there, because the errors of a decoder are what carries positions. Ends without an
/// error if the value is missing.
struct Search<'a> {
    steps: &'a [&'a str],
    fail: StopAt,
}

/// The moment at which an error has the position of the value.
#[derive(Clone, Copy)]
enum StopAt {
    /// JSON: the position is how far the decoder has read.
    Before,
    /// TOML: the position is that of the value which the decoder reads.
    Inside,
}

/// Marks the error; the message is never shown.
const FOUND: &str = "found";

impl<'de> DeserializeSeed<'de> for Search<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match (self.fail, self.steps) {
            (StopAt::Before, []) => Err(D::Error::custom(FOUND)),
            (StopAt::Before | StopAt::Inside, _) => deserializer.deserialize_any(self),
        }
    }
}

/// A scalar is either the searched value, or a dead end.
macro_rules! scalars {
    ($($visit:ident: $type:ty),+) => {
        $(fn $visit<E: Error>(self, _: $type) -> Result<(), E> {
            self.arrive()
        })+
    };
}

impl Search<'_> {
    fn arrive<E: Error>(&self) -> Result<(), E> {
        if self.steps.is_empty() { Err(E::custom(FOUND)) } else { Ok(()) }
    }
}

impl<'de> Visitor<'de> for Search<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    scalars! { visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.arrive()
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let Some((step, rest)) = self.steps.split_first() else { return Err(A::Error::custom(FOUND)) };
        while let Some(name) = members.next_key::<String>()? {
            if name == *step {
                members.next_value_seed(Search { steps: rest, fail: self.fail })?;
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Some((step, rest)) = self.steps.split_first() else { return Err(A::Error::custom(FOUND)) };
        let wanted = step.parse::<usize>().ok();
        let mut index = 0;
        loop {
            let item = if Some(index) == wanted {
                items.next_element_seed(Search { steps: rest, fail: self.fail })?
            } else {
                items.next_element::<IgnoredAny>()?.map(drop)
            };
            if item.is_none() {
                return Ok(());
            }
            index += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# a comment\nhost = [\n  { name = 'h1' },\n  { name = 'h2', zone = 1 },\n]\n\n\
                        [[vm]]\nname = 'a'\nhost = 'h1'\n\n[[vm]]\nname = 'b'\n\nhost = 'h9'\n\n\
                        [[scale_set]]\nname = 's'\ninstance = [\n  { host = 'h1' },\n  { host = 'h2' }]\n\n\
                        [[availability_set]]\nname = 'db'\n[[availability_set.machine]]\nname = 'db-0'\nhost = 'h1'\n";

    #[test]
    fn a_value_of_a_file_has_the_line_on_which_it_stands() {
        for (pointer, line) in [
            ("/host/0", 3),
            ("/host/1/zone", 4),
            ("/vm/0/host", 9),
            ("/vm/1/name", 12),
            ("/vm/1/host", 14),
            ("/scale_set/0/name", 17),
            ("/scale_set/0/instance/1", 20),
            ("/scale_set/0/instance/1/host", 20),
            ("/availability_set/0/machine/0/name", 25),
        ] {
            let place = FleetPosition::from_pointer(pointer);
            assert_eq!(place.line_in_file(FILE), Some(line), "{pointer}");
        }
    }

    #[test]
    fn a_member_that_is_left_out_has_the_line_of_its_entry() {
        let line = |pointer: &str| FleetPosition::from_pointer(pointer).line_in_file(FILE);
        assert_eq!(line("/host/0/zone"), Some(3));
        assert_eq!(line("/vm/0/update_domain"), Some(7));
        assert_eq!(line("/vm/1/update_domain"), Some(11));
        assert_eq!(line("/availability_set/0/machine/0/spot"), Some(24));
    }

    #[test]
    fn a_pointer_to_a_missing_value_has_no_line() {
        for pointer in ["", "/", "/hots", "vm/0", "//", "/vm/x/y"] {
            let place = FleetPosition::from_pointer(pointer);
            assert_eq!(place.line_in_file("site = { location = 'a' }"), None, "{pointer}");
            assert_eq!(place.line_in_json(b"{}"), None, "{pointer}");
        }
        assert_eq!(FleetPosition::from_pointer("/vm/0").line_in_file("not toml"), None);
        assert_eq!(FleetPosition::from_pointer("/vm/0").line_in_file("\u{feff}vm = [{}]"), Some(1));
    }

    #[test]
    fn a_value_of_a_json_text_has_its_line_too() {
        let json = b"{\n  \"host\": [\n    {\"name\": \"h1\"}\n  ],\n  \"vm\": [\n    {\n      \"host\": \"h9\"\n    }\n  ]\n}";
        for (pointer, line) in [("/host/0", 3), ("/vm/0", 6), ("/vm/0/host", 7), ("/vm/0/name", 6)] {
            assert_eq!(FleetPosition::from_pointer(pointer).line_in_json(json), Some(line), "{pointer}");
        }
    }
}
