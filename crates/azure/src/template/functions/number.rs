//! Functions on 64-bit integers.

use serde_json::Value;

use super::{Arguments, TemplateError};

pub(super) fn add(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    pair(arguments, i64::checked_add)
}

pub(super) fn sub(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    pair(arguments, i64::checked_sub)
}

pub(super) fn mul(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    pair(arguments, i64::checked_mul)
}

pub(super) fn div(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    pair(arguments, i64::checked_div)
}

pub(super) fn modulo(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    pair(arguments, i64::checked_rem)
}

fn pair(arguments: &Arguments<'_>, calculate: fn(i64, i64) -> Option<i64>) -> Result<Value, TemplateError> {
    let result = calculate(arguments.number(0)?, arguments.number(1)?);
    Ok(result.ok_or_else(|| arguments.wrong("has no result that is a whole number of 64 bits"))?.into())
}

pub(super) fn min(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    Ok(numbers(arguments)?
        .into_iter()
        .min()
        .ok_or_else(|| arguments.wrong("expects at least one number"))?
        .into())
}

pub(super) fn max(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    Ok(numbers(arguments)?
        .into_iter()
        .max()
        .ok_or_else(|| arguments.wrong("expects at least one number"))?
        .into())
}

/// Numbers as separate arguments, or in a list.
fn numbers(arguments: &Arguments<'_>) -> Result<Vec<i64>, TemplateError> {
    match arguments.values {
        [Value::Array(list)] => {
            let number =
                |value: &Value| value.as_i64().ok_or_else(|| arguments.unlike(0, "a list of numbers"));
            list.iter().map(number).collect()
        }
        values => (0..values.len()).map(|position| arguments.number(position)).collect(),
    }
}

pub(super) fn int(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    match arguments.value(0) {
        Value::String(text) => {
            let number: i64 =
                text.trim().parse().map_err(|_| arguments.unlike(0, "what can be read as a whole number"))?;
            Ok(number.into())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Ok(arguments.number(0)?.into())
        }
    }
}
