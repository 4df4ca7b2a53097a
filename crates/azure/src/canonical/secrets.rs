//! Secrets, which are removed from every body.

use serde_json::Value;

/// Members that are secret at any path.
const SECRET: [&str; 5] =
    ["adminPassword", "customData", "protectedSettings", "administratorPassword", "sharedKey"];

/// Members that are secret inside another one.
const SECRET_IN: [(&str, &str); 2] = [("osProfile", "secrets"), ("additionalUnattendContent", "content")];

/// Names and values that clients choose freely.
const TAGS: &str = "tags";

/// Removes secrets at any depth.
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
        || SECRET_IN.iter().any(|(holder, secret)| is(holder, inside) && is(secret, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// promise: Z1
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
