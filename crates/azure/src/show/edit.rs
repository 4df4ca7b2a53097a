//! Edits of a client's body. Nothing here panics, whatever the body is: a value in the way is replaced.
//!
//! A place is named as for reading: `properties.osProfile`.

use serde_json::{Map, Value};

use crate::body::at;

/// The text that is there.
pub(super) fn text<'a>(body: &'a Value, place: &str) -> Option<&'a str> {
    at(body, place)?.as_str()
}

/// Puts a value there, whatever there was.
pub(super) fn put(body: &mut Value, place: &str, value: impl Into<Value>) {
    let found = place.split('.').fold(body, |node, key| object(node).entry(key).or_insert(Value::Null));
    *found = value.into();
}

/// Puts a value there, if there is one.
pub(super) fn put_if<T: Into<Value>>(body: &mut Value, place: &str, value: Option<T>) {
    if let Some(value) = value {
        put(body, place, value);
    }
}

/// Puts a value there, if there is nothing.
pub(super) fn fill(body: &mut Value, place: &str, value: impl Into<Value>) {
    if at(body, place).is_none() {
        put(body, place, value);
    }
}

/// Takes away what is there.
pub(super) fn take(body: &mut Value, place: &str) -> Option<Value> {
    let (holder, name) = match place.rsplit_once('.') {
        Some((holder, name)) => (holder.split('.').try_fold(body, |node, key| node.get_mut(key))?, name),
        None => (body, place),
    };
    holder.as_object_mut()?.shift_remove(name)
}

/// The members of `more` that a body does not have.
pub(super) fn complete(body: &mut Value, more: &Value) {
    let Value::Object(more) = more else { return };
    let members = object(body);
    for (key, value) in more {
        if !members.contains_key(key) {
            members.insert(key.clone(), value.clone());
        }
    }
}

fn object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("it has just been made one")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_in_the_way_is_replaced() {
        for mut body in [json!(null), json!([1]), json!({ "a": "b" }), json!({ "a": { "b": [] } })] {
            put(&mut body, "a.b.c", 1);
            assert_eq!(body, json!({ "a": { "b": { "c": 1 } } }));
        }
    }

    #[test]
    fn what_is_there_is_not_filled_and_null_is_nothing() {
        let mut body = json!({ "a": false, "b": null });
        for place in ["a", "b", "c.d"] {
            fill(&mut body, place, 1);
        }
        assert_eq!(body, json!({ "a": false, "b": 1, "c": { "d": 1 } }));
        put_if(&mut body, "a", None::<u8>);
        assert_eq!((take(&mut body, "c.d"), take(&mut body, "b")), (Some(json!(1)), Some(json!(1))));
        assert_eq!((take(&mut body, "a.none"), take(&mut body, "x.y.z")), (None, None));
        assert_eq!(body, json!({ "a": false, "c": {} }));
    }

    #[test]
    fn a_body_is_completed_with_what_it_lacks() {
        let mut body = json!({ "a": 1 });
        complete(&mut body, &json!({ "a": 2, "b": 3 }));
        complete(&mut body, &json!([4]));
        assert_eq!(body, json!({ "a": 1, "b": 3 }));
    }
}
