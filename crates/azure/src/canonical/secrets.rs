//! What is taken out of every body, because nobody may ever read it again.

use serde_json::Value;

/// Members that are secret wherever they stand.
const SECRET: [&str; 5] =
    ["adminPassword", "customData", "protectedSettings", "administratorPassword", "sharedKey"];

/// Members that are secret inside one of that name.
const SECRET_IN: [(&str, &str); 2] = [("osProfile", "secrets"), ("additionalUnattendContent", "content")];

/// Names and values of an owner, who may call them as they like.
const TAGS: &str = "tags";

/// Takes out what is secret, at any depth.
pub(super) fn take_out(body: &mut Value) {
    let Value::Object(members) = body else { return take_out_inside(body, "") };
    members.retain(|name, _| !is_secret(name, ""));
    for (name, value) in members.iter_mut().filter(|(name, _)| !name.eq_ignore_ascii_case(TAGS)) {
        take_out_inside(value, name);
    }
}

fn take_out_inside(value: &mut Value, inside: &str) {
    match value {
        Value::Object(members) => {
            members.retain(|name, _| !is_secret(name, inside));
            members.iter_mut().for_each(|(name, value)| take_out_inside(value, name));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| take_out_inside(item, inside)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_secret(name: &str, inside: &str) -> bool {
    let is = |one: &str, other: &str| one.eq_ignore_ascii_case(other);
    SECRET.iter().any(|secret| is(secret, name))
        || SECRET_IN.iter().any(|(place, secret)| is(place, inside) && is(secret, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_are_taken_out_wherever_they_are() {
        let mut body = json!({
            "tags": { "customData": "stays" },
            "AdminPassword": "x",
            "properties": {
                "osProfile": { "adminUsername": "me", "adminpassword": "x", "CustomData": "x", "secrets": [{}],
                    "windowsConfiguration": { "additionalUnattendContent": [{ "passName": "p", "content": "x" }] } },
                "secrets": "of something else",
                "extensionProfile": { "extensions": [
                    { "name": "e", "properties": { "settings": { "content": 1 }, "protectedSettings": { "k": "x" } } }
                ] },
            },
        });
        take_out(&mut body);
        let left = json!({
            "tags": { "customData": "stays" },
            "properties": {
                "osProfile": { "adminUsername": "me",
                    "windowsConfiguration": { "additionalUnattendContent": [{ "passName": "p" }] } },
                "secrets": "of something else",
                "extensionProfile": { "extensions": [{ "name": "e", "properties": { "settings": { "content": 1 } } }] },
            },
        });
        assert_eq!(body, left);
    }
}
