//! Members that older api-versions do not have: they are neither accepted nor shown.
//!
//! A client that gets a resource, changes it and puts it back never sends what it was not shown, and members that it
//! does not send stay.

use serde_json::Value;

use super::error::ArmError;
use super::kind::ResourceKind;
use super::version::ApiVersion;

/// A member that was added after the first version.
struct VersionedMember {
    /// Path of the member.
    path: &'static str,
    /// First version that has it.
    since: ApiVersion,
    /// Azure's name of the object that contains it.
    holder: &'static str,
}

const fn member(path: &'static str, since: ApiVersion, holder: &'static str) -> VersionedMember {
    VersionedMember { path, since, holder }
}

const OS_IMAGE: ApiVersion = ApiVersion::new(2022, 11, 1);
const POLICY: ApiVersion = ApiVersion::new(2024, 3, 1);
const ALL_DOWN: ApiVersion = ApiVersion::new(2025, 4, 1);

const SCALE_SET: &[VersionedMember] = &[
    member(
        "properties.virtualMachineProfile.scheduledEventsProfile",
        ApiVersion::SCHEDULED_EVENTS_PROFILE,
        "VirtualMachineProfile",
    ),
    member(
        "properties.virtualMachineProfile.scheduledEventsProfile.osImageNotificationProfile",
        OS_IMAGE,
        "ScheduledEventsProfile",
    ),
    member("properties.scheduledEventsPolicy", POLICY, "Properties"),
    member("properties.scheduledEventsPolicy.allInstancesDown", ALL_DOWN, "ScheduledEventsPolicy"),
];

const MACHINE: &[VersionedMember] = &[
    member("properties.scheduledEventsProfile", ApiVersion::new(2021, 3, 1), "Properties"),
    member(
        "properties.scheduledEventsProfile.osImageNotificationProfile",
        OS_IMAGE,
        "ScheduledEventsProfile",
    ),
    member("properties.scheduledEventsPolicy", POLICY, "Properties"),
    member("properties.scheduledEventsPolicy.allInstancesDown", ALL_DOWN, "ScheduledEventsPolicy"),
];

const AVAILABILITY_SET: &[VersionedMember] = &[
    member("properties.scheduledEventsPolicy", ApiVersion::new(2024, 7, 1), "Properties"),
    member("properties.scheduledEventsPolicy.allInstancesDown", ALL_DOWN, "ScheduledEventsPolicy"),
];

fn versioned_members(kind: &str) -> &'static [VersionedMember] {
    match ResourceKind::of(kind) {
        ResourceKind::ScaleSet => SCALE_SET,
        ResourceKind::Machine => MACHINE,
        ResourceKind::AvailabilitySet => AVAILABILITY_SET,
        ResourceKind::Instance | ResourceKind::Other => &[],
    }
}

/// Checks that a body has only members of its api-version.
///
/// # Errors
/// Fails if it has a member that the version does not have.
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
    let newer = versioned_members(kind).iter().filter(|member| version < member.since);
    for member in newer {
        if find(sent, member.path).is_some_and(|value| !value.is_null()) {
            let refused = ArmError::new(400, "BadRequest", member.message());
            return Err(refused.because(vec![member.detail(version)]));
        }
    }
    Ok(())
}

/// The member that [`check_version`] has rejected a request for, and the first version that has it; `None` for another
/// error.
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
    let member = versioned_members(kind).iter().find(|member| member.message() == message)?;
    Some((member.name(), member.since))
}

impl VersionedMember {
    fn name(&self) -> &'static str {
        self.path.rsplit('.').next().unwrap_or(self.path)
    }

    /// Error message for an older version.
    fn message(&self) -> String {
        format!("Could not find member '{}' on object of type '{}'", self.name(), self.holder)
    }

    /// Detail with the version to use: the documented message does not name it.
    fn detail(&self, version: ApiVersion) -> ArmError {
        let (name, since) = (self.name(), self.since);
        let why = format!("'{name}' is known from api-version {since} on; this request has {version}");
        ArmError::new(400, "ApiVersionTooOld", why).at(self.path)
    }
}

/// Removes members that the version does not have from a response.
pub fn hide_newer(kind: &str, shown: &mut Value, version: ApiVersion) {
    for VersionedMember { path, .. } in versioned_members(kind).iter().filter(|member| version < member.since)
    {
        let (path, name) = path.rsplit_once('.').unwrap_or(("", path));
        let holder =
            path.split('.').try_fold(&mut *shown, |value, name| value.as_object_mut()?.get_mut(name));
        if let Some(Value::Object(members)) = holder {
            members.shift_remove(name);
        }
    }
}

/// The value at a path, in any case.
fn find<'a>(body: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(body, |value, name| {
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

    /// promise: Z2
    #[test]
    fn an_older_version_rejects_newer_members() {
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
    fn members_of_the_version_are_accepted() {
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

    /// promise: Z2
    #[test]
    fn an_older_version_hides_newer_members() {
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
