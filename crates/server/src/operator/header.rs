//! The headers of requests that mean something, and what they may say.

use serde_json::{Value, json};

/// A header that means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header {
    /// The same request under the same key is carried out once.
    IdempotencyKey,
    /// Only if it is still what was read.
    IfMatch,
    /// Only if it is something else than what was read.
    IfNoneMatch,
    /// What has happened since that entry, too.
    LastEventId,
}

/// Digits of the number of an entry: as many as every number has that can be counted to.
const NUMBER_DIGITS_MAX: usize = 19;

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

    pub(super) const fn about(self) -> &'static str {
        match self {
            Self::IdempotencyKey => {
                "The same request under the same key, within a day, is carried out once and answered the same."
            }
            Self::IfMatch => "The `ETag` of what was read: if it is another now, nothing is done.",
            Self::IfNoneMatch => {
                "The `ETag` of what was read: if it is the same still, it is not sent again."
            }
            Self::LastEventId => "The number of the last entry that was seen: everything since is told, too.",
        }
    }

    /// What it may say, for programs.
    pub(super) fn schema(self) -> Value {
        let text = |pattern: &str| json!({ "type": "string", "pattern": pattern });
        match self {
            Self::IdempotencyKey => text("^[!-~]{1,255}$"),
            Self::IfMatch | Self::IfNoneMatch => {
                let tags = text(r#"^(W/)?"[!#-~]*"([ \t]*,[ \t]*(W/)?"[!#-~]*")*$"#);
                json!({ "anyOf": [{ "type": "string", "const": "*" }, tags] })
            }
            Self::LastEventId => text("^[0-9]{1,19}$"),
        }
    }

    /// Whether it may say that.
    pub(super) fn admits(self, value: &str) -> bool {
        match self {
            Self::IdempotencyKey => {
                (1..=KEY_BYTES_MAX).contains(&value.len())
                    && value.bytes().all(|byte| byte.is_ascii_graphic())
            }
            Self::IfMatch | Self::IfNoneMatch => value == "*" || tags(value).is_some(),
            Self::LastEventId => {
                (1..=NUMBER_DIGITS_MAX).contains(&value.len())
                    && value.bytes().all(|byte| byte.is_ascii_digit())
            }
        }
    }
}

/// The tags of a list, with their quotes; nothing, if it is not a list of tags. A proxy may have called some of them weak;
/// they stand for the same.
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
    fn a_header_says_what_its_schema_says() {
        let longest = "k".repeat(255);
        for (header, right, wrong) in [
            (Header::IdempotencyKey, ["a", "~!", &longest], ["", "a b", &format!("{longest}k")]),
            (Header::IfMatch, ["*", "\"a\"", "W/\"a\", \"b\""], ["", "a", "*, \"a\""]),
            (Header::IfNoneMatch, ["*", "\"a\"", "\"\""], ["", "0", "\"a"]),
            (Header::LastEventId, ["0", "00", "9999999999999999999"], ["", "-1", "10000000000000000000"]),
        ] {
            assert!(right.iter().all(|value| header.admits(value)), "{header:?}");
            assert!(!wrong.iter().any(|value| header.admits(value)), "{header:?}");
        }
    }
}
