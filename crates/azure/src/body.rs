//! Request bodies before validation: size, depth, and access to members by path.
//!
//! Clients use any case for member names. A canonical body has one spelling for every known member, so later readers
//! can ignore case.

use serde_json::{Map, Value};

use super::error::ArmError;
use forewarn_imds::is_deeper_than;
use forewarn_types::without_mark;

/// Maximum bytes of a body.
pub const BODY_BYTES_MAX: usize = 1 << 20;

/// Maximum nesting of objects and lists. Nested templates need half of it.
pub const BODY_DEPTH_MAX: usize = 48;

/// Maximum number of commas, and so of values: a value takes far more memory than its two bytes.
const COMMAS_MAX: usize = 50_000;

/// Parses a body. An empty one is null.
///
/// # Errors
/// Fails if it is too long, too deep, has too many values, or is not JSON.
///
/// ```
/// use forewarn_azure::read_body;
///
/// assert!(read_body(b"")?.is_null());
/// assert_eq!(read_body(br#"{"a":1}"#)?["a"], 1);
/// assert_eq!(read_body(b"{").unwrap_err().code, "InvalidRequestContent");
/// # Ok::<_, forewarn_azure::ArmError>(())
/// ```
pub fn read_body(bytes: &[u8]) -> Result<Value, ArmError> {
    let wrong = |why: String| {
        ArmError::new(400, "InvalidRequestContent", format!("The request content was invalid: {why}"))
    };
    if bytes.len() > BODY_BYTES_MAX {
        let why = format!("The request content has more than {BODY_BYTES_MAX} bytes.");
        return Err(ArmError::new(413, "RequestContentTooLarge", why));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8".to_owned()))?;
    let text = without_mark(text).trim();
    if text.is_empty() {
        return Ok(Value::Null);
    }
    if is_deeper_than(text, BODY_DEPTH_MAX) {
        return Err(wrong(format!("it is deeper than {BODY_DEPTH_MAX} levels")));
    }
    if text.bytes().filter(|byte| *byte == b',').count() > COMMAS_MAX {
        return Err(wrong(format!("it has more than {COMMAS_MAX} values")));
    }
    serde_json::from_str(text).map_err(|error| wrong(error.to_string()))
}

/// The value at a path such as `properties.upgradePolicy.mode`; `None` if it is absent or null.
pub(super) fn at<'a>(body: &'a Value, path: &str) -> Option<&'a Value> {
    let found = path.split('.').try_fold(body, |value, name| value.as_object()?.get(name))?;
    (!found.is_null()).then_some(found)
}

/// The object at a path, if present.
pub(super) fn object_at<'a>(body: &'a Value, path: &str) -> Result<Option<&'a Map<String, Value>>, ArmError> {
    at(body, path).map(|value| value.as_object().ok_or_else(|| wrong(path, value, "an object"))).transpose()
}

/// The text at a path, if present.
pub(super) fn text_at<'a>(body: &'a Value, path: &str) -> Result<Option<&'a str>, ArmError> {
    at(body, path).map(|value| value.as_str().ok_or_else(|| wrong(path, value, "a text"))).transpose()
}

/// The flag at a path, if present.
pub(super) fn flag_at(body: &Value, path: &str) -> Result<Option<bool>, ArmError> {
    at(body, path).map(|value| value.as_bool().ok_or_else(|| wrong(path, value, "true or false"))).transpose()
}

/// The integer at a path, within a range, if present.
pub(super) fn count_at(
    body: &Value,
    path: &str,
    range: std::ops::RangeInclusive<u16>,
) -> Result<Option<u16>, ArmError> {
    let Some(value) = at(body, path) else { return Ok(None) };
    let count = value.as_u64().and_then(|count| u16::try_from(count).ok());
    let fits = count.filter(|count| range.contains(count));
    let (least, most) = range.into_inner();
    fits.map(Some).ok_or_else(|| {
        let message = format!(
            "The value '{}' of parameter '{path}' is out of range. Value must be between '{least}' and '{most}' \
             inclusive.",
            shown(value)
        );
        ArmError::invalid(last(path), message)
    })
}

/// The word at a path, one of a list, if present.
pub(super) fn word_at<W: Copy>(body: &Value, path: &str, words: &[(&str, W)]) -> Result<Option<W>, ArmError> {
    at(body, path).map(|value| word_of(value, path, words)).transpose()
}

/// Parses one of a list of words.
pub(super) fn word_of<W: Copy>(value: &Value, path: &str, words: &[(&str, W)]) -> Result<W, ArmError> {
    let is_meant = |word: &str| value.as_str().is_some_and(|text| text.eq_ignore_ascii_case(word));
    let found = words.iter().find(|(word, _)| is_meant(word));
    found.map(|(_, meaning)| *meaning).ok_or_else(|| {
        let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        let message = format!(
            "The value '{}' of parameter '{path}' is not allowed. Allowed values are: {}.",
            shown(value),
            known.join(", ")
        );
        ArmError::invalid(last(path), message)
    })
}

/// Error for a value of the wrong type.
pub(super) fn wrong(path: &str, value: &Value, wanted: &str) -> ArmError {
    let message = format!("The value '{}' of parameter '{path}' is not {wanted}.", shown(value));
    ArmError::invalid(last(path), message)
}

/// The last segment of a path.
pub(super) fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// Characters of an invalid value that a message repeats.
const SHOWN_CHARS_MAX: usize = 60;

/// An invalid value, truncated, for a message.
pub(super) fn shown(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let clean = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    clean.take(SHOWN_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_body_is_neither_long_nor_deep() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(read_body(nested(BODY_DEPTH_MAX).as_bytes()).is_ok());
        let deep = read_body(nested(BODY_DEPTH_MAX + 1).as_bytes()).unwrap_err();
        assert_eq!((deep.status, deep.code.as_ref()), (400, "InvalidRequestContent"));
        let long = read_body(&vec![b' '; BODY_BYTES_MAX + 1]).unwrap_err();
        assert_eq!((long.status, long.code.as_ref()), (413, "RequestContentTooLarge"));
        assert_eq!(read_body(&vec![b' '; BODY_BYTES_MAX]), Ok(Value::Null));
        assert_eq!(read_body("\u{feff}{}".as_bytes()), Ok(json!({})));
        let list = |commas: usize| format!("[0{}]", ",0".repeat(commas));
        assert!(read_body(list(COMMAS_MAX).as_bytes()).is_ok());
        assert_eq!(read_body(list(COMMAS_MAX + 1).as_bytes()).unwrap_err().code, "InvalidRequestContent");
        assert!(read_body(b"\xff").is_err() && read_body(b"{} {}").is_err());
    }

    #[test]
    fn a_present_member_must_have_its_type() {
        let body = json!({ "a": { "text": "x", "flag": true, "count": 3, "nothing": null }, "list": [] });
        assert_eq!(at(&body, "a.count"), Some(&json!(3)));
        for nowhere in ["a.nothing", "a.text.x", "list.0", "b", "a.b.c"] {
            assert_eq!(at(&body, nowhere), None, "{nowhere}");
        }
        assert_eq!(text_at(&body, "a.text"), Ok(Some("x")));
        assert_eq!(flag_at(&body, "a.flag"), Ok(Some(true)));
        assert_eq!(count_at(&body, "a.count", 0..=3), Ok(Some(3)));
        assert_eq!(word_at(&body, "a.text", &[("X", 1)]), Ok(Some(1)));
        assert_eq!(object_at(&body, "b"), Ok(None));
        let bad = [
            text_at(&body, "a.flag").unwrap_err(),
            flag_at(&body, "a.text").unwrap_err(),
            count_at(&body, "a.count", 0..=2).unwrap_err(),
            count_at(&body, "a.text", 0..=2).unwrap_err(),
            word_at(&body, "a.text", &[("y", 1)]).unwrap_err(),
            object_at(&body, "list").unwrap_err(),
        ];
        let given: Vec<_> = bad.iter().map(|error| (error.status, error.target.as_deref())).collect();
        let targets = ["flag", "text", "count", "text", "text", "list"];
        assert_eq!(given, targets.map(|target| (400, Some(target))));
        assert!(bad[2].message.contains("'a.count' is out of range"), "{}", bad[2]);
    }

    #[test]
    fn a_wrong_value_is_shown_on_one_short_line() {
        assert_eq!(shown(&json!("a\nb")), "a b");
        assert_eq!(shown(&json!({ "a": 1 })), r#"{"a":1}"#);
        assert_eq!(shown(&json!("é".repeat(100))).chars().count(), 60);
    }
}
