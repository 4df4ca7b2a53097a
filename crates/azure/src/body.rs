//! What a client sends, before anybody looks into it: it has a length, a depth, and members by name.
//!
//! Clients spell the members of a body as they like. Once a body is canonical, those that are known here have one spelling;
//! what reads them afterwards need not care.

use serde_json::{Map, Value};

use super::error::ArmError;
use forewarn_imds::is_deeper_than;
use forewarn_types::without_mark;

/// Bytes of a body.
pub const BODY_BYTES_MAX: usize = 1 << 20;

/// Objects and lists inside each other in a body. Templates inside templates need half of it.
pub const BODY_DEPTH_MAX: usize = 48;

/// Commas of a body, and so about the values in it: each takes far more memory than the two bytes it may have.
const COMMAS_MAX: usize = 50_000;

/// Reads a body. One that is empty says nothing.
///
/// # Errors
/// When it is too long, too deep, has too many values, or is no JSON.
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

/// What stands at a place: `properties.upgradePolicy.mode`. What is null is not there.
pub(super) fn at<'a>(body: &'a Value, place: &str) -> Option<&'a Value> {
    let found = place.split('.').try_fold(body, |value, name| value.as_object()?.get(name))?;
    (!found.is_null()).then_some(found)
}

/// An object at a place, if anything is there.
pub(super) fn object_at<'a>(
    body: &'a Value,
    place: &str,
) -> Result<Option<&'a Map<String, Value>>, ArmError> {
    at(body, place).map(|value| value.as_object().ok_or_else(|| wrong(place, value, "an object"))).transpose()
}

/// A text at a place, if anything is there.
pub(super) fn text_at<'a>(body: &'a Value, place: &str) -> Result<Option<&'a str>, ArmError> {
    at(body, place).map(|value| value.as_str().ok_or_else(|| wrong(place, value, "a text"))).transpose()
}

/// Whether something is so, if anything is said of it.
pub(super) fn flag_at(body: &Value, place: &str) -> Result<Option<bool>, ArmError> {
    at(body, place)
        .map(|value| value.as_bool().ok_or_else(|| wrong(place, value, "true or false")))
        .transpose()
}

/// A whole number at a place, within a range, if anything is there.
pub(super) fn count_at(
    body: &Value,
    place: &str,
    range: std::ops::RangeInclusive<u16>,
) -> Result<Option<u16>, ArmError> {
    let Some(value) = at(body, place) else { return Ok(None) };
    let count = value.as_u64().and_then(|count| u16::try_from(count).ok());
    let fits = count.filter(|count| range.contains(count));
    let (least, most) = range.into_inner();
    fits.map(Some).ok_or_else(|| {
        let message = format!(
            "The value '{}' of parameter '{place}' is out of range. Value must be between '{least}' and '{most}' \
             inclusive.",
            shown(value)
        );
        ArmError::invalid(last(place), message)
    })
}

/// One of some words at a place, if anything is there.
pub(super) fn word_at<W: Copy>(
    body: &Value,
    place: &str,
    words: &[(&str, W)],
) -> Result<Option<W>, ArmError> {
    at(body, place).map(|value| word_of(value, place, words)).transpose()
}

/// One of some words.
pub(super) fn word_of<W: Copy>(value: &Value, place: &str, words: &[(&str, W)]) -> Result<W, ArmError> {
    let is_meant = |word: &str| value.as_str().is_some_and(|text| text.eq_ignore_ascii_case(word));
    let found = words.iter().find(|(word, _)| is_meant(word));
    found.map(|(_, meaning)| *meaning).ok_or_else(|| {
        let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        let message = format!(
            "The value '{}' of parameter '{place}' is not allowed. Allowed values are: {}.",
            shown(value),
            known.join(", ")
        );
        ArmError::invalid(last(place), message)
    })
}

/// A value that is of another kind than it should be.
pub(super) fn wrong(place: &str, value: &Value, wanted: &str) -> ArmError {
    let message = format!("The value '{}' of parameter '{place}' is not {wanted}.", shown(value));
    ArmError::invalid(last(place), message)
}

/// What a member is called, wherever it stands.
pub(super) fn last(place: &str) -> &str {
    place.rsplit('.').next().unwrap_or(place)
}

/// Characters of a wrong value that are shown.
const SHOWN_CHARS_MAX: usize = 60;

/// A wrong value, or how it begins.
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
    fn what_is_there_has_to_be_of_its_kind() {
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
        let said: Vec<_> = bad.iter().map(|error| (error.status, error.target.as_deref())).collect();
        let targets = ["flag", "text", "count", "text", "text", "list"];
        assert_eq!(said, targets.map(|target| (400, Some(target))));
        assert!(bad[2].message.contains("'a.count' is out of range"), "{}", bad[2]);
    }

    #[test]
    fn a_wrong_value_is_shown_on_one_short_line() {
        assert_eq!(shown(&json!("a\nb")), "a b");
        assert_eq!(shown(&json!({ "a": 1 })), r#"{"a":1}"#);
        assert_eq!(shown(&json!("é".repeat(100))).chars().count(), 60);
    }
}
