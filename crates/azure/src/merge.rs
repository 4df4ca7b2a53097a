//! What is kept and what is sent, made one: PUT and PATCH change what they name, and leave the rest.
//!
//! What is null has not been said. A list takes the place of the one before. So do the tags, all of them: otherwise none
//! could ever be taken away.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// The member of a resource that is replaced as a whole although it is an object.
const TAGS: &str = "tags";

/// What is kept, changed as it was sent.
///
/// ```
/// use forewarn_azure::merge;
/// use serde_json::json;
///
/// let kept = json!({ "sku": { "name": "s", "capacity": 2 }, "zones": ["1", "2"] });
/// let sent = json!({ "sku": { "capacity": 3 }, "zones": ["3"], "location": null });
/// assert_eq!(merge(&kept, &sent), json!({ "sku": { "name": "s", "capacity": 3 }, "zones": ["3"] }));
/// ```
#[must_use]
pub fn merge(kept: &Value, sent: &Value) -> Value {
    let mut merged = kept.clone();
    if let (Value::Object(members), Value::Object(sent)) = (&mut merged, sent)
        && let Some((_, tags)) = sent.iter().find(|(name, _)| name.eq_ignore_ascii_case(TAGS))
        && tags.is_object()
    {
        members.retain(|name, _| !name.eq_ignore_ascii_case(TAGS));
    }
    put(&mut merged, sent);
    merged
}

/// Changes a value as it was sent.
fn put(kept: &mut Value, sent: &Value) {
    match (kept, sent) {
        (_, Value::Null) => {}
        (Value::Object(kept), Value::Object(sent)) => put_members(kept, sent),
        (kept, sent) => *kept = said(sent),
    }
}

fn put_members(kept: &mut Map<String, Value>, sent: &Map<String, Value>) {
    let mut spellings: Option<HashMap<String, String>> = None;
    for (name, value) in sent.iter().filter(|(_, value)| !value.is_null()) {
        if let Some(known) = kept.get_mut(name) {
            put(known, value);
            continue;
        }
        // Spelt otherwise it is the same member; the spelling that is kept stays.
        let spellings = spellings.get_or_insert_with(|| {
            kept.keys().map(|name| (name.to_ascii_lowercase(), name.clone())).collect()
        });
        let lower = name.to_ascii_lowercase();
        match spellings.get(&lower).and_then(|spelling| kept.get_mut(spelling)) {
            Some(known) => put(known, value),
            None => {
                kept.insert(name.clone(), said(value));
                spellings.insert(lower, name.clone());
            }
        }
    }
}

/// A value without what has not been said in it.
fn said(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut said = Map::new();
            put_members(&mut said, members);
            Value::Object(said)
        }
        Value::Array(items) => items.iter().map(said).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_sent_changes_what_it_names() {
        for (kept, sent, merged) in [
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
            assert_eq!(merge(&kept, &sent), merged, "{kept} and {sent}");
        }
    }

    #[test]
    fn a_member_has_one_spelling_the_first() {
        let kept = json!({ "properties": { "upgradePolicy": { "mode": "Manual" } } });
        let sent = json!({ "Properties": { "UpgradePolicy": { "Mode": "Automatic" } } });
        let merged = json!({ "properties": { "upgradePolicy": { "mode": "Automatic" } } });
        assert_eq!(merge(&kept, &sent), merged);
        assert_eq!(merge(&json!({}), &json!({ "a": 1, "A": 2 })), json!({ "a": 2 }));
    }

    #[test]
    fn tags_are_replaced_all_of_them() {
        let kept = json!({ "tags": { "a": "1", "b": "2" }, "properties": { "tags": { "c": "3" } } });
        let sent = json!({ "Tags": { "b": "3" }, "properties": { "tags": { "d": "4" } } });
        let merged = json!({ "Tags": { "b": "3" }, "properties": { "tags": { "c": "3", "d": "4" } } });
        assert_eq!(merge(&kept, &sent), merged);
        assert_eq!(merge(&kept, &json!({ "tags": {} }))["tags"], json!({}));
        assert_eq!(merge(&kept, &json!({ "tags": null })), kept);
    }
}
