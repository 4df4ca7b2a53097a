//! Templates: whatever they ask for has its limits, comes out the same again, and shows no secret.

use forewarn_azure::template::{Context, expand, read};
use forewarn_azure::{ArmError, deployment};
use forewarn_control::resource_id::{GroupId, ResourceId};
use serde_json::{Value, json};

/// Resources that a template may declare.
const RESOURCES_MAX: usize = 800;

pub(crate) fn examine(bytes: &[u8]) -> String {
    let body = match read(bytes) {
        Ok(body) => body,
        Err(refused) => return refused.to_string(),
    };
    let outcome = deploy(&body["properties"]);
    assert_eq!(outcome, deploy(&body["properties"]), "not the same again");
    match outcome {
        Ok(count) => format!("{count} resources"),
        Err(refused) => refused.details.first().unwrap_or(&refused).to_string(),
    }
}

fn deploy(properties: &Value) -> Result<usize, ArmError> {
    let group = GroupId { subscription: "s".to_owned(), name: "g".to_owned() };
    let context = Context { group: &group, location: "eastus", deployment: "d" };
    let mut expanded = expand(properties, &context)?;
    let count = expanded.resources.len();
    assert!(count <= RESOURCES_MAX, "too many resources: {count}");
    let look = |id: &ResourceId| Some(json!({ "name": id.name(), "properties": { "key": ["value"] } }));
    for place in 0..count {
        expanded.body(place, &look)?;
    }
    expanded.outputs(&look)?;
    check_secrets(&deployment::stored_part(&expanded, "eastus"));
    Ok(count)
}

/// A parameter that is secret is shown without its value.
fn check_secrets(shown: &Value) {
    for parameter in shown["parameters"].as_object().into_iter().flatten().map(|(_, parameter)| parameter) {
        let is_secret = parameter["type"].as_str().is_some_and(|kind| kind.starts_with("Secure"));
        assert_eq!(
            parameter.get("value").is_none(),
            is_secret,
            "a secret is shown, or something else is not"
        );
    }
}
