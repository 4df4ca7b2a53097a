//! Merges a request into the stored body: one step for PUT and PATCH of any type.

use serde_json::{Map, Value};

use super::body::{at, object_at, shown, text_at};
use super::canonical::canonical;
use super::error::ArmError;
use super::kind::ResourceKind;
use super::merge::merge;
use super::profile::complete_profile;
use super::version::ApiVersion;
use super::versioned_members::check_version;
use forewarn_control::TAGS_MAX;

/// Maximum bytes of a stored resource.
const RESOURCE_BYTES_MAX: usize = 256 << 10;

/// Maximum characters of the name and the value of a tag.
const TAG_NAME_CHARS_MAX: usize = 512;
const TAG_VALUE_CHARS_MAX: usize = 256;

/// The body of a resource after a PUT or PATCH. `stored` is the stored body; `None` for a new resource.
///
/// # Errors
/// Fails if the request has members that its version does not have, a new resource has no location or an existing one
/// another location, it is too long, or its tags are invalid.
///
/// ```
/// use forewarn_azure::{ApiVersion, SCALE_SETS, settle};
/// use serde_json::json;
///
/// let version = ApiVersion::new(2024, 11, 1);
/// let stored = json!({ "location": "eastus", "sku": { "name": "s", "capacity": 2 } });
/// let after = settle(SCALE_SETS, Some(&stored), &json!({ "sku": { "capacity": "3" } }), version)?;
/// assert_eq!(after, json!({ "location": "eastus", "sku": { "name": "s", "capacity": 3 } }));
/// assert_eq!(settle(SCALE_SETS, None, &json!({}), version).unwrap_err().code, "LocationRequired");
/// # Ok::<_, forewarn_azure::ArmError>(())
/// ```
pub fn settle(
    kind: &str,
    stored: Option<&Value>,
    sent: &Value,
    version: ApiVersion,
) -> Result<Value, ArmError> {
    if !sent.is_object() {
        let message = "The request content was invalid: a resource is an object.";
        return Err(ArmError::new(400, "InvalidRequestContent", message));
    }
    check_version(kind, sent, version)?;
    let mut canonical_body = sent.clone();
    canonical(kind, &mut canonical_body);
    let nothing = Value::Object(Map::new());
    let mut settled = merge(stored.unwrap_or(&nothing), &canonical_body);
    canonical(kind, &mut settled);
    match ResourceKind::of(kind) {
        ResourceKind::Machine => settled.get_mut("properties").into_iter().for_each(complete_profile),
        ResourceKind::ScaleSet => {
            let model = settled.get_mut("properties").and_then(|own| own.get_mut("virtualMachineProfile"));
            model.into_iter().for_each(complete_profile);
        }
        ResourceKind::Instance | ResourceKind::AvailabilitySet | ResourceKind::Other => {}
    }
    check_location(kind, stored, &settled)?;
    check_tags(&settled)?;
    if settled.to_string().len() > RESOURCE_BYTES_MAX {
        let message = format!("The resource would have more than {RESOURCE_BYTES_MAX} bytes.");
        return Err(ArmError::new(413, "RequestContentTooLarge", message));
    }
    Ok(settled)
}

fn check_location(kind: &str, stored: Option<&Value>, settled: &Value) -> Result<(), ArmError> {
    let must_have = match ResourceKind::of(kind) {
        ResourceKind::Machine | ResourceKind::ScaleSet | ResourceKind::AvailabilitySet => stored.is_none(),
        ResourceKind::Instance | ResourceKind::Other => false,
    };
    let is = text_at(settled, "location")?.filter(|location| !location.trim().is_empty());
    if is.is_none() && must_have {
        let message = "The location property is required for this definition.";
        return Err(ArmError::new(400, "LocationRequired", message));
    }
    let was = stored.and_then(|stored| at(stored, "location")).and_then(Value::as_str);
    match (was, is) {
        (Some(was), Some(is)) if !same_location(was, is) => {
            let message = format!(
                "The resource already exists in location '{}'. A resource with the same name cannot be created in \
                 location '{}'. Please select a new resource name.",
                shown(&Value::from(was)),
                shown(&Value::from(is))
            );
            Err(ArmError::new(409, "InvalidResourceLocation", message))
        }
        (Some(_) | None, Some(_) | None) => Ok(()),
    }
}

/// Returns true if two texts mean one location: `East US` is `eastus`.
#[must_use]
pub fn same_location(one: &str, other: &str) -> bool {
    normal_location(one) == normal_location(other)
}

/// A location in normal form: `East US` is `eastus`.
#[must_use]
pub fn normal_location(text: &str) -> String {
    let letters = text.chars().filter(|c| !c.is_whitespace());
    letters.flat_map(char::to_lowercase).collect()
}

fn check_tags(body: &Value) -> Result<(), ArmError> {
    let Some(tags) = object_at(body, "tags")? else { return Ok(()) };
    let wrong = |message: String| Err(ArmError::new(400, "InvalidTags", message).at("tags"));
    if tags.len() > TAGS_MAX {
        return wrong(format!("A resource has at most {TAGS_MAX} tags, not {}.", tags.len()));
    }
    for (name, value) in tags {
        let is_readable = |text: &str| !text.chars().any(char::is_control);
        let Some(value) = value.as_str().filter(|value| is_readable(value) && is_readable(name)) else {
            return wrong(format!(
                "The tag '{}' is not a text on one line.",
                shown(&Value::from(name.as_str()))
            ));
        };
        let fits = name.chars().count() <= TAG_NAME_CHARS_MAX && value.chars().count() <= TAG_VALUE_CHARS_MAX;
        if !fits || name.is_empty() {
            return wrong(format!(
                "The name of a tag has 1 to {TAG_NAME_CHARS_MAX} characters, its value at most {TAG_VALUE_CHARS_MAX}."
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::kind::{AVAILABILITY_SETS, INSTANCES, SCALE_SETS, VIRTUAL_MACHINES};
    use super::*;
    use serde_json::json;

    const NEW: ApiVersion = ApiVersion::new(2025, 4, 1);

    fn terminate(notice: &Value) -> Value {
        json!({ "virtualMachineProfile": { "scheduledEventsProfile": { "terminateNotificationProfile": notice } } })
    }

    /// The documented request, which names only the profile.
    /// promise: Z2
    #[test]
    fn the_documented_put_keeps_everything_else() {
        let mut stored = json!({
            "location": "eastus", "sku": { "capacity": 2 },
            "properties": { "virtualMachineProfile": { "priority": "Regular", "mine": [1] } },
        });
        let sent = json!({ "properties": terminate(&json!({ "notBeforeTimeout": "PT5M", "enable": true })) });
        let after = settle(SCALE_SETS, Some(&stored), &sent, ApiVersion::new(2019, 3, 1)).unwrap();
        stored["properties"]["virtualMachineProfile"]["scheduledEventsProfile"] =
            sent["properties"]["virtualMachineProfile"]["scheduledEventsProfile"].clone();
        assert_eq!(after, stored);
        let old = settle(SCALE_SETS, Some(&stored), &sent, ApiVersion::new(2018, 10, 1)).unwrap_err();
        assert_eq!((old.status, old.code.as_ref()), (400, "BadRequest"));
        let new = settle(SCALE_SETS, None, &sent, ApiVersion::new(2019, 3, 1)).unwrap_err();
        assert_eq!((new.status, new.code.as_ref()), (400, "LocationRequired"));
    }

    #[test]
    fn a_length_alone_leaves_off_what_is_off_and_on_what_is_on() {
        for (stored, sent, after) in [
            (
                json!({ "enable": true, "notBeforeTimeout": "PT5M" }),
                json!({ "notBeforeTimeout": "PT9M" }),
                json!({ "enable": true, "notBeforeTimeout": "PT9M" }),
            ),
            (
                json!({ "enable": false }),
                json!({ "notBeforeTimeout": "PT9M" }),
                json!({ "enable": false, "notBeforeTimeout": "PT9M" }),
            ),
            (
                json!({}),
                json!({ "notBeforeTimeout": "PT9M" }),
                json!({ "notBeforeTimeout": "PT9M", "enable": true }),
            ),
            (
                json!({ "enable": true, "notBeforeTimeout": "PT9M" }),
                json!({ "enable": "false" }),
                json!({ "enable": false, "notBeforeTimeout": "PT9M" }),
            ),
            (json!({}), json!({ "enable": "True" }), json!({ "enable": true, "notBeforeTimeout": "PT5M" })),
        ] {
            let stored = json!({ "location": "l", "properties": terminate(&stored) });
            let settled =
                settle(SCALE_SETS, Some(&stored), &json!({ "properties": terminate(&sent) }), NEW).unwrap();
            assert_eq!(settled["properties"], terminate(&after));
        }
        let machine = json!({ "location": "l", "properties": { "scheduledEventsProfile": { "terminateNotificationProfile": { "enable": true } } } });
        let settled = settle(VIRTUAL_MACHINES, None, &machine, NEW).unwrap();
        let notice = &settled["properties"]["scheduledEventsProfile"]["terminateNotificationProfile"];
        assert_eq!(notice["notBeforeTimeout"], "PT5M");
    }

    #[test]
    fn a_resource_stays_where_it_is() {
        let stored = json!({ "location": "eastus" });
        let moved =
            |location: &str| settle(VIRTUAL_MACHINES, Some(&stored), &json!({ "location": location }), NEW);
        assert!(moved("East US").is_ok() && moved("EASTUS").is_ok());
        let error = moved("westus").unwrap_err();
        assert_eq!((error.status, error.code.as_ref()), (409, "InvalidResourceLocation"));
        for kind in [VIRTUAL_MACHINES, SCALE_SETS, AVAILABILITY_SETS] {
            for nowhere in [json!({}), json!({ "location": null }), json!({ "location": " " })] {
                assert_eq!(settle(kind, None, &nowhere, NEW).unwrap_err().code, "LocationRequired");
            }
        }
        assert!(settle(INSTANCES, None, &json!({}), NEW).is_ok());
        assert!(settle("Microsoft.Network/virtualNetworks", None, &json!({}), NEW).is_ok());
    }

    #[test]
    fn tags_are_few_short_and_readable() {
        let tagged = |tags: Value| settle(INSTANCES, None, &json!({ "tags": tags }), NEW);
        let many =
            |count: usize| (0..count).map(|i| (format!("t{i}"), Value::from("x"))).collect::<Map<_, _>>();
        assert!(tagged(Value::Object(many(TAGS_MAX))).is_ok());
        assert!(tagged(json!({ "n".repeat(512): "v".repeat(256), "größe": 10 })).is_ok());
        for wrong in [
            Value::Object(many(TAGS_MAX + 1)),
            json!({ "a": "b\nc" }),
            json!({ "a\u{1b}": "" }),
            json!({ "a": { "b": 1 } }),
            json!({ "n".repeat(513): "" }),
            json!({ "a": "v".repeat(257) }),
            json!({ "": "x" }),
            json!("x"),
        ] {
            let error = tagged(wrong).unwrap_err();
            assert_eq!((error.status, error.target.as_deref()), (400, Some("tags")));
        }
    }

    #[test]
    fn a_resource_is_an_object_and_not_too_long() {
        for wrong in [json!(null), json!([]), json!("x")] {
            assert_eq!(settle(INSTANCES, None, &wrong, NEW).unwrap_err().code, "InvalidRequestContent");
        }
        let long = json!({ "properties": { "mine": "x".repeat(RESOURCE_BYTES_MAX) } });
        assert_eq!(settle(INSTANCES, None, &long, NEW).unwrap_err().status, 413);
        let secret =
            json!({ "properties": { "osProfile": { "customData": "x".repeat(RESOURCE_BYTES_MAX) } } });
        assert!(settle(INSTANCES, None, &secret, NEW).is_ok());
    }
}
