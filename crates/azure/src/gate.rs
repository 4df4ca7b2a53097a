//! What an older api-version does not know: a client that speaks it neither sends it nor is shown it.
//!
//! The two go together. A client that gets a resource, changes it and puts it back never sends what it was not shown, and
//! what it did not send stays.

use serde_json::Value;

use super::error::ArmError;
use super::kind::Kind;
use super::version::ApiVersion;

/// A member that came later than the first version.
struct Gate {
    /// What it is a member of, and its name at the end.
    place: &'static str,
    /// The first version that knows it.
    since: ApiVersion,
    /// What Azure calls the object that it is a member of.
    holder: &'static str,
}

const fn gate(place: &'static str, since: ApiVersion, holder: &'static str) -> Gate {
    Gate { place, since, holder }
}

const OS_IMAGE: ApiVersion = ApiVersion::new(2022, 11, 1);
const POLICY: ApiVersion = ApiVersion::new(2024, 3, 1);
const ALL_DOWN: ApiVersion = ApiVersion::new(2025, 4, 1);

const SCALE_SET: &[Gate] = &[
    gate(
        "properties.virtualMachineProfile.scheduledEventsProfile",
        ApiVersion::SCHEDULED_EVENTS_PROFILE,
        "VirtualMachineProfile",
    ),
    gate(
        "properties.virtualMachineProfile.scheduledEventsProfile.osImageNotificationProfile",
        OS_IMAGE,
        "ScheduledEventsProfile",
    ),
    gate("properties.scheduledEventsPolicy", POLICY, "Properties"),
    gate("properties.scheduledEventsPolicy.allInstancesDown", ALL_DOWN, "ScheduledEventsPolicy"),
];

const MACHINE: &[Gate] = &[
    gate("properties.scheduledEventsProfile", ApiVersion::new(2021, 3, 1), "Properties"),
    gate("properties.scheduledEventsProfile.osImageNotificationProfile", OS_IMAGE, "ScheduledEventsProfile"),
    gate("properties.scheduledEventsPolicy", POLICY, "Properties"),
    gate("properties.scheduledEventsPolicy.allInstancesDown", ALL_DOWN, "ScheduledEventsPolicy"),
];

const AVAILABILITY_SET: &[Gate] = &[
    gate("properties.scheduledEventsPolicy", ApiVersion::new(2024, 7, 1), "Properties"),
    gate("properties.scheduledEventsPolicy.allInstancesDown", ALL_DOWN, "ScheduledEventsPolicy"),
];

fn gates(kind: &str) -> &'static [Gate] {
    match Kind::of(kind) {
        Kind::ScaleSet => SCALE_SET,
        Kind::Machine => MACHINE,
        Kind::AvailabilitySet => AVAILABILITY_SET,
        Kind::Instance | Kind::Other => &[],
    }
}

/// Whether a client of that version may say what it sends.
///
/// # Errors
/// When it says something that its version does not know.
///
/// ```
/// use forewarn_azure::{ApiVersion, SCALE_SETS, check_version};
/// use serde_json::json;
///
/// let sent = json!({ "properties": { "virtualMachineProfile": { "scheduledEventsProfile": {} } } });
/// assert!(check_version(SCALE_SETS, &sent, ApiVersion::new(2019, 3, 1)).is_ok());
/// let error = check_version(SCALE_SETS, &sent, ApiVersion::new(2018, 10, 1)).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "(BadRequest) Could not find member 'scheduledEventsProfile' on object of type 'VirtualMachineProfile'"
/// );
/// ```
pub fn check_version(kind: &str, sent: &Value, version: ApiVersion) -> Result<(), ArmError> {
    let newer = gates(kind).iter().filter(|gate| version < gate.since);
    for gate in newer {
        if find(sent, gate.place).is_some_and(|value| !value.is_null()) {
            let refused = ArmError::new(400, "BadRequest", gate.message());
            return Err(refused.because(vec![gate.detail(version)]));
        }
    }
    Ok(())
}

/// The member that a request was refused for by [`check_version`], and the first version that knows it; nothing, if it was refused
/// for something else.
///
/// ```
/// use forewarn_azure::{ApiVersion, SCALE_SETS, unknown_member};
///
/// let message = "Could not find member 'scheduledEventsProfile' on object of type 'VirtualMachineProfile'";
/// assert_eq!(unknown_member(SCALE_SETS, message), Some(("scheduledEventsProfile", ApiVersion::new(2019, 3, 1))));
/// assert_eq!(unknown_member(SCALE_SETS, "at most 15 minutes"), None);
/// ```
#[must_use]
pub fn unknown_member(kind: &str, message: &str) -> Option<(&'static str, ApiVersion)> {
    let gate = gates(kind).iter().find(|gate| gate.message() == message)?;
    Some((gate.name(), gate.since))
}

impl Gate {
    fn name(&self) -> &'static str {
        self.place.rsplit('.').next().unwrap_or(self.place)
    }

    /// What a client is told that speaks an older version.
    fn message(&self) -> String {
        format!("Could not find member '{}' on object of type '{}'", self.name(), self.holder)
    }

    /// What to do about it: the message, which is the documented one, does not tell.
    fn detail(&self, version: ApiVersion) -> ArmError {
        let (name, since) = (self.name(), self.since);
        let why = format!("'{name}' is known from api-version {since} on; this request has {version}");
        ArmError::new(400, "ApiVersionTooOld", why).at(self.place)
    }
}

/// Leaves out of an answer what a client of that version does not know.
pub fn hide_newer(kind: &str, shown: &mut Value, version: ApiVersion) {
    for Gate { place, .. } in gates(kind).iter().filter(|gate| version < gate.since) {
        let (path, name) = place.rsplit_once('.').unwrap_or(("", place));
        let holder =
            path.split('.').try_fold(&mut *shown, |value, name| value.as_object_mut()?.get_mut(name));
        if let Some(Value::Object(members)) = holder {
            members.shift_remove(name);
        }
    }
}

/// What stands at a place, in any spelling.
fn find<'a>(body: &'a Value, place: &str) -> Option<&'a Value> {
    place.split('.').try_fold(body, |value, name| {
        let mut members = value.as_object()?.iter();
        members.find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    })
}

#[cfg(test)]
mod tests {
    use super::super::kind::{AVAILABILITY_SETS, INSTANCES, SCALE_SETS, VIRTUAL_MACHINES};
    use super::*;
    use serde_json::json;

    fn version(text: &str) -> ApiVersion {
        ApiVersion::parse(text).unwrap()
    }

    #[test]
    fn an_older_client_may_not_say_what_it_does_not_know() {
        let os_image = json!({ "osImageNotificationProfile": { "enable": true } });
        let down = json!({ "properties": { "ScheduledEventsPolicy": { "AllInstancesDown": {} } } });
        for (kind, sent, before, from, name, holder) in [
            (
                SCALE_SETS,
                json!({ "properties": { "virtualMachineProfile": { "scheduledEventsProfile": os_image } } }),
                "2022-10-31",
                "2022-11-01",
                "osImageNotificationProfile",
                "ScheduledEventsProfile",
            ),
            (
                VIRTUAL_MACHINES,
                json!({ "properties": { "scheduledEventsProfile": {} } }),
                "2020-12-01",
                "2021-03-01",
                "scheduledEventsProfile",
                "Properties",
            ),
            (
                AVAILABILITY_SETS,
                json!({ "properties": { "scheduledEventsPolicy": {} } }),
                "2024-03-01",
                "2024-07-01",
                "scheduledEventsPolicy",
                "Properties",
            ),
            (SCALE_SETS, down, "2024-11-01", "2025-04-01", "allInstancesDown", "ScheduledEventsPolicy"),
        ] {
            let error = check_version(kind, &sent, version(before)).unwrap_err();
            let text = format!("(BadRequest) Could not find member '{name}' on object of type '{holder}'");
            assert_eq!((error.status, error.to_string()), (400, text));
            let detail = &error.details[0].message;
            assert!(detail.contains(before) && detail.contains(from), "{detail}");
            assert_eq!(check_version(kind, &sent, version(from)), Ok(()));
        }
    }

    #[test]
    fn what_says_nothing_new_may_be_said() {
        let old = version("2015-06-15");
        for sent in [
            json!(null),
            json!([]),
            json!({ "properties": { "virtualMachineProfile": { "scheduledEventsProfile": null } } }),
        ] {
            for kind in [SCALE_SETS, VIRTUAL_MACHINES, INSTANCES, AVAILABILITY_SETS, "Other/things"] {
                assert_eq!(check_version(kind, &sent, old), Ok(()), "{kind} {sent}");
            }
        }
    }

    #[test]
    fn an_older_client_is_not_shown_it() {
        let whole = json!({ "properties": {
            "scheduledEventsPolicy": { "userInitiatedReboot": {}, "allInstancesDown": {} },
            "virtualMachineProfile": { "priority": "Regular",
                "scheduledEventsProfile": { "terminateNotificationProfile": {}, "osImageNotificationProfile": {} } },
        } });
        let shown = |text: &str| {
            let mut shown = whole.clone();
            hide_newer(SCALE_SETS, &mut shown, version(text));
            assert_eq!(check_version(SCALE_SETS, &shown, version(text)), Ok(()), "what is shown may be sent");
            shown
        };
        assert_eq!(
            shown("2018-10-01"),
            json!({ "properties": { "virtualMachineProfile": { "priority": "Regular" } } })
        );
        assert_eq!(
            shown("2019-03-01")["properties"],
            json!({ "virtualMachineProfile": { "priority": "Regular", "scheduledEventsProfile": { "terminateNotificationProfile": {} } } })
        );
        assert_eq!(shown("2026-04-01"), whole);
    }
}
