//! Edits of a client's body. Nothing here panics, whatever the body is: a value in the way is replaced.
//!
//! Paths are those of reading: `properties.osProfile`.

use serde_json::{Map, Value};

use crate::body::at;

/// The text at a path.
pub(super) fn text<'a>(body: &'a Value, path: &str) -> Option<&'a str> {
    at(body, path)?.as_str()
}

/// Sets the value at a path.
pub(super) fn put(body: &mut Value, path: &str, value: impl Into<Value>) {
    let found = path.split('.').fold(body, |node, key| object(node).entry(key).or_insert(Value::Null));
    *found = value.into();
}

/// Sets the value at a path, if there is one.
pub(super) fn put_if<T: Into<Value>>(body: &mut Value, path: &str, value: Option<T>) {
    if let Some(value) = value {
        put(body, path, value);
    }
}

/// Sets the value at a path that has none.
pub(super) fn fill(body: &mut Value, path: &str, value: impl Into<Value>) {
    if at(body, path).is_none() {
        put(body, path, value);
    }
}

/// Removes the value at a path.
pub(super) fn take(body: &mut Value, path: &str) -> Option<Value> {
    let (holder, name) = match path.rsplit_once('.') {
        Some((holder, name)) => (holder.split('.').try_fold(body, |node, key| node.get_mut(key))?, name),
        None => (body, path),
    };
    holder.as_object_mut()?.shift_remove(name)
}

/// Adds the members of `more` that a body lacks.
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
    fn a_value_in_the_path_is_replaced() {
        for mut body in [json!(null), json!([1]), json!({ "a": "b" }), json!({ "a": { "b": [] } })] {
            put(&mut body, "a.b.c", 1);
            assert_eq!(body, json!({ "a": { "b": { "c": 1 } } }));
        }
    }

    #[test]
    fn fill_keeps_values_and_replaces_null() {
        let mut body = json!({ "a": false, "b": null });
        for path in ["a", "b", "c.d"] {
            fill(&mut body, path, 1);
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
