//! Merges a stored body with one that was sent: PUT and PATCH change the members that they name, and leave the rest.
//!
//! Null means absent. A list replaces the former one. So do tags, as a whole: otherwise none could be removed.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// The member that is replaced as a whole although it is an object.
const TAGS: &str = "tags";

/// The stored body, changed by the one that was sent.
///
/// ```
/// use forewarn_azure::merge;
/// use serde_json::json;
///
/// let stored = json!({ "sku": { "name": "s", "capacity": 2 }, "zones": ["1", "2"] });
/// let sent = json!({ "sku": { "capacity": 3 }, "zones": ["3"], "location": null });
/// assert_eq!(merge(&stored, &sent), json!({ "sku": { "name": "s", "capacity": 3 }, "zones": ["3"] }));
/// ```
#[must_use]
pub fn merge(stored: &Value, sent: &Value) -> Value {
    let mut merged = stored.clone();
    if let (Value::Object(members), Value::Object(sent)) = (&mut merged, sent)
        && let Some((_, tags)) = sent.iter().find(|(name, _)| name.eq_ignore_ascii_case(TAGS))
        && tags.is_object()
    {
        members.retain(|name, _| !name.eq_ignore_ascii_case(TAGS));
    }
    put(&mut merged, sent);
    merged
}

/// Merges a value into a stored one.
fn put(stored: &mut Value, sent: &Value) {
    match (stored, sent) {
        (_, Value::Null) => {}
        (Value::Object(stored), Value::Object(sent)) => put_members(stored, sent),
        (stored, sent) => *stored = without_nulls(sent),
    }
}

fn put_members(stored: &mut Map<String, Value>, sent: &Map<String, Value>) {
    let mut spellings: Option<HashMap<String, String>> = None;
    for (name, value) in sent.iter().filter(|(_, value)| !value.is_null()) {
        if let Some(known) = stored.get_mut(name) {
            put(known, value);
            continue;
        }
        // The same member in another case; the stored spelling stays.
        let spellings = spellings.get_or_insert_with(|| {
            stored.keys().map(|name| (name.to_ascii_lowercase(), name.clone())).collect()
        });
        let lower = name.to_ascii_lowercase();
        match spellings.get(&lower).and_then(|spelling| stored.get_mut(spelling)) {
            Some(known) => put(known, value),
            None => {
                stored.insert(name.clone(), without_nulls(value));
                spellings.insert(lower, name.clone());
            }
        }
    }
}

/// A value without its null members.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut without_nulls = Map::new();
            put_members(&mut without_nulls, members);
            Value::Object(without_nulls)
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// promise: Z1
    #[test]
    fn sent_members_replace_stored_ones() {
        for (stored, sent, merged) in [
            (json!({}), json!({}), json!({})),
            (json!({ "a": 1 }), json!({ "b": 2 }), json!({ "a": 1, "b": 2 })),
            (json!({ "a": 1 }), json!({ "a": 2 }), json!({ "a": 2 })),
            (
                json!({ "a": { "b": 1, "c": 2 } }),
                json!({ "a": { "c": 3 } }),
                json!({ "a": { "b": 1, "c": 3 } }),
            ),
            (json!({ "a": 1 }), json!(null), json!({ "a": 1 })),
            (json!({ "a": 1 }), json!({ "a": null }), json!({ "a": 1 })),
            (json!({}), json!({ "a": null, "b": { "c": null } }), json!({ "b": {} })),
            (json!({}), json!({ "a": [{ "b": null, "c": 1 }, null] }), json!({ "a": [{ "c": 1 }, null] })),
            (json!({ "a": [1, 2] }), json!({ "a": [] }), json!({ "a": [] })),
            (json!({ "a": [1] }), json!({ "a": { "b": 1 } }), json!({ "a": { "b": 1 } })),
            (json!({ "a": { "b": 1 } }), json!({ "a": "x" }), json!({ "a": "x" })),
            (json!(null), json!({ "a": 1 }), json!({ "a": 1 })),
        ] {
            assert_eq!(merge(&stored, &sent), merged, "{stored} and {sent}");
        }
    }

    #[test]
    fn a_member_has_one_spelling_the_first() {
        let stored = json!({ "properties": { "upgradePolicy": { "mode": "Manual" } } });
        let sent = json!({ "Properties": { "UpgradePolicy": { "Mode": "Automatic" } } });
        let merged = json!({ "properties": { "upgradePolicy": { "mode": "Automatic" } } });
        assert_eq!(merge(&stored, &sent), merged);
        assert_eq!(merge(&json!({}), &json!({ "a": 1, "A": 2 })), json!({ "a": 2 }));
    }

    /// promise: Z1
    #[test]
    fn tags_are_replaced_all_of_them() {
        let stored = json!({ "tags": { "a": "1", "b": "2" }, "properties": { "tags": { "c": "3" } } });
        let sent = json!({ "Tags": { "b": "3" }, "properties": { "tags": { "d": "4" } } });
        let merged = json!({ "Tags": { "b": "3" }, "properties": { "tags": { "c": "3", "d": "4" } } });
        assert_eq!(merge(&stored, &sent), merged);
        assert_eq!(merge(&stored, &json!({ "tags": {} }))["tags"], json!({}));
        assert_eq!(merge(&stored, &json!({ "tags": null })), stored);
    }
}
