//! Checks of foreign JSON before and during parsing: its depth, and the few relevant members.

use std::fmt;

use forewarn_types::limits::IDS_PER_APPROVAL_MAX;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Maximum nesting of objects and lists in all input. The published formats need half of it.
pub const DEPTH_MAX: usize = 8;

/// Characters in one `EventId`; a GUID needs 36.
pub const EVENT_ID_CHARS_MAX: usize = 64;

/// Returns true if brackets are nested deeper than [`DEPTH_MAX`].
pub(crate) fn is_too_deep(text: &str) -> bool {
    is_deeper_than(text, DEPTH_MAX)
}

/// Returns true if brackets are nested deeper than `depth_max`. Scans brackets and strings only, so it runs before the
/// parser, whose own limit is far higher, and costs one pass.
#[must_use]
pub fn is_deeper_than(text: &str, depth_max: usize) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > depth_max {
            return true;
        }
    }
    false
}

/// The relevant part of a JSON value in a start request. The rest is skipped, so a body takes no more memory than its
/// ids need.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Json {
    /// Its relevant members, each at most twice.
    Object(Vec<Json>),
    List(Vec<Json>),
    Text(String),
    /// Anything else.
    Other,
}

/// The position of a value in a start request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JsonPosition {
    Body,
    /// `StartRequests` of the body.
    Requests,
    /// One of `StartRequests`.
    Entry,
    /// `EventId` of an entry.
    Id,
}

/// Maximum number of stored repetitions of a member: two show that it is repeated.
const REPEATS_MAX: usize = 2;

impl Json {
    pub(crate) fn parse(text: &str) -> serde_json::Result<Self> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let value = JsonPosition::Body.deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(value)
    }
}

impl JsonPosition {
    /// The relevant member of an object at this position, and the position of its value.
    const fn member(self) -> Option<(&'static str, Self)> {
        match self {
            Self::Body => Some(("StartRequests", Self::Requests)),
            Self::Entry => Some(("EventId", Self::Id)),
            Self::Requests | Self::Id => None,
        }
    }
}

impl<'de> DeserializeSeed<'de> for JsonPosition {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for JsonPosition {
    type Value = Json;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Json, E> {
        Ok(Json::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Json, E> {
        Ok(Json::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Json, E> {
        Ok(Json::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Json, E> {
        Ok(Json::Other)
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Other)
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(match self {
            // One character more than permitted shows that it is too long.
            Self::Id => Json::Text(text.chars().take(EVENT_ID_CHARS_MAX + 1).collect()),
            Self::Body | Self::Requests | Self::Entry => Json::Other,
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Json, A::Error> {
        let mut items = Vec::new();
        if self == Self::Requests {
            while items.len() <= IDS_PER_APPROVAL_MAX
                && let Some(item) = list.next_element_seed(Self::Entry)?
            {
                items.push(item);
            }
        }
        // One entry more than permitted shows that there are too many; the rest is skipped.
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(if self == Self::Requests { Json::List(items) } else { Json::Other })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Json, A::Error> {
        let mut values = Vec::new();
        while let Some(key) = object.next_key::<String>()? {
            match self.member() {
                Some((name, position)) if name == key && values.len() < REPEATS_MAX => {
                    values.push(object.next_value_seed(position)?);
                }
                Some(_) | None => drop(object.next_value::<IgnoredAny>()?),
            }
        }
        Ok(if self.member().is_some() { Json::Object(values) } else { Json::Other })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::{Error, Unexpected};

    fn parse(text: &str) -> Json {
        Json::parse(text).unwrap()
    }

    fn requests(text: &str) -> Json {
        let Json::Object(mut values) = parse(&format!(r#"{{"StartRequests":{text}}}"#)) else {
            panic!("not an object")
        };
        values.remove(0)
    }

    #[test]
    fn depth_is_counted_to_the_last_permitted_level() {
        for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
            let nested = |depth: usize| format!("{}1{}", open.repeat(depth), close.repeat(depth));
            assert!(!is_too_deep(&nested(8)));
            assert!(is_too_deep(&nested(9)));
        }
        assert!(!is_too_deep(&"[]".repeat(20)) && !is_too_deep(&"{}".repeat(20)));
        assert!(!is_too_deep(&"]".repeat(20)));
        assert!(is_too_deep(&format!("]]{}", "[".repeat(9))));
    }

    #[test]
    fn a_list_stores_at_most_one_entry_too_many() {
        let kept = |count: usize| {
            let Json::List(items) = requests(&format!("[{}1]", "1,".repeat(count - 1))) else {
                panic!("not a list")
            };
            items.len()
        };
        let most = IDS_PER_APPROVAL_MAX + 1;
        assert_eq!((kept(most - 1), kept(most), kept(60_000)), (most - 1, most, most));
        assert_eq!(requests(r#"[["EventId"],"x"]"#), Json::List(vec![Json::Other, Json::Other]));
    }

    #[test]
    fn brackets_in_strings_do_not_count() {
        assert!(!is_too_deep(&format!(r#"["{}"]"#, "[".repeat(20))));
        assert!(!is_too_deep(&format!(r#"["\"{}"]"#, "{".repeat(20))));
        assert!(is_too_deep(&format!(r#"["\\",{}"#, "[".repeat(8))));
        assert!(is_too_deep(&format!(r#"["]]]]",{}"#, "[".repeat(8))));
        // Outside a string a backslash is an error for the parser to find; it hides nothing from the count.
        assert!(is_too_deep(&r"\[".repeat(9)));
    }

    #[test]
    fn only_relevant_members_are_stored_and_at_most_twice() {
        let entry =
            r#"{"a":[1e999],"EventId":"x","eventid":"y","EventId":null,"EventId":"z","StartRequests":[]}"#;
        let kept = Json::Object(vec![Json::Text("x".to_owned()), Json::Other]);
        assert_eq!(requests(&format!("[{entry}]")), Json::List(vec![kept]));
        assert_eq!(parse(r#"{"EventId":"x","a":{"StartRequests":[]}}"#), Json::Object(vec![]));
    }

    #[test]
    fn misplaced_values_are_not_stored() {
        for id in [r#"{"EventId":"x"}"#, r#"["x"]"#, "1", "null", "true"] {
            let entry = format!(r#"[{{"EventId":{id}}}]"#);
            assert_eq!(requests(&entry), Json::List(vec![Json::Object(vec![Json::Other])]), "{id}");
        }
        for wrong in [r#"{"StartRequests":[]}"#, r#""x""#, "1"] {
            assert_eq!(requests(wrong), Json::Other, "{wrong}");
        }
        for body in ["true", "false", "null", "1", "-1", "1.5", "[]", r#""\u0041""#] {
            assert_eq!(parse(body), Json::Other, "{body}");
        }
        let error = serde_json::Error::invalid_type(Unexpected::Unit, &JsonPosition::Body).to_string();
        assert_eq!(error, "invalid type: null, expected a JSON value");
    }

    #[test]
    fn a_long_id_is_stored_up_to_one_character_too_many() {
        let long = format!(r#"[{{"EventId":"{}"}}]"#, "é".repeat(1_000));
        let kept = Json::Text("é".repeat(EVENT_ID_CHARS_MAX + 1));
        assert_eq!(requests(&long), Json::List(vec![Json::Object(vec![kept])]));
    }

    #[test]
    fn one_value_is_the_whole() {
        for wrong in ["{} {}", "{}x", "{", ""] {
            assert!(Json::parse(wrong).is_err(), "{wrong}");
        }
    }
}
