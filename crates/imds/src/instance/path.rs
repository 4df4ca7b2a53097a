//! Lookup of a node by its path, and its rendering.

use serde_json::Value;

use super::Format;
use crate::request_error::RequestError;

/// The node at a path. Leading and trailing slashes are ignored; an empty segment inside matches nothing.
pub(super) fn find<'a>(tree: &'a Value, path: &str) -> Option<&'a Value> {
    let path = path.strip_prefix('/').unwrap_or(path);
    let path = path.strip_suffix('/').unwrap_or(path);
    if path.is_empty() {
        return Some(tree);
    }
    path.split('/').try_fold(tree, child)
}

fn child<'a>(node: &'a Value, segment: &str) -> Option<&'a Value> {
    match node {
        Value::Object(members) => {
            members.iter().find(|(key, _)| key.eq_ignore_ascii_case(segment)).map(|(_, value)| value)
        }
        Value::Array(items) => items.get(index(segment)?),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// An index in the exact form of a listing.
fn index(segment: &str) -> Option<usize> {
    segment.parse().ok().filter(|index: &usize| index.to_string() == segment)
}

pub(super) fn show(node: &Value, format: Format) -> Result<String, RequestError> {
    match format {
        Format::Json if is_leaf(node) => Err(RequestError::LeafNeedsText),
        Format::Json => Ok(node.to_string()),
        Format::Text => Ok(text(node)),
    }
}

fn text(node: &Value) -> String {
    match node {
        Value::Object(members) => lines(members.iter().map(|(key, value)| line(key, value))),
        Value::Array(items) => {
            lines(items.iter().enumerate().map(|(index, value)| line(&index.to_string(), value)))
        }
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) => node.to_string(),
    }
}

fn line(name: &str, value: &Value) -> String {
    if is_leaf(value) { name.to_owned() } else { format!("{name}/") }
}

fn is_leaf(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        Value::Array(_) | Value::Object(_) => false,
    }
}

fn lines(lines: impl Iterator<Item = String>) -> String {
    lines.collect::<Vec<_>>().join("\n")
}
