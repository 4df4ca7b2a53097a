//! Child resources: elements of a list in the properties of their parent, found by name.

use serde_json::{Value, json};

use crate::merge;

/// Types and names of children, the outermost first.
type Path<'a> = &'a [(String, String)];

/// Name of an element.
pub(super) fn name_of(inside: &Value) -> Option<&str> {
    inside.get("name")?.as_str().filter(|name| !name.is_empty() && !name.contains('/'))
}

/// The child at a path.
#[must_use]
pub fn child<'a>(body: &'a Value, path: Path<'_>) -> Option<&'a Value> {
    path.iter().try_fold(body, |body, (kind, name)| {
        let (_, list) =
            body["properties"].as_object()?.iter().find(|(key, _)| key.eq_ignore_ascii_case(kind))?;
        list.as_array()?.iter().find(|inside| is_called(inside, name))
    })
}

/// Writes a child. Returns true if it is new, `None` if its parent does not exist.
#[must_use]
pub fn put_child(body: &mut Value, path: Path<'_>, sent: &Value) -> Option<bool> {
    let ((kind, name), above) = path.split_last().filter(|_| sent.is_object())?;
    let list = list_of(above.iter().try_fold(body, |body, step| inside_of(body, step))?, kind)?;
    let mut merged = match list.iter().find(|inside| is_called(inside, name)) {
        Some(before) => merge(before, sent),
        None => merge(&json!({ "name": name }), sent),
    };
    let before = list.iter_mut().find(|inside| is_called(inside, name));
    let spelled = before.as_ref().and_then(|before| name_of(before)).unwrap_or(name).to_owned();
    merged["name"] = json!(spelled);
    let is_new = before.is_none();
    match before {
        Some(before) => *before = merged,
        None => list.push(merged),
    }
    Some(is_new)
}

/// Removes a child. Returns true if it existed.
pub fn remove_child(body: &mut Value, path: Path<'_>) -> bool {
    let Some(((kind, name), above)) = path.split_last() else { return false };
    let Some(above) = above.iter().try_fold(body, |body, step| inside_of(body, step)) else { return false };
    let Some(list) = list_of(above, kind) else { return false };
    let before = list.len();
    list.retain(|inside| !is_called(inside, name));
    list.len() < before
}

fn is_called(inside: &Value, name: &str) -> bool {
    name_of(inside).is_some_and(|own| own.eq_ignore_ascii_case(name))
}

fn inside_of<'a>(body: &'a mut Value, (kind, name): &(String, String)) -> Option<&'a mut Value> {
    list_of(body, kind)?.iter_mut().find(|inside| is_called(inside, name))
}

/// The list of a type, which is created if absent; `None` if the member is not a list.
fn list_of<'a>(body: &'a mut Value, kind: &str) -> Option<&'a mut Vec<Value>> {
    let properties =
        body.as_object_mut()?.entry("properties").or_insert_with(|| json!({})).as_object_mut()?;
    let spelled = properties.keys().find(|key| key.eq_ignore_ascii_case(kind)).cloned();
    properties.entry(spelled.unwrap_or_else(|| kind.to_owned())).or_insert_with(|| json!([])).as_array_mut()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Vec<(String, String)> {
        let parts: Vec<_> = text.split('/').map(str::to_owned).collect();
        parts.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
    }

    /// promise: Z4
    #[test]
    fn written_children_are_found() {
        let mut body =
            json!({ "properties": { "subnets": [{ "name": "A", "properties": { "x": 1, "y": 1 } }] } });
        assert_eq!(
            put_child(&mut body, &path("Subnets/a"), &json!({ "properties": { "x": 2 }, "name": "z" })),
            Some(false)
        );
        assert_eq!(put_child(&mut body, &path("subnets/b"), &json!({})), Some(true));
        assert_eq!(put_child(&mut body, &path("rules/r"), &json!({})), Some(true));
        assert_eq!(put_child(&mut body, &path("subnets/a/inner/i"), &json!({ "k": 1 })), Some(true));
        assert_eq!(put_child(&mut body, &path("subnets/c/inner/i"), &json!({})), None);
        assert_eq!(child(&body, &path("SUBNETS/a")).unwrap()["properties"]["x"], 2);
        assert_eq!(child(&body, &path("subnets/a/inner/i")), Some(&json!({ "name": "i", "k": 1 })));
        let names: Vec<_> =
            body["properties"]["subnets"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
        assert_eq!(names, ["A", "b"]);
        assert!(remove_child(&mut body, &path("subnets/B")));
        assert!(
            !remove_child(&mut body, &path("subnets/B")) && !remove_child(&mut body, &path("none/x/inner/i"))
        );
        assert_eq!(child(&body, &path("subnets/b")), None);
    }

    #[test]
    fn nothing_is_written_into_what_is_no_list() {
        for mut body in [json!(1), json!({ "properties": 1 }), json!({ "properties": { "subnets": {} } })] {
            assert_eq!(put_child(&mut body, &path("subnets/a"), &json!({})), None, "{body}");
        }
    }
}
