//! What is looked at before and while foreign JSON is parsed: how deep it goes, and the few members that matter.

use std::fmt;

use forewarn_lifecycle::limits::IDS_PER_APPROVAL_MAX;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Objects and lists inside each other, in anything that is read. The published formats need half of it.
pub const DEPTH_MAX: usize = 8;

/// Whether brackets are nested deeper than [`DEPTH_MAX`]. Looks at brackets and strings only, so it runs before the
/// parser, whose own limit is far higher, and costs one pass.
pub(crate) fn is_too_deep(text: &str) -> bool {
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
        if depth > DEPTH_MAX {
            return true;
        }
    }
    false
}

/// A JSON value with the members that a start request consists of, each as often as it was given; others are skipped.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Json {
    Object(Vec<(Member, Json)>),
    List(Vec<Json>),
    Text(String),
    /// A number, true, false or null: no start request has one where it matters.
    Other,
}

/// A member that matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Member {
    StartRequests,
    EventId,
}

impl Member {
    fn named(key: &str) -> Option<Self> {
        match key {
            "StartRequests" => Some(Self::StartRequests),
            "EventId" => Some(Self::EventId),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
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
        Ok(Json::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Json, A::Error> {
        let mut items = Vec::new();
        while items.len() <= IDS_PER_APPROVAL_MAX
            && let Some(item) = list.next_element()?
        {
            // A list in a list matters to nobody: what it holds is let go at once.
            items.push(if matches!(item, Json::List(_)) { Json::Other } else { item });
        }
        // One more than permitted is enough to know; the rest is read and not kept.
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Json::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Json, A::Error> {
        let mut members = Vec::new();
        while let Some(key) = object.next_key::<String>()? {
            match Member::named(&key) {
                Some(member) => members.push((member, object.next_value()?)),
                None => drop(object.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Json::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::{Error, Unexpected};

    fn parse(text: &str) -> Json {
        serde_json::from_str(text).unwrap()
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
    fn a_list_keeps_what_is_needed_to_know_that_it_is_too_long() {
        let kept = |count: usize| {
            let Json::List(items) = parse(&format!("[{}1]", "1,".repeat(count - 1))) else {
                panic!("not a list")
            };
            items.len()
        };
        let most = IDS_PER_APPROVAL_MAX + 1;
        assert_eq!((kept(most - 1), kept(most), kept(60_000)), (most - 1, most, most));
        assert_eq!(parse(r#"[["EventId"],"x"]"#), Json::List(vec![Json::Other, Json::Text("x".to_owned())]));
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
    fn only_members_that_matter_are_kept_and_each_time_they_are_given() {
        let object = parse(r#"{"a":[1e999],"EventId":"x","eventid":"y","EventId":null,"StartRequests":[]}"#);
        let kept = [
            (Member::EventId, Json::Text("x".to_owned())),
            (Member::EventId, Json::Other),
            (Member::StartRequests, Json::List(vec![])),
        ];
        assert_eq!(object, Json::Object(kept.into()));
    }

    #[test]
    fn whatever_is_neither_text_nor_list_nor_object_is_other() {
        for text in ["true", "false", "null", "1", "-1", "1.5"] {
            assert_eq!(parse(text), Json::Other, "{text}");
        }
        assert_eq!(parse(r#"[1,"\u0041"]"#), Json::List(vec![Json::Other, Json::Text("A".to_owned())]));
        let error = serde_json::Error::invalid_type(Unexpected::Unit, &AnyValue).to_string();
        assert_eq!(error, "invalid type: null, expected a JSON value");
    }
}
