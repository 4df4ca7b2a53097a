//! Converts numbers and flags that clients send as texts.

use serde_json::{Value, json};

/// Members that are numbers.
const NUMBERS: [&str; 10] = [
    "backendPort",
    "frontendPort",
    "frontendPortRangeEnd",
    "frontendPortRangeStart",
    "idleTimeoutInMinutes",
    "intervalInSeconds",
    "numberOfProbes",
    "port",
    "priority",
    "probeThreshold",
];

/// Members that are flags.
const TRUTHS: [&str; 7] = [
    "disableOutboundSnat",
    "enableAcceleratedNetworking",
    "enableFloatingIP",
    "enableIPForwarding",
    "enableTcpReset",
    "enableDdosProtection",
    "primary",
];

/// Maximum depth; deeper values stay as sent.
const DEPTH_MAX: usize = 32;

/// Converts texts to numbers and flags in members of these types.
///
/// ```
/// use serde_json::json;
///
/// let mut body = json!({ "properties": { "backendPort": "22", "primary": "True", "name": "1" } });
/// forewarn_azure::network::tidy(&mut body);
/// assert_eq!(body, json!({ "properties": { "backendPort": 22, "primary": true, "name": "1" } }));
/// ```
pub fn tidy(body: &mut Value) {
    within(body, DEPTH_MAX);
}

fn within(body: &mut Value, depth: usize) {
    let Some(depth) = depth.checked_sub(1) else { return };
    match body {
        Value::Array(list) => list.iter_mut().for_each(|inside| within(inside, depth)),
        Value::Object(members) => {
            for (name, value) in members {
                match meant(name, value) {
                    Some(meant) => *value = meant,
                    None => within(value, depth),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The value that a text means under that name; `None` if it stays a text.
fn meant(name: &str, value: &Value) -> Option<Value> {
    let text = value.as_str()?;
    let is_among = |names: &[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    if is_among(&NUMBERS) {
        return text.parse::<i64>().ok().map(|number| json!(number));
    }
    if is_among(&TRUTHS) {
        return text.to_lowercase().parse::<bool>().ok().map(|truth| json!(truth));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_read_is_changed() {
        let mut body = json!({ "rules": [{ "Port": "80", "priority": "high", "primary": "maybe" }] });
        tidy(&mut body);
        assert_eq!(body, json!({ "rules": [{ "Port": 80, "priority": "high", "primary": "maybe" }] }));
        let mut deep = (0..2 * DEPTH_MAX).fold(json!({ "port": "1" }), |inner, _| json!([inner]));
        let before = deep.clone();
        tidy(&mut deep);
        assert_eq!(deep, before);
    }
}
