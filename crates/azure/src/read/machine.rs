//! Reads the bodies of machines, instances of scale sets, and availability sets.

use std::collections::BTreeMap;

use forewarn_lifecycle::{Priority, Profile, Zone};
use serde_json::Value;

use super::common::{read_image, read_priority, read_reference, read_tags, read_zones};
use crate::body::{at, count_at, flag_at, object_at};
use crate::error::ArmError;
use crate::kind::{AVAILABILITY_SETS, SCALE_SETS};
use crate::policy::read_policy;
use crate::profile::read_profile;
use forewarn_control::resource_id::ResourceId;
use forewarn_control::{FAULT_DOMAINS, PolicyEntry, UPDATE_DOMAINS};

/// Wanted state of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineWanted {
    pub priority: Priority,
    /// Scheduled events profile: announcements of deletion and of new images.
    pub profile: Profile,
    /// Events that approve themselves, if it is a tenant of its own.
    pub policy: PolicyEntry,
    /// Its zone; none: any.
    pub zone: Option<Zone>,
    /// The availability set that it is in.
    pub availability_set: Option<ResourceId>,
    /// The scale set that it is an instance of.
    pub scale_set: Option<ResourceId>,
    /// The image, as a text that is the same for the same image.
    pub image: Option<String>,
    pub tags: Option<BTreeMap<String, String>>,
}

/// Wanted state of an availability set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AvailabilitySetWanted {
    /// Domains of its machines.
    pub domains: Domains,
    /// Events that approve themselves.
    pub policy: PolicyEntry,
}

/// Number of domains over which machines are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domains {
    pub update: u16,
    pub fault: u16,
}

/// Protection of an instance (`protectionPolicy`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Protection {
    /// It is not removed when its scale set shrinks.
    pub from_scale_in: bool,
    /// Actions on all instances leave it out; and it is not removed when its scale set shrinks.
    pub from_actions: bool,
}

impl Default for Domains {
    fn default() -> Self {
        Self { update: UPDATE_DOMAINS, fault: FAULT_DOMAINS }
    }
}

impl Protection {
    /// It is not removed when its scale set shrinks.
    #[must_use]
    pub fn stays(self) -> bool {
        self.from_scale_in || self.from_actions
    }
}

/// Reads a canonical, complete body of a machine.
///
/// # Errors
/// Fails if a member is invalid, or contradicts another.
pub fn read_machine(body: &Value) -> Result<MachineWanted, ArmError> {
    let nothing = Value::Null;
    object_at(body, "properties")?;
    let properties = at(body, "properties").unwrap_or(&nothing);
    let priority = read_priority(properties)?;
    let availability_set = reference(properties, "availabilitySet", AVAILABILITY_SETS)?;
    let scale_set = reference(properties, "virtualMachineScaleSet", SCALE_SETS)?;
    if availability_set.is_some() && scale_set.is_some() {
        let message = "The properties 'availabilitySet' and 'virtualMachineScaleSet' exclude each other.";
        return Err(ArmError::invalid("virtualMachineScaleSet", message));
    }
    let zones = read_zones(body)?;
    if zones.len() > 1 {
        let message = "A virtual machine is in one zone.";
        return Err(ArmError::invalid("zones", message));
    }
    if availability_set.is_some() && !zones.is_empty() {
        let message = "A virtual machine in an availability set cannot be in a zone.";
        return Err(ArmError::invalid("zones", message));
    }
    Ok(MachineWanted {
        priority,
        profile: read_profile(properties, priority)?,
        policy: read_policy(properties)?,
        zone: zones.first().copied(),
        availability_set,
        scale_set,
        image: read_image(properties),
        tags: read_tags(body)?,
    })
}

fn reference(properties: &Value, path: &str, kind: &str) -> Result<Option<ResourceId>, ArmError> {
    let Some(id) = read_reference(properties, path)? else { return Ok(None) };
    if id.is(kind) {
        return Ok(Some(id));
    }
    let message = format!("The resource id of parameter '{path}.id' is not one of {kind}.");
    Err(ArmError::new(400, "LinkedInvalidPropertyId", message).at(path))
}

/// Reads a canonical body of an availability set.
///
/// # Errors
/// Fails if a member is invalid.
pub fn read_availability_set(body: &Value) -> Result<AvailabilitySetWanted, ArmError> {
    let nothing = Value::Null;
    object_at(body, "properties")?;
    let properties = at(body, "properties").unwrap_or(&nothing);
    let fault = count_at(body, "properties.platformFaultDomainCount", 1..=3)?.unwrap_or(FAULT_DOMAINS);
    // One fault domain is one rack: unless said otherwise, its machines are updated together.
    let usual = if fault == 1 { 1 } else { UPDATE_DOMAINS };
    let update = count_at(body, "properties.platformUpdateDomainCount", 1..=20)?.unwrap_or(usual);
    Ok(AvailabilitySetWanted { domains: Domains { update, fault }, policy: read_policy(properties)? })
}

/// Reads the protection of an instance from its body.
///
/// # Errors
/// Fails if it is invalid.
pub fn read_protection(body: &Value) -> Result<Protection, ArmError> {
    const POLICY: &str = "properties.protectionPolicy";
    object_at(body, POLICY)?;
    let flag = |name: &str| Ok::<_, ArmError>(flag_at(body, &format!("{POLICY}.{name}"))?.unwrap_or(false));
    Ok(Protection {
        from_scale_in: flag("protectFromScaleIn")?,
        from_actions: flag("protectFromScaleSetActions")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use forewarn_lifecycle::TerminateNotice;
    use serde_json::json;

    fn id(kind: &str) -> Value {
        json!({ "id": format!("/subscriptions/s/resourceGroups/g/providers/{kind}/x") })
    }

    #[test]
    fn omitted_members_have_defaults() {
        let usual = MachineWanted {
            priority: Priority::Regular,
            profile: Profile::default(),
            policy: PolicyEntry::default(),
            zone: None,
            availability_set: None,
            scale_set: None,
            image: None,
            tags: None,
        };
        assert_eq!(read_machine(&json!({ "location": "l" })), Ok(usual));
    }

    #[test]
    fn present_members_are_read() {
        let body = json!({ "zones": ["1"], "tags": {}, "properties": {
            "virtualMachineScaleSet": id(SCALE_SETS),
            "scheduledEventsProfile": { "terminateNotificationProfile": { "enable": true } },
        } });
        let wanted = read_machine(&body).unwrap();
        assert_eq!(wanted.zone, Some(Zone(1)));
        assert_eq!(wanted.scale_set.unwrap().name(), "x");
        assert_eq!(wanted.profile.terminate, Some(TerminateNotice::MIN));
        assert_eq!(wanted.tags, Some(BTreeMap::new()));
    }

    #[test]
    fn contradictions_are_rejected() {
        let set = id(AVAILABILITY_SETS);
        for (body, target) in [
            (json!({ "zones": ["1", "2"] }), "zones"),
            (json!({ "zones": ["1"], "properties": { "availabilitySet": set } }), "zones"),
            (
                json!({ "properties": { "availabilitySet": set, "virtualMachineScaleSet": id(SCALE_SETS) } }),
                "virtualMachineScaleSet",
            ),
            (json!({ "properties": { "availabilitySet": id(SCALE_SETS) } }), "availabilitySet"),
            (json!({ "properties": { "availabilitySet": { "id": "x" } } }), "availabilitySet"),
            (json!({ "properties": "x" }), "properties"),
        ] {
            let error = read_machine(&body).unwrap_err();
            assert_eq!((error.status, error.target.as_deref()), (400, Some(target)), "{body}");
        }
    }

    #[test]
    fn domains_of_an_availability_set_are_read() {
        for (body, update, fault) in [
            (json!({}), 5, 3),
            (json!({ "platformFaultDomainCount": 2 }), 5, 2),
            (json!({ "platformFaultDomainCount": 1 }), 1, 1),
            (json!({ "platformFaultDomainCount": 1, "platformUpdateDomainCount": 20 }), 20, 1),
        ] {
            let wanted = read_availability_set(&json!({ "properties": body })).unwrap();
            assert_eq!(wanted.domains, Domains { update, fault }, "{body}");
        }
        for (name, wrong) in [
            ("platformFaultDomainCount", 0),
            ("platformFaultDomainCount", 4),
            ("platformUpdateDomainCount", 0),
            ("platformUpdateDomainCount", 21),
        ] {
            let error = read_availability_set(&json!({ "properties": { name: wrong } })).unwrap_err();
            assert_eq!((error.status, error.target.as_deref()), (400, Some(name)));
        }
    }

    #[test]
    fn an_instance_may_be_protected() {
        let read = |policy: Value| read_protection(&json!({ "properties": { "protectionPolicy": policy } }));
        assert_eq!(read(json!(null)), Ok(Protection::default()));
        let protection = read(json!({ "protectFromScaleSetActions": true })).unwrap();
        assert_eq!((protection.from_scale_in, protection.stays()), (false, true));
        assert!(read(json!({ "protectFromScaleIn": true })).unwrap().stays());
        assert_eq!(read(json!({ "protectFromScaleIn": "x" })).unwrap_err().status, 400);
    }
}
