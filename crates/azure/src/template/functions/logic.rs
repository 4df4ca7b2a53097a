//! Functions on flags, comparisons and null.

use std::cmp::Ordering;

use serde_json::Value;

use super::{Arguments, TemplateError};

pub(super) fn yes(_: &Arguments<'_>) -> Result<Value, TemplateError> {
    Ok(true.into())
}

pub(super) fn no(_: &Arguments<'_>) -> Result<Value, TemplateError> {
    Ok(false.into())
}

pub(super) fn null(_: &Arguments<'_>) -> Result<Value, TemplateError> {
    Ok(Value::Null)
}

pub(super) fn and(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    Ok(truths(arguments)?.into_iter().all(|truth| truth).into())
}

pub(super) fn or(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    Ok(truths(arguments)?.into_iter().any(|truth| truth).into())
}

fn truths(arguments: &Arguments<'_>) -> Result<Vec<bool>, TemplateError> {
    (0..arguments.values.len()).map(|position| arguments.truth(position)).collect()
}

pub(super) fn not(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    Ok((!arguments.truth(0)?).into())
}

pub(super) fn bool(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    let read = match arguments.value(0) {
        Value::Bool(truth) => Some(*truth),
        Value::Number(number) => number.as_i64().map(|number| number != 0),
        Value::String(text) if text.eq_ignore_ascii_case("true") || text == "1" => Some(true),
        Value::String(text) if text.eq_ignore_ascii_case("false") || text == "0" => Some(false),
        Value::String(_) | Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    Ok(read.ok_or_else(|| arguments.unlike(0, "what can be read as true or false"))?.into())
}

pub(super) fn coalesce(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    Ok(arguments.values.iter().find(|value| !value.is_null()).cloned().unwrap_or_default())
}

pub(super) fn equals(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    Ok((arguments.value(0) == arguments.value(1)).into())
}

pub(super) fn greater(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    Ok(order(arguments)?.is_gt().into())
}

pub(super) fn greater_or_equals(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    Ok(order(arguments)?.is_ge().into())
}

pub(super) fn less(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    Ok(order(arguments)?.is_lt().into())
}

pub(super) fn less_or_equals(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    Ok(order(arguments)?.is_le().into())
}

/// Compares numbers with numbers, texts with texts.
fn order(arguments: &Arguments<'_>) -> Result<Ordering, TemplateError> {
    match arguments.value(0) {
        Value::String(text) => Ok(text.as_str().cmp(arguments.text(1)?)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Ok(arguments.number(0)?.cmp(&arguments.number(1)?))
        }
    }
}
