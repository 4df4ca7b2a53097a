//! Canonical bodies: one form for what clients write in many: `"true"` is `true`, `manual` is `Manual`, `"3"` is `3`.
//!
//! Known members get their spelling and type, and their words the right case; unknown members stay as sent. Secrets
//! such as passwords, and members that only the server sets (`provisioningState`), are removed.
//!
//! An invalid word stays: the code that reads it reports the error.

mod known;
mod secrets;

use serde_json::{Map, Number, Value};

use super::kind::ResourceKind;

/// Type of a member.
#[derive(Clone, Copy, Debug)]
enum MemberType {
    /// Any value; only its spelling is known.
    Any,
    Flag,
    Count,
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
}

/// Makes a body of that type canonical. Idempotent.
///
/// ```
/// use forewarn_azure::{SCALE_SETS, canonical};
/// use serde_json::json;
///
/// let properties = json!({ "upgradePolicy": { "mode": "manual" }, "mine": "x" });
/// let mut body = json!({ "sku": { "capacity": "2" }, "properties": properties });
/// canonical(SCALE_SETS, &mut body);
/// assert_eq!(
///     body,
///     json!({ "sku": { "capacity": 2 }, "properties": { "upgradePolicy": { "mode": "Manual" }, "mine": "x" } })
/// );
/// ```
pub fn canonical(kind: &str, body: &mut Value) {
    let kind = ResourceKind::of(kind);
    for (prefix, members) in known::members(kind) {
        if let Some(under) = step_to(body, prefix) {
            members.iter().for_each(|(path, member_type)| walk(under, path, *member_type));
        }
    }
    known::of_the_server(kind).for_each(|path| take_out(body, path));
    secrets::take_out(body);
}

/// The value below a prefix.
fn step_to<'a>(body: &'a mut Value, prefix: &str) -> Option<&'a mut Value> {
    let steps = prefix.split('.').filter(|name| !name.is_empty());
    steps.into_iter().try_fold(body, |value, name| spelt(value.as_object_mut()?, name))
}

/// Converts every value at a path: `a.b`, `a.list[].b`, `a.each{}`.
fn walk(value: &mut Value, path: &str, member_type: MemberType) {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    let (name, inside) = match (first.strip_suffix("[]"), first.strip_suffix("{}")) {
        (Some(name), _) => (name, Descent::Items),
        (None, Some(name)) => (name, Descent::Members),
        (None, None) => (first, Descent::Itself),
    };
    let Some(found) = value.as_object_mut().and_then(|members| spelt(members, name)) else { return };
    let each = |value: &mut Value| {
        if rest.is_empty() { coerce(value, member_type) } else { walk(value, rest, member_type) }
    };
    match (inside, found) {
        (Descent::Itself, value) => each(value),
        (Descent::Items, Value::Array(items)) => items.iter_mut().for_each(each),
        (Descent::Members, Value::Object(members)) => members.values_mut().for_each(each),
        (Descent::Items | Descent::Members, _) => {}
    }
}

/// Way to descend from a member.
#[derive(Clone, Copy)]
enum Descent {
    Itself,
    Items,
    Members,
}

/// A member in any case; renames it to the right spelling.
fn spelt<'a>(members: &'a mut Map<String, Value>, name: &str) -> Option<&'a mut Value> {
    if !members.contains_key(name) {
        let other = members.keys().find(|other| other.eq_ignore_ascii_case(name))?.clone();
        let value = members.shift_remove(&other)?;
        members.insert(name.to_owned(), value);
    }
    members.get_mut(name)
}

fn take_out(body: &mut Value, path: &str) {
    let (prefix, name) = path.rsplit_once('.').unwrap_or(("", path));
    if let Some(Value::Object(members)) = step_to(body, prefix) {
        members.retain(|other, _| !other.eq_ignore_ascii_case(name));
    }
}

fn coerce(value: &mut Value, member_type: MemberType) {
    let coerced = match (member_type, &*value) {
        (MemberType::Flag, Value::String(text)) => flag(text),
        (MemberType::Count, Value::String(text)) => count(text),
        (MemberType::Count, Value::Number(number)) => whole(number),
        (MemberType::Text, Value::Number(number)) => Some(Value::from(number.to_string())),
        (MemberType::Text, Value::Bool(flag)) => Some(Value::from(flag.to_string())),
        (MemberType::Word(words), Value::String(text)) => {
            words.iter().find(|word| word.eq_ignore_ascii_case(text)).map(|word| Value::from(*word))
        }
        (
            MemberType::Any | MemberType::Flag | MemberType::Count | MemberType::Text | MemberType::Word(_),
            _,
        ) => None,
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

/// An integer that was written as a float: `2.0`.
fn whole(number: &Number) -> Option<Value> {
    // Larger floats have no exact neighbours.
    const FARTHEST: f64 = 9_007_199_254_740_992.0;
    let float = number.as_f64().filter(|float| number.is_f64() && float.abs() < FARTHEST)?;
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and near enough")]
    let whole = (float.fract() == 0.0).then_some(float as i64)?;
    Some(Value::from(whole))
}

#[cfg(test)]
mod tests;
