//! Reads the body of a scale set.

use std::collections::BTreeMap;

use forewarn_lifecycle::limits::{MACHINES_PER_PLACEMENT_GROUP_MAX, PAUSE_BETWEEN_MAX};
use forewarn_lifecycle::{Priority, Profile, Zone};
use serde_json::{Value, json};

use super::common::{read_image, read_priority, read_tags, read_zones};
use crate::body::{at, count_at, flag_at, object_at, shown, word_at, word_of, wrong};
use crate::error::ArmError;
use crate::policy::read_policy;
use crate::profile::read_profile;
use forewarn_control::resource_id::{parse_iso_duration, show_iso_duration};
use forewarn_control::{
    INSTANCES_MAX, OrchestrationWord, PolicyEntry, RollingEntry, ScaleInRule, UpgradeWord,
};
use forewarn_types::Span;

/// Path of the model in a body.
pub(crate) const MODEL: &str = "properties.virtualMachineProfile";

/// Scale-in rules of one policy.
const RULES_MAX: usize = 3;

/// Wanted state of a scale set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScaleSetWanted {
    /// Number of instances, if the body has it.
    pub capacity: Option<u16>,
    pub orchestration: OrchestrationWord,
    pub upgrade: UpgradeWord,
    pub priority: Priority,
    /// Scheduled events profile: announcements of deletion and of new images.
    pub profile: Profile,
    /// Events that approve themselves.
    pub policy: PolicyEntry,
    /// Zones of instances; none: any.
    pub zones: Vec<Zone>,
    /// Fault domains over which instances are spread.
    pub fault_domains: Option<u16>,
    /// Order in which instances are removed.
    pub scale_in: ScaleInRule,
    /// The image, as a text that is the same for the same image.
    pub image: Option<String>,
    pub tags: Option<BTreeMap<String, String>>,
}

/// The upgrade mode as clients write it.
pub(crate) fn upgrade_body(word: UpgradeWord) -> Value {
    match word {
        UpgradeWord::Manual => json!({ "mode": "Manual" }),
        UpgradeWord::Automatic => json!({ "mode": "Automatic" }),
        UpgradeWord::Rolling(RollingEntry { batch_percent, pause: Span(pause) }) => {
            let pause = show_iso_duration(pause);
            let rolling =
                json!({ "maxBatchInstancePercent": batch_percent, "pauseTimeBetweenBatches": pause });
            json!({ "mode": "Rolling", "rollingUpgradePolicy": rolling })
        }
    }
}

/// Reads a canonical, complete body.
///
/// # Errors
/// Fails if a member is invalid, or contradicts another.
pub fn read_scale_set(body: &Value) -> Result<ScaleSetWanted, ArmError> {
    let nothing = Value::Null;
    object_at(body, MODEL)?;
    let model = at(body, MODEL).unwrap_or(&nothing);
    let properties = at(body, "properties").unwrap_or(&nothing);
    let words = [("Uniform", OrchestrationWord::Uniform), ("Flexible", OrchestrationWord::Flexible)];
    let orchestration = word_at(body, "properties.orchestrationMode", &words)?.unwrap_or_default();
    let priority = read_priority(model)?;
    let capacity = count_at(body, "sku.capacity", 0..=INSTANCES_MAX)?;
    check_placement_group(body, capacity)?;
    Ok(ScaleSetWanted {
        capacity,
        orchestration,
        upgrade: read_upgrade(body)?,
        priority,
        profile: read_profile(model, priority)?,
        policy: read_policy(properties)?,
        zones: read_zones(body)?,
        fault_domains: count_at(body, "properties.platformFaultDomainCount", 1..=5)?,
        scale_in: read_scale_in(body)?,
        image: read_image(model),
        tags: read_tags(body)?,
    })
}

fn check_placement_group(body: &Value, capacity: Option<u16>) -> Result<(), ArmError> {
    let is_single = flag_at(body, "properties.singlePlacementGroup")? == Some(true);
    let is_too_large = |capacity: &u16| usize::from(*capacity) > MACHINES_PER_PLACEMENT_GROUP_MAX;
    let Some(capacity) = capacity.filter(|capacity| is_single && is_too_large(capacity)) else {
        return Ok(());
    };
    let message = format!(
        "A Virtual Machine Scale Set with 'singlePlacementGroup' set to true has at most \
         {MACHINES_PER_PLACEMENT_GROUP_MAX} instances, not {capacity}. Set 'singlePlacementGroup' to false first."
    );
    Err(ArmError::invalid("singlePlacementGroup", message))
}

#[derive(Clone, Copy)]
enum UpgradeMode {
    Manual,
    Automatic,
    Rolling,
}

pub(crate) fn read_upgrade(body: &Value) -> Result<UpgradeWord, ArmError> {
    const ROLLING: &str = "properties.upgradePolicy.rollingUpgradePolicy";
    let modes = [
        ("Manual", UpgradeMode::Manual),
        ("Automatic", UpgradeMode::Automatic),
        ("Rolling", UpgradeMode::Rolling),
    ];
    object_at(body, "properties.upgradePolicy")?;
    object_at(body, ROLLING)?;
    let mode = word_at(body, "properties.upgradePolicy.mode", &modes)?.unwrap_or(UpgradeMode::Manual);
    let percent = |name: &str| count_at(body, &format!("{ROLLING}.{name}"), 1..=100);
    let batch = percent("maxBatchInstancePercent")?.unwrap_or(20);
    percent("maxUnhealthyInstancePercent")?;
    count_at(body, &format!("{ROLLING}.maxUnhealthyUpgradedInstancePercent"), 0..=100)?;
    let path = format!("{ROLLING}.pauseTimeBetweenBatches");
    let pause = at(body, &path).map(|value| {
        let length = value.as_str().and_then(parse_iso_duration).filter(|length| *length <= PAUSE_BETWEEN_MAX);
        length.ok_or_else(|| {
            let message = format!(
                "The value '{}' of parameter '{path}' is invalid. It must be a length of time in ISO 8601 format, at most \
                 P7D.",
                shown(value)
            );
            ArmError::invalid("pauseTimeBetweenBatches", message)
        })
    });
    let pause = Span(pause.transpose()?.unwrap_or_default());
    Ok(match mode {
        UpgradeMode::Manual => UpgradeWord::Manual,
        UpgradeMode::Automatic => UpgradeWord::Automatic,
        UpgradeMode::Rolling => {
            let batch_percent = u8::try_from(batch).unwrap_or(100);
            UpgradeWord::Rolling(RollingEntry { batch_percent, pause })
        }
    })
}

fn read_scale_in(body: &Value) -> Result<ScaleInRule, ArmError> {
    const RULES: &str = "properties.scaleInPolicy.rules";
    object_at(body, "properties.scaleInPolicy")?;
    let Some(value) = at(body, RULES) else { return Ok(ScaleInRule::Default) };
    let rules = value.as_array().ok_or_else(|| wrong(RULES, value, "a list"))?;
    let words = [
        ("Default", ScaleInRule::Default),
        ("OldestVM", ScaleInRule::Oldest),
        ("NewestVM", ScaleInRule::Newest),
    ];
    let rules = rules.iter().take(RULES_MAX).map(|rule| word_of(rule, RULES, &words));
    let rules: Vec<_> = rules.collect::<Result<_, _>>()?;
    Ok(rules.into_iter().find(|rule| *rule != ScaleInRule::Default).unwrap_or(ScaleInRule::Default))
}

#[cfg(test)]
mod tests {
    use super::*;
    use forewarn_lifecycle::{EvictionPolicy, OsImageNotice, TerminateNotice};

    #[test]
    fn omitted_members_have_defaults() {
        let usual = ScaleSetWanted {
            capacity: None,
            orchestration: OrchestrationWord::Uniform,
            upgrade: UpgradeWord::Manual,
            priority: Priority::Regular,
            profile: Profile::default(),
            policy: PolicyEntry::default(),
            zones: Vec::new(),
            fault_domains: None,
            scale_in: ScaleInRule::Default,
            image: None,
            tags: None,
        };
        for body in [json!({}), json!({ "properties": {} }), json!({ "properties": { "upgradePolicy": {} } })]
        {
            assert_eq!(read_scale_set(&body), Ok(usual.clone()), "{body}");
        }
    }

    #[test]
    fn present_members_are_read() {
        let body = json!({
            "sku": { "capacity": 3 }, "zones": ["2"], "tags": { "a": "b" },
            "properties": {
                "orchestrationMode": "Flexible",
                "platformFaultDomainCount": 1,
                "singlePlacementGroup": false,
                "scaleInPolicy": { "rules": ["Default", "OldestVM"] },
                "upgradePolicy": { "mode": "Rolling", "rollingUpgradePolicy": { "maxBatchInstancePercent": 50, "pauseTimeBetweenBatches": "PT1M" } },
                "scheduledEventsPolicy": { "userInitiatedReboot": { "automaticallyApprove": true } },
                "virtualMachineProfile": {
                    "priority": "Spot", "evictionPolicy": "Delete",
                    "storageProfile": { "imageReference": { "id": "/X" } },
                    "scheduledEventsProfile": { "osImageNotificationProfile": { "enable": true } },
                },
            },
        });
        let wanted = read_scale_set(&body).unwrap();
        assert_eq!((wanted.capacity, wanted.orchestration), (Some(3), OrchestrationWord::Flexible));
        assert_eq!(wanted.priority, Priority::Spot(EvictionPolicy::Delete));
        assert_eq!(wanted.profile, Profile { terminate: None, os_image: OsImageNotice::On });
        let rolling = RollingEntry { batch_percent: 50, pause: Span(std::time::Duration::from_mins(1)) };
        assert_eq!(wanted.upgrade, UpgradeWord::Rolling(rolling));
        assert_eq!((wanted.zones, wanted.fault_domains), (vec![Zone(2)], Some(1)));
        assert_eq!((wanted.scale_in, wanted.image.as_deref()), (ScaleInRule::Oldest, Some("/x")));
        assert_ne!(wanted.policy, PolicyEntry::default());
        assert_eq!(wanted.tags.unwrap()["a"], "b");
    }

    #[test]
    fn one_placement_group_has_100_instances() {
        let read = |capacity: u16, single: Value| {
            read_scale_set(
                &json!({ "sku": { "capacity": capacity }, "properties": { "singlePlacementGroup": single } }),
            )
        };
        assert_eq!(read(100, json!(true)).unwrap().capacity, Some(100));
        assert_eq!(read(1_000, json!(false)).unwrap().capacity, Some(1_000));
        assert_eq!(read(1_000, json!(null)).unwrap().capacity, Some(1_000));
        assert_eq!(read(101, json!(true)).unwrap_err().target.as_deref(), Some("singlePlacementGroup"));
        assert_eq!(read(1_001, json!(false)).unwrap_err().target.as_deref(), Some("capacity"));
    }

    #[test]
    fn invalid_members_are_rejected_with_their_target() {
        let model = |model: Value| json!({ "properties": { "virtualMachineProfile": model } });
        let own = |name: &str, value: Value| json!({ "properties": { name: value } });
        let rolling = |name: &str, value: Value| {
            own("upgradePolicy", json!({ "rollingUpgradePolicy": { name: value } }))
        };
        for (body, target) in [
            (json!({ "sku": { "capacity": -1 } }), "capacity"),
            (json!({ "sku": { "capacity": "many" } }), "capacity"),
            (own("orchestrationMode", json!("Chaotic")), "orchestrationMode"),
            (own("upgradePolicy", json!("Manual")), "upgradePolicy"),
            (own("upgradePolicy", json!({ "mode": "Sometimes" })), "mode"),
            (rolling("maxBatchInstancePercent", json!(0)), "maxBatchInstancePercent"),
            (rolling("pauseTimeBetweenBatches", json!("P8D")), "pauseTimeBetweenBatches"),
            (rolling("pauseTimeBetweenBatches", json!("5")), "pauseTimeBetweenBatches"),
            (own("scaleInPolicy", json!({ "rules": ["Tallest"] })), "rules"),
            (own("scaleInPolicy", json!({ "rules": "OldestVM" })), "rules"),
            (own("platformFaultDomainCount", json!(6)), "platformFaultDomainCount"),
            (own("virtualMachineProfile", json!([])), "virtualMachineProfile"),
            (own("singlePlacementGroup", json!("maybe")), "singlePlacementGroup"),
            (model(json!({ "priority": "High" })), "priority"),
        ] {
            let error = read_scale_set(&body).unwrap_err();
            assert_eq!((error.status, error.target.as_deref()), (400, Some(target)), "{body}");
        }
    }

    #[test]
    fn the_deletion_of_spot_instances_is_not_announced() {
        let profile =
            json!({ "terminateNotificationProfile": { "enable": true, "notBeforeTimeout": "PT15M" } });
        for (priority, is_let) in [("Regular", true), ("Low", false), ("Spot", false)] {
            let body = json!({ "properties": { "virtualMachineProfile": { "priority": priority, "scheduledEventsProfile": profile } } });
            match read_scale_set(&body) {
                Ok(wanted) => {
                    assert_eq!((wanted.profile.terminate, is_let), (Some(TerminateNotice::MAX), true));
                }
                Err(error) => assert_eq!((error.status, is_let), (400, false), "{error}"),
            }
        }
    }
}
