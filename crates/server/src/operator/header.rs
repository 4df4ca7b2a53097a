//! Request headers of the operator API, and their syntax.

use serde_json::{Value, json};

use super::seen_entries::SeenEntries;
use super::stream_numbers::StreamNumbers;

/// A request header that some route takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header {
    IdempotencyKey,
    IfMatch,
    IfNoneMatch,
    LastEventId,
}

/// Bytes of an idempotency key.
const KEY_BYTES_MAX: usize = forewarn_control::limits::KEY_BYTES_MAX;

impl Header {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::IdempotencyKey => "Idempotency-Key",
            Self::IfMatch => "If-Match",
            Self::IfNoneMatch => "If-None-Match",
            Self::LastEventId => "Last-Event-ID",
        }
    }

    pub(super) const fn description(self) -> &'static str {
        match self {
            Self::IdempotencyKey => {
                "A request that is repeated under the same key within a day is carried out once and gets the same response."
            }
            Self::IfMatch => {
                "`ETag` of an earlier response: the request is rejected if the resource has changed since."
            }
            Self::IfNoneMatch => {
                "`ETag` of an earlier response: the resource is not sent again if it has not changed."
            }
            Self::LastEventId => {
                "`id` of the last received event, opaque: entries that are not yet received are sent first."
            }
        }
    }

    /// Remedy for a malformed value.
    pub(super) const fn hint(self) -> &'static str {
        match self {
            Self::IdempotencyKey => "send 1 to 255 visible ASCII characters",
            Self::IfMatch | Self::IfNoneMatch => {
                "send the `ETag` of an earlier response as it is, with its quotes"
            }
            Self::LastEventId => "send the `id` of the last received event as it is",
        }
    }

    /// JSON schema of the value.
    pub(super) fn schema(self) -> Value {
        let text = |pattern: &str| json!({ "type": "string", "pattern": pattern });
        match self {
            Self::IdempotencyKey => text("^[!-~]{1,255}$"),
            Self::IfMatch | Self::IfNoneMatch => {
                let tags = text(r#"^(W/)?"[!#-~]*"([ \t]*,[ \t]*(W/)?"[!#-~]*")*$"#);
                json!({ "anyOf": [{ "type": "string", "const": "*" }, tags] })
            }
            Self::LastEventId => text(
                r"^([0-9]{1,19}(\+[0-9]{1,19}(,[0-9]{1,19}){0,63})?|(s|[0-9]{1,10}):[0-9]{1,19}(,[0-9]{1,10}:[0-9]{1,19}){0,511})$",
            ),
        }
    }

    /// Returns true if a value is valid.
    pub(super) fn admits(self, value: &str) -> bool {
        match self {
            Self::IdempotencyKey => {
                (1..=KEY_BYTES_MAX).contains(&value.len())
                    && value.bytes().all(|byte| byte.is_ascii_graphic())
            }
            Self::IfMatch | Self::IfNoneMatch => value == "*" || tags(value).is_some(),
            Self::LastEventId => SeenEntries::parse(value).is_some() || StreamNumbers::parse(value).is_some(),
        }
    }
}

/// The tags of a list, with their quotes. None if the list is malformed. A proxy may have marked some as weak;
/// they are compared without the mark.
pub(super) fn tags(list: &str) -> Option<Vec<&str>> {
    let blank = [' ', '\t'];
    let mut found = Vec::new();
    let mut rest = list;
    loop {
        rest = rest.strip_prefix("W/").unwrap_or(rest);
        let end = rest.strip_prefix('"')?.find('"')? + 2;
        let (tag, after) = rest.split_at_checked(end)?;
        if !tag.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        found.push(tag);
        match after.trim_start_matches(blank).strip_prefix(',') {
            Some(next) => rest = next.trim_start_matches(blank),
            None if after.is_empty() => return Some(found),
            None => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_quoted_and_parted_by_commas() {
        assert_eq!(tags("\"a\""), Some(vec!["\"a\""]));
        assert_eq!(tags("W/\"a,b\" ,\t\"\",\"c\""), Some(vec!["\"a,b\"", "\"\"", "\"c\""]));
        for wrong in ["", "a", "\"a", "\"a\"b", "\"a\",", ",\"a\"", "\"a b\"", "w/\"a\"", "\"a\" ", "\"ä\""]
        {
            assert_eq!(tags(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn headers_are_validated_as_their_schema_says() {
        let longest = "k".repeat(255);
        for (header, right, wrong) in [
            (Header::IdempotencyKey, ["a", "~!", &longest], ["", "a b", &format!("{longest}k")]),
            (Header::IfMatch, ["*", "\"a\"", "W/\"a\", \"b\""], ["", "a", "*, \"a\""]),
            (Header::IfNoneMatch, ["*", "\"a\"", "\"\""], ["", "0", "\"a"]),
            (Header::LastEventId, ["00", "4+6,7", "s:45,0:12"], ["", "4+", "10000000000000000000"]),
        ] {
            assert!(right.iter().all(|value| header.admits(value)), "{header:?}");
            assert!(!wrong.iter().any(|value| header.admits(value)), "{header:?}");
        }
    }
}
