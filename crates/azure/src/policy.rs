//! `scheduledEventsPolicy`: events that approve themselves. It is among the properties of a machine, a scale set or an
//! availability set.

use forewarn_lifecycle::Policy;
use serde_json::{Value, json};

use super::body::{flag_at, object_at};
use super::error::ArmError;
use forewarn_control::{ApproveWord, PolicyEntry};

const POLICY: &str = "scheduledEventsPolicy";
const REBOOT: &str = "userInitiatedReboot";
const REDEPLOY: &str = "userInitiatedRedeploy";
const ALL_DOWN: &str = "allInstancesDown";
const APPROVE: &str = "automaticallyApprove";
const PUSHES: &str =
    "scheduledEventsPolicy.scheduledEventsAdditionalPublishingTargets.eventGridAndResourceGraph";

/// Reads the policy below `properties`; absent members have their defaults.
///
/// # Errors
/// Fails if it is invalid.
pub(super) fn read_policy(properties: &Value) -> Result<PolicyEntry, ArmError> {
    object_at(properties, POLICY)?;
    object_at(properties, PUSHES)?;
    flag_at(properties, &format!("{PUSHES}.enable"))?;
    let usual = PolicyEntry::default();
    let read = |name: &str, usual: ApproveWord| {
        object_at(properties, &format!("{POLICY}.{name}"))?;
        let given = flag_at(properties, &format!("{POLICY}.{name}.{APPROVE}"))?;
        Ok::<_, ArmError>(given.map_or(usual, word))
    };
    Ok(PolicyEntry {
        restart: read(REBOOT, usual.restart)?,
        redeploy: read(REDEPLOY, usual.redeploy)?,
        all_down: read(ALL_DOWN, usual.all_down)?,
    })
}

/// Updates a body to the policy of the rules, if it differs.
pub(super) fn refresh_policy(properties: &mut Value, is: Policy) {
    let (was, is) = (read_policy(properties).unwrap_or_default(), PolicyEntry::from(is));
    for (name, was, is) in [
        (REBOOT, was.restart, is.restart),
        (REDEPLOY, was.redeploy, is.redeploy),
        (ALL_DOWN, was.all_down, is.all_down),
    ] {
        if was != is {
            write(properties, name, is);
        }
    }
}

fn write(properties: &mut Value, name: &str, is: ApproveWord) {
    let Value::Object(members) = properties else { return };
    let policy = members.entry(POLICY).or_insert_with(|| json!({}));
    if !policy.is_object() {
        *policy = json!({});
    }
    if let Value::Object(policy) = policy {
        policy.insert(name.to_owned(), json!({ APPROVE: is == ApproveWord::Automatic }));
    }
}

fn word(approves_itself: bool) -> ApproveWord {
    if approves_itself { ApproveWord::Automatic } else { ApproveWord::Asked }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ApproveWord::{Asked, Automatic};

    fn entry(restart: ApproveWord, redeploy: ApproveWord, all_down: ApproveWord) -> PolicyEntry {
        PolicyEntry { restart, redeploy, all_down }
    }

    fn approve(flag: bool) -> Value {
        json!({ "automaticallyApprove": flag })
    }

    #[test]
    fn omitted_members_have_defaults() {
        for (policy, expected) in [
            (json!(null), entry(Asked, Asked, Automatic)),
            (json!({}), entry(Asked, Asked, Automatic)),
            (json!({ "userInitiatedReboot": approve(true) }), entry(Automatic, Asked, Automatic)),
            (
                json!({ "userInitiatedRedeploy": approve(true), "userInitiatedReboot": {} }),
                entry(Asked, Automatic, Automatic),
            ),
            (json!({ "allInstancesDown": approve(false) }), entry(Asked, Asked, Asked)),
        ] {
            let body = json!({ "scheduledEventsPolicy": policy });
            assert_eq!(read_policy(&body), Ok(expected), "{body}");
        }
    }

    #[test]
    fn an_invalid_policy_is_rejected() {
        let pushes = |targets: Value| json!({ "scheduledEventsAdditionalPublishingTargets": targets });
        for (policy, target) in [
            (json!("x"), "scheduledEventsPolicy"),
            (json!({ "userInitiatedReboot": true }), "userInitiatedReboot"),
            (json!({ "allInstancesDown": { "automaticallyApprove": 1 } }), "automaticallyApprove"),
            (pushes(json!({ "eventGridAndResourceGraph": true })), "eventGridAndResourceGraph"),
            (pushes(json!({ "eventGridAndResourceGraph": { "enable": "on" } })), "enable"),
        ] {
            let error = read_policy(&json!({ "scheduledEventsPolicy": policy })).unwrap_err();
            assert_eq!((error.status, error.target.as_deref()), (400, Some(target)), "{policy}");
        }
    }

    #[test]
    fn the_policy_of_the_rules_is_shown() {
        let given = json!({ "scheduledEventsPolicy": { "userInitiatedReboot": approve(true), "mine": 1 } });
        let mut body = given.clone();
        refresh_policy(&mut body, entry(Automatic, Asked, Automatic).into());
        assert_eq!(body, given);
        refresh_policy(&mut body, entry(Asked, Automatic, Asked).into());
        assert_eq!(read_policy(&body), Ok(entry(Asked, Automatic, Asked)));
        assert_eq!(body["scheduledEventsPolicy"]["mine"], 1);
        let mut bare = json!({});
        refresh_policy(&mut bare, Policy::default());
        assert_eq!(bare, json!({}));
    }
}
