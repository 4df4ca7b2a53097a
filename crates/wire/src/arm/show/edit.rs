//! Writing into a body that somebody else has written. Whatever it is, nothing here panics: what is in the way is replaced.
//!
//! A path is a JSON pointer without escapes: `/properties/osProfile`.

use serde_json::{Map, Value};

/// What is there; `null` is nothing.
pub(super) fn at<'a>(body: &'a Value, path: &str) -> Option<&'a Value> {
    body.pointer(path).filter(|value| !value.is_null())
}

/// The text that is there.
pub(super) fn text_at<'a>(body: &'a Value, path: &str) -> Option<&'a str> {
    at(body, path)?.as_str()
}

/// Puts a value there, whatever there was.
pub(super) fn put(body: &mut Value, path: &str, value: impl Into<Value>) {
    let place =
        path.split('/').skip(1).fold(body, |node, key| object(node).entry(key).or_insert(Value::Null));
    *place = value.into();
}

/// Puts a value there, if there is one.
pub(super) fn put_if<T: Into<Value>>(body: &mut Value, path: &str, value: Option<T>) {
    if let Some(value) = value {
        put(body, path, value);
    }
}

/// Puts a value there, if there is nothing.
pub(super) fn fill(body: &mut Value, path: &str, value: impl Into<Value>) {
    if at(body, path).is_none() {
        put(body, path, value);
    }
}

/// Takes away what is there.
pub(super) fn take(body: &mut Value, path: &str) {
    let Some((parent, key)) = path.rsplit_once('/') else { return };
    if let Some(Value::Object(members)) = body.pointer_mut(parent) {
        members.shift_remove(key);
    }
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
            put(&mut body, "/a/b/c", 1);
            assert_eq!(body, json!({ "a": { "b": { "c": 1 } } }));
        }
    }

    #[test]
    fn what_is_there_is_not_filled_and_null_is_nothing() {
        let mut body = json!({ "a": false, "b": null });
        for path in ["/a", "/b", "/c/d"] {
            fill(&mut body, path, 1);
        }
        assert_eq!(body, json!({ "a": false, "b": 1, "c": { "d": 1 } }));
        put_if(&mut body, "/a", None::<u8>);
        take(&mut body, "/c/d");
        take(&mut body, "/a/none");
        assert_eq!(body, json!({ "a": false, "b": 1, "c": {} }));
    }

    #[test]
    fn a_body_is_completed_with_what_it_lacks() {
        let mut body = json!({ "a": 1 });
        complete(&mut body, &json!({ "a": 2, "b": 3 }));
        complete(&mut body, &json!([4]));
        assert_eq!(body, json!({ "a": 1, "b": 3 }));
    }
}
