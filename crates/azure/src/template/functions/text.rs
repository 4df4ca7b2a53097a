//! Functions on texts. Positions and lengths are in characters.

use data_encoding::BASE64;
use serde_json::Value;

use super::super::limits::{ELEMENTS_MAX, TEXT_BYTES_MAX};
use super::{Arguments, TemplateError};

pub(super) fn to_lower(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    Ok(arguments.text(0)?.to_lowercase().into())
}

pub(super) fn to_upper(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    Ok(arguments.text(0)?.to_uppercase().into())
}

pub(super) fn trim(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    Ok(arguments.text(0)?.trim().into())
}

/// Ignores case, as in Azure.
pub(super) fn starts_with(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    Ok(arguments.text(0)?.to_lowercase().starts_with(&arguments.text(1)?.to_lowercase()).into())
}

/// Ignores case, as in Azure.
pub(super) fn ends_with(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    Ok(arguments.text(0)?.to_lowercase().ends_with(&arguments.text(1)?.to_lowercase()).into())
}

/// Ignores case, as in Azure; -1 if absent.
pub(super) fn index_of(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    let text = arguments.text(0)?.to_lowercase();
    let found = text.find(&arguments.text(1)?.to_lowercase()).map(|end| text[..end].chars().count());
    Ok(found.map_or_else(|| (-1).into(), Value::from))
}

pub(super) fn string(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    Ok(shown(arguments.value(0)).into())
}

/// A value as text: texts unchanged, flags as .NET writes them, the rest as JSON.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Null => String::new(),
        Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

pub(super) fn json(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    let text = arguments.text(0)?;
    if text.len() > TEXT_BYTES_MAX {
        return Err(too_long(arguments));
    }
    serde_json::from_str(text).map_err(|_| arguments.unlike(0, "JSON"))
}

pub(super) fn base64(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    Ok(BASE64.encode(arguments.text(0)?.as_bytes()).into())
}

pub(super) fn split(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    let delimiters = match arguments.value(1) {
        Value::Array(list) => {
            let text = |value: &Value| value.as_str().map(str::to_owned);
            let texts: Option<Vec<_>> = list.iter().map(text).collect();
            texts.ok_or_else(|| arguments.unlike(1, "a text or a list of texts"))?
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            vec![arguments.text(1)?.to_owned()]
        }
    };
    let mut pieces = vec![arguments.text(0)?];
    for delimiter in delimiters.iter().filter(|delimiter| !delimiter.is_empty()) {
        let split = pieces.iter().flat_map(|piece| piece.split(delimiter.as_str()));
        pieces = split.take(ELEMENTS_MAX + 1).collect();
    }
    if pieces.len() > ELEMENTS_MAX {
        return Err(arguments.wrong(&format!("returns at most {ELEMENTS_MAX} texts")));
    }
    Ok(pieces.into())
}

pub(super) fn replace(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    let (text, old, new) = (arguments.text(0)?, arguments.text(1)?, arguments.text(2)?);
    if old.is_empty() {
        return Err(arguments.unlike(1, "a text that is not empty"));
    }
    let mut out = Builder::new(arguments);
    for (position, piece) in text.split(old).enumerate() {
        if position > 0 {
            out.push(new)?;
        }
        out.push(piece)?;
    }
    Ok(out.text.into())
}

pub(super) fn substring(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    let (text, start) = (arguments.text(0)?, arguments.amount(1)?);
    let count = text.chars().count();
    let length = match arguments.value(2) {
        Value::Null => count.saturating_sub(start),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            arguments.amount(2)?
        }
    };
    if start.checked_add(length).is_none_or(|end| end > count) {
        return Err(arguments.wrong("exceeds the end of the text"));
    }
    Ok(text.chars().skip(start).take(length).collect::<String>().into())
}

pub(super) fn pad_left(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    let (text, total) = (shown(arguments.value(0)), arguments.amount(1)?);
    let pad = if arguments.values.len() > 2 { arguments.text(2)? } else { " " };
    if total > TEXT_BYTES_MAX || pad.chars().count() != 1 {
        return Err(arguments.wrong("expects a valid length, and one character"));
    }
    Ok((pad.repeat(total.saturating_sub(text.chars().count())) + &text).into())
}

pub(super) fn format(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    let mut out = Builder::new(arguments);
    let mut rest = arguments.text(0)?;
    while let Some(position) = rest.find(['{', '}']) {
        out.push(&rest[..position])?;
        let (brace, after) = rest[position..].split_at(1);
        if let Some(doubled) = after.strip_prefix(brace) {
            out.push(brace)?;
            rest = doubled;
            continue;
        }
        let hole = after.split_once('}').filter(|_| brace == "{");
        let (hole, after) = hole.ok_or_else(|| arguments.wrong("has an unmatched brace"))?;
        out.push(&filled(arguments, hole)?)?;
        rest = after;
    }
    out.push(rest)?;
    Ok(out.text.into())
}

/// Formats a placeholder: `0`, or `0:D3` for a number with at least three digits.
fn filled(arguments: &Arguments<'_>, hole: &str) -> Result<String, TemplateError> {
    let (position, width) =
        hole.split_once(':').map_or((hole, None), |(position, width)| (position, Some(width)));
    let value =
        position.parse::<usize>().ok().and_then(|position| arguments.values.get(position.checked_add(1)?));
    let value = value.ok_or_else(|| arguments.wrong("has a placeholder without an argument"))?;
    let Some(width) = width else { return Ok(shown(value)) };
    let width = width.strip_prefix(['D', 'd']).and_then(|width| width.parse::<usize>().ok());
    match (width.filter(|width| *width <= 99), value.as_i64()) {
        (Some(width), Some(number)) => {
            let sign = if number < 0 { "-" } else { "" };
            Ok(format!("{sign}{:0width$}", number.unsigned_abs()))
        }
        _ => Err(arguments.wrong("supports only the format D with a number of digits")),
    }
}

/// A text with a maximum length.
struct Builder<'a> {
    text: String,
    arguments: &'a Arguments<'a>,
}

impl<'a> Builder<'a> {
    fn new(arguments: &'a Arguments<'a>) -> Self {
        Self { text: String::new(), arguments }
    }

    fn push(&mut self, more: &str) -> Result<(), TemplateError> {
        self.text.push_str(more);
        if self.text.len() > TEXT_BYTES_MAX { Err(too_long(self.arguments)) } else { Ok(()) }
    }
}

/// Error for a text that is too long.
pub(super) fn too_long(arguments: &Arguments<'_>) -> TemplateError {
    arguments.wrong(&format!("handles texts of at most {TEXT_BYTES_MAX} bytes"))
}
