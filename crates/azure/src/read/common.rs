//! Members that several resource types have: priority, zones, tags, images, references.

use std::collections::BTreeMap;

use forewarn_lifecycle::{EvictionPolicy, Priority, Zone};
use serde_json::Value;

use crate::body::{at, object_at, shown, text_at, word_at, wrong};
use crate::error::ArmError;
use forewarn_control::resource_id::ResourceId;

/// Zones that a body names.
const ZONES_MAX: usize = 16;

/// A regular machine keeps its place; a spot machine may be evicted.
#[derive(Clone, Copy)]
enum PriorityClass {
    Regular,
    Spot,
}

/// Regular or spot, below the properties of a machine or the model of a scale set. `Low` is an old word for spot.
pub(crate) fn read_priority(holder: &Value) -> Result<Priority, ArmError> {
    let words = [
        ("Regular", PriorityClass::Regular),
        ("Low", PriorityClass::Spot),
        ("Spot", PriorityClass::Spot),
        ("SpotPlus", PriorityClass::Spot),
    ];
    let class = word_at(holder, "priority", &words)?.unwrap_or(PriorityClass::Regular);
    let words = [("Deallocate", EvictionPolicy::Deallocate), ("Delete", EvictionPolicy::Delete)];
    let eviction = word_at(holder, "evictionPolicy", &words)?;
    match (class, eviction) {
        (PriorityClass::Spot, eviction) => Ok(Priority::Spot(eviction.unwrap_or(EvictionPolicy::Deallocate))),
        (PriorityClass::Regular, None) => Ok(Priority::Regular),
        (PriorityClass::Regular, Some(_)) => {
            let message = "Eviction policy can be set only on Azure Spot Virtual Machines. For more information, see \
                 http://aka.ms/AzureSpot/errormessages.";
            Err(ArmError::invalid("evictionPolicy", message))
        }
    }
}

/// The zones of a resource.
pub(crate) fn read_zones(body: &Value) -> Result<Vec<Zone>, ArmError> {
    let Some(value) = at(body, "zones") else { return Ok(Vec::new()) };
    let zones = value.as_array().filter(|zones| zones.len() <= ZONES_MAX);
    let zones = zones.ok_or_else(|| wrong("zones", value, "a short list of zones"))?;
    let read = |value: &Value| {
        let number = value.as_str().and_then(|text| text.parse().ok()).filter(|number| *number > 0);
        number.map(Zone).ok_or_else(|| {
            let message = format!("The zone '{}' is not supported. A zone is a number.", shown(value));
            ArmError::new(400, "InvalidAvailabilityZone", message).at("zones")
        })
    };
    let mut zones: Vec<_> = zones.iter().map(read).collect::<Result<_, _>>()?;
    zones.sort_unstable();
    zones.dedup();
    Ok(zones)
}

/// The tags of a resource; none, if the body has no such member.
pub(crate) fn read_tags(body: &Value) -> Result<Option<BTreeMap<String, String>>, ArmError> {
    let Some(tags) = object_at(body, "tags")? else { return Ok(None) };
    let text = |(name, value): (&String, &Value)| {
        let value = value.as_str().ok_or_else(|| wrong("tags", value, "a text"))?;
        Ok((name.clone(), value.to_owned()))
    };
    tags.iter().map(text).collect::<Result<_, _>>().map(Some)
}

/// The resource that a member refers to.
pub(crate) fn read_reference(body: &Value, path: &str) -> Result<Option<ResourceId>, ArmError> {
    let Some(text) = text_at(body, &format!("{path}.id"))? else { return Ok(None) };
    let id = ResourceId::parse(text);
    id.map(Some).ok_or_else(|| {
        let message =
            format!("The value '{}' of parameter '{path}.id' is not a resource id.", shown(&text.into()));
        ArmError::new(400, "LinkedInvalidPropertyId", message).at(path)
    })
}

/// The image of machines as text; equal images have equal texts.
pub(crate) fn read_image(holder: &Value) -> Option<String> {
    let Some(image) = at(holder, "storageProfile.imageReference").and_then(Value::as_object) else {
        return at(holder, "storageProfile.osDisk.image.uri").and_then(Value::as_str).map(str::to_lowercase);
    };
    let given = |name: &&str| image.get(*name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let whole = ["id", "sharedGalleryImageId", "communityGalleryImageId"];
    let parts = ["publisher", "offer", "sku", "version"];
    let text = match whole.iter().find_map(given) {
        Some(id) => id.to_owned(),
        None => parts.map(|name| given(&name).unwrap_or_default()).join(":"),
    };
    Some(text.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn low_is_spot_and_only_spot_is_evicted() {
        let spot = Priority::Spot;
        for (body, expected) in [
            (json!({}), Priority::Regular),
            (json!({ "priority": "Regular" }), Priority::Regular),
            (json!({ "priority": "Spot" }), spot(EvictionPolicy::Deallocate)),
            (json!({ "priority": "Low", "evictionPolicy": "Delete" }), spot(EvictionPolicy::Delete)),
            (
                json!({ "priority": "SpotPlus", "evictionPolicy": "Deallocate" }),
                spot(EvictionPolicy::Deallocate),
            ),
        ] {
            assert_eq!(read_priority(&body), Ok(expected), "{body}");
        }
        for (body, target) in [
            (json!({ "priority": "High" }), "priority"),
            (json!({ "priority": 1 }), "priority"),
            (json!({ "priority": "Spot", "evictionPolicy": "Burn" }), "evictionPolicy"),
            (json!({ "evictionPolicy": "Delete" }), "evictionPolicy"),
        ] {
            let error = read_priority(&body).unwrap_err();
            assert_eq!((error.status, error.target.as_deref()), (400, Some(target)), "{body}");
        }
    }

    #[test]
    fn zones_are_numbers_each_once() {
        let read = |zones: Value| read_zones(&json!({ "zones": zones }));
        assert_eq!(read(json!(["3", "1", "3"])), Ok(vec![Zone(1), Zone(3)]));
        assert_eq!(read(json!([])), Ok(vec![]));
        assert_eq!(read_zones(&json!({})), Ok(vec![]));
        for wrong in
            [json!("1"), json!(["0"]), json!(["a"]), json!(["-1"]), json!([{}]), json!(vec!["1"; 17])]
        {
            let error = read(wrong).unwrap_err();
            assert_eq!((error.status, error.target.as_deref()), (400, Some("zones")));
        }
    }

    #[test]
    fn an_image_is_the_same_in_any_spelling() {
        let image =
            |reference: Value| read_image(&json!({ "storageProfile": { "imageReference": reference } }));
        let canonical = json!({ "publisher": "Canonical", "offer": "UbuntuServer", "sku": "18.04-LTS", "version": "latest" });
        let shouted = json!({ "publisher": "CANONICAL", "offer": "ubuntuserver", "sku": "18.04-lts", "version": "Latest" });
        assert_eq!(image(canonical.clone()).as_deref(), Some("canonical:ubuntuserver:18.04-lts:latest"));
        assert_eq!(image(canonical), image(shouted));
        assert_eq!(image(json!({ "id": "/A/B", "version": "x" })).as_deref(), Some("/a/b"));
        assert_eq!(image(json!({ "communityGalleryImageId": "/G" })).as_deref(), Some("/g"));
        assert_eq!(read_image(&json!({})), None);
        let disk = json!({ "storageProfile": { "osDisk": { "image": { "uri": "http://X" } } } });
        assert_eq!(read_image(&disk).as_deref(), Some("http://x"));
    }

    #[test]
    fn a_reference_is_a_resource_id_and_tags_are_texts() {
        let id = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/availabilitySets/A";
        let read = |id: Value| read_reference(&json!({ "availabilitySet": { "id": id } }), "availabilitySet");
        assert_eq!(read(json!(id)).unwrap().unwrap().name(), "A");
        assert_eq!(read(json!(null)), Ok(None));
        assert_eq!(read(json!("A")).unwrap_err().code, "LinkedInvalidPropertyId");
        let tags = read_tags(&json!({ "tags": { "a": "b" } })).unwrap().unwrap();
        assert_eq!(tags["a"], "b");
        assert_eq!(read_tags(&json!({})), Ok(None));
        assert!(read_tags(&json!({ "tags": { "a": 1 } })).is_err());
    }
}
