//! Functions on lists and objects, some of which also accept texts.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::super::limits::{ELEMENTS_MAX, TEXT_BYTES_MAX};
use super::text::too_long;
use super::{Arguments, TemplateError};

/// Concatenates lists, or texts and numbers.
pub(super) fn concat(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    if arguments.value(0).is_array() {
        let lists = (0..arguments.values.len()).map(|position| arguments.list(position));
        let lists: Vec<_> = lists.collect::<Result<_, _>>()?;
        return Ok(lists.into_iter().flatten().cloned().collect::<Vec<_>>().into());
    }
    let mut text = String::new();
    for (position, value) in arguments.values.iter().enumerate() {
        match value {
            Value::String(piece) => text.push_str(piece),
            Value::Number(number) => text.push_str(&number.to_string()),
            Value::Bool(true) => text.push_str("True"),
            Value::Bool(false) => text.push_str("False"),
            Value::Null => {}
            Value::Array(_) | Value::Object(_) => {
                return Err(arguments.unlike(position, "a text or a number"));
            }
        }
        if text.len() > TEXT_BYTES_MAX {
            return Err(too_long(arguments));
        }
    }
    Ok(text.into())
}

pub(super) fn join(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    let delimiter = arguments.text(1)?;
    let mut out = String::new();
    for (position, value) in arguments.list(0)?.iter().enumerate() {
        if position > 0 {
            out.push_str(delimiter);
        }
        match value {
            Value::String(text) => out.push_str(text),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                out.push_str(&value.to_string());
            }
        }
        if out.len() > TEXT_BYTES_MAX {
            return Err(too_long(arguments));
        }
    }
    Ok(out.into())
}

pub(super) fn create_array(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    Ok(arguments.values.to_vec().into())
}

pub(super) fn array(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    Ok(match arguments.value(0) {
        list @ Value::Array(_) => list.clone(),
        single @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => {
            vec![single.clone()].into()
        }
    })
}

pub(super) fn create_object(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    let mut members = Map::new();
    for (pair, values) in arguments.values.chunks(2).enumerate() {
        let [_, value] = values else { return Err(arguments.wrong("expects names and values, in pairs")) };
        members.insert(arguments.text(2 * pair)?.to_owned(), value.clone());
    }
    Ok(members.into())
}

/// Merges objects, or unites lists without duplicates.
pub(super) fn union(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    if arguments.value(0).is_array() {
        let (mut seen, mut all) = (BTreeSet::new(), Vec::new());
        for position in 0..arguments.values.len() {
            let new = arguments.list(position)?.iter().filter(|value| seen.insert(value.to_string()));
            all.extend(new.cloned());
        }
        return Ok(all.into());
    }
    let mut all = Map::new();
    for (position, value) in arguments.values.iter().enumerate() {
        let members = value.as_object().ok_or_else(|| arguments.unlike(position, "an object"))?;
        lay_over(&mut all, members);
    }
    Ok(all.into())
}

fn lay_over(below: &mut Map<String, Value>, above: &Map<String, Value>) {
    for (key, value) in above {
        match (below.get_mut(key), value) {
            (Some(Value::Object(below)), Value::Object(above)) => lay_over(below, above),
            _ => drop(below.insert(key.clone(), value.clone())),
        }
    }
}

pub(super) fn contains(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    let found = match arguments.value(0) {
        Value::String(text) => text.contains(arguments.text(1)?),
        Value::Array(list) => list.contains(arguments.value(1)),
        Value::Object(members) => {
            let wanted = arguments.text(1)?;
            members.contains_key(wanted) || members.keys().any(|key| key.eq_ignore_ascii_case(wanted))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            return Err(arguments.unlike(0, "a text, a list or an object"));
        }
    };
    Ok(found.into())
}

pub(super) fn length(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    match arguments.value(0) {
        Value::String(text) => Ok(text.chars().count().into()),
        Value::Array(list) => Ok(list.len().into()),
        Value::Object(members) => Ok(members.len().into()),
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            Err(arguments.unlike(0, "a text, a list or an object"))
        }
    }
}

pub(super) fn empty(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    match arguments.value(0) {
        Value::Null => Ok(true.into()),
        Value::String(text) => Ok(text.is_empty().into()),
        Value::Array(list) => Ok(list.is_empty().into()),
        Value::Object(members) => Ok(members.is_empty().into()),
        Value::Bool(_) | Value::Number(_) => Err(arguments.unlike(0, "a text, a list or an object")),
    }
}

pub(super) fn first(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    Ok(match arguments.value(0) {
        Value::String(text) => text.chars().take(1).collect::<String>().into(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            arguments.list(0)?.first().cloned().unwrap_or_default()
        }
    })
}

pub(super) fn last(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    Ok(match arguments.value(0) {
        Value::String(text) => text.chars().last().map(String::from).unwrap_or_default().into(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            arguments.list(0)?.last().cloned().unwrap_or_default()
        }
    })
}

pub(super) fn take(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    part(arguments, 0, amount(arguments)?)
}

pub(super) fn skip(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    part(arguments, amount(arguments)?, usize::MAX)
}

/// A number of items; a negative one is zero.
fn amount(arguments: &Arguments<'_>) -> Result<usize, TemplateError> {
    Ok(usize::try_from(arguments.number(1)?).unwrap_or(0))
}

fn part(arguments: &Arguments<'_>, skip: usize, take: usize) -> Result<Value, TemplateError> {
    Ok(match arguments.value(0) {
        Value::String(text) => text.chars().skip(skip).take(take).collect::<String>().into(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            arguments.list(0)?.iter().skip(skip).take(take).cloned().collect::<Vec<_>>().into()
        }
    })
}

pub(super) fn range(arguments: &Arguments<'_>) -> Result<Value, TemplateError> {
    let (start, count) = (arguments.number(0)?, arguments.amount(1)?);
    if count > ELEMENTS_MAX {
        return Err(arguments.wrong(&format!("returns at most {ELEMENTS_MAX} numbers")));
    }
    let end = i64::try_from(count).ok().and_then(|count| start.checked_add(count));
    let end = end.ok_or_else(|| arguments.wrong("has no result that is a whole number of 64 bits"))?;
    Ok((start..end).collect::<Vec<_>>().into())
}
