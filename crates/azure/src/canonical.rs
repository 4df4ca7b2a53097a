//! One form for what clients write in many: `"true"` is `true`, `manual` is `Manual`, `"3"` is `3`.
//!
//! Known members get their spelling, their kind and their words; what nobody here knows stays as it was sent. What no client
//! is ever shown again is taken out: passwords and the like, and what only the server says (`provisioningState`).
//!
//! A word that is none stays, too: whoever needs it says what is wrong with it.

mod known;
mod secrets;

use serde_json::{Map, Number, Value};

use super::kind::Kind;

/// What a member is.
#[derive(Clone, Copy, Debug)]
enum Sort {
    /// Anything; only its spelling is known.
    Any,
    /// True or false.
    Flag,
    /// A whole number.
    Count,
    /// A text.
    Text,
    /// One of these.
    Word(&'static [&'static str]),
}

/// Makes a body of that type canonical. Twice is as good as once.
///
/// ```
/// use forewarn_azure::{SCALE_SETS, canonical};
/// use serde_json::json;
///
/// let mut body = json!({ "sku": { "capacity": "2" }, "properties": { "upgradePolicy": { "mode": "manual" }, "mine": "x" } });
/// canonical(SCALE_SETS, &mut body);
/// assert_eq!(
///     body,
///     json!({ "sku": { "capacity": 2 }, "properties": { "upgradePolicy": { "mode": "Manual" }, "mine": "x" } })
/// );
/// ```
pub fn canonical(kind: &str, body: &mut Value) {
    let kind = Kind::of(kind);
    for (prefix, members) in known::members(kind) {
        if let Some(under) = step_to(body, prefix) {
            members.iter().for_each(|(place, sort)| walk(under, place, *sort));
        }
    }
    known::of_the_server(kind).for_each(|place| take_out(body, place));
    secrets::take_out(body);
}

/// What stands below a prefix.
fn step_to<'a>(body: &'a mut Value, prefix: &str) -> Option<&'a mut Value> {
    let steps = prefix.split('.').filter(|name| !name.is_empty());
    steps.into_iter().try_fold(body, |value, name| spelt(value.as_object_mut()?, name))
}

/// Makes everything at a place what it is: `a.b`, `a.list[].b`, `a.each{}`.
fn walk(value: &mut Value, place: &str, sort: Sort) {
    let (first, rest) = place.split_once('.').unwrap_or((place, ""));
    let (name, inside) = match (first.strip_suffix("[]"), first.strip_suffix("{}")) {
        (Some(name), _) => (name, Inside::Items),
        (None, Some(name)) => (name, Inside::Members),
        (None, None) => (first, Inside::Itself),
    };
    let Some(found) = value.as_object_mut().and_then(|members| spelt(members, name)) else { return };
    let each = |value: &mut Value| {
        if rest.is_empty() { coerce(value, sort) } else { walk(value, rest, sort) }
    };
    match (inside, found) {
        (Inside::Itself, value) => each(value),
        (Inside::Items, Value::Array(items)) => items.iter_mut().for_each(each),
        (Inside::Members, Value::Object(members)) => members.values_mut().for_each(each),
        (Inside::Items | Inside::Members, _) => {}
    }
}

/// Where to go on from a member.
#[derive(Clone, Copy)]
enum Inside {
    Itself,
    Items,
    Members,
}

/// A member in any spelling; it has the right one afterwards.
fn spelt<'a>(members: &'a mut Map<String, Value>, name: &str) -> Option<&'a mut Value> {
    if !members.contains_key(name) {
        let other = members.keys().find(|other| other.eq_ignore_ascii_case(name))?.clone();
        let value = members.shift_remove(&other)?;
        members.insert(name.to_owned(), value);
    }
    members.get_mut(name)
}

fn take_out(body: &mut Value, place: &str) {
    let (prefix, name) = place.rsplit_once('.').unwrap_or(("", place));
    if let Some(Value::Object(members)) = step_to(body, prefix) {
        members.retain(|other, _| !other.eq_ignore_ascii_case(name));
    }
}

fn coerce(value: &mut Value, sort: Sort) {
    let coerced = match (sort, &*value) {
        (Sort::Flag, Value::String(text)) => flag(text),
        (Sort::Count, Value::String(text)) => count(text),
        (Sort::Count, Value::Number(number)) => whole(number),
        (Sort::Text, Value::Number(number)) => Some(Value::from(number.to_string())),
        (Sort::Text, Value::Bool(flag)) => Some(Value::from(flag.to_string())),
        (Sort::Word(words), Value::String(text)) => {
            words.iter().find(|word| word.eq_ignore_ascii_case(text)).map(|word| Value::from(*word))
        }
        (Sort::Any | Sort::Flag | Sort::Count | Sort::Text | Sort::Word(_), _) => None,
    };
    if let Some(coerced) = coerced {
        *value = coerced;
    }
}

fn flag(text: &str) -> Option<Value> {
    let is = |word: &str| text.eq_ignore_ascii_case(word);
    (is("true") || is("false")).then(|| Value::from(is("true")))
}

fn count(text: &str) -> Option<Value> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    text.parse::<i64>().ok().filter(|_| is_number).map(Value::from)
}

/// A number that is whole although it was written as if it were not: `2.0`.
fn whole(number: &Number) -> Option<Value> {
    // What is farther away than this has no exact neighbours.
    const FARTHEST: f64 = 9_007_199_254_740_992.0;
    let float = number.as_f64().filter(|float| number.is_f64() && float.abs() < FARTHEST)?;
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and near enough")]
    let whole = (float.fract() == 0.0).then_some(float as i64)?;
    Some(Value::from(whole))
}

#[cfg(test)]
#[path = "canonical/tests.rs"]
mod tests;
