//! `scheduledEventsProfile`: notices of the deletion of a machine and of new images.
//!
//! It is among the properties of a machine, or in the model of a scale set:
//!
//! ```text
//! "scheduledEventsProfile": {
//!   "terminateNotificationProfile": { "enable": true, "notBeforeTimeout": "PT5M" },     5 to 15 minutes, default 5
//!   "osImageNotificationProfile":   { "enable": true, "notBeforeTimeout": "PT15M" } }   always 15 minutes
//! ```
//!
//! A length is stored as written. A length without `enable` enables the notice, unless it was disabled before.

use std::time::Duration;

use forewarn_lifecycle::{OsImageNotice, Priority, Profile, TerminateNotice};
use serde_json::{Value, json};

use super::body::{at, flag_at, object_at, shown};
use super::error::ArmError;
use forewarn_control::resource_id::{parse_iso_duration, show_iso_duration};

const PROFILE: &str = "scheduledEventsProfile";
const TERMINATE: &str = "terminateNotificationProfile";
const OS_IMAGE: &str = "osImageNotificationProfile";
const ENABLE: &str = "enable";
const LENGTH: &str = "notBeforeTimeout";

/// Notice of a new image.
const OS_IMAGE_NOTICE: Duration = Duration::from_mins(15);

/// One of the two notices, as written.
struct Notice {
    is_on: bool,
    length: Option<Duration>,
}

/// Reads the profile below a holder: the properties of a machine, or the model of a scale set.
///
/// # Errors
/// Fails if a length is invalid or out of bounds, or a spot machine has a notice of its deletion.
pub(super) fn read_profile(holder: &Value, priority: Priority) -> Result<Profile, ArmError> {
    let terminate = read_notice(holder, TERMINATE, terminate_length)?;
    let os_image = read_notice(holder, OS_IMAGE, os_image_length)?;
    if let (true, Priority::Spot(_)) = (terminate.is_on, priority) {
        let message = "Terminate notification is not available for Spot and Low priority virtual machines.";
        return Err(ArmError::invalid(TERMINATE, message));
    }
    let seconds = terminate.length.map(|length| length.as_secs());
    let length = seconds.and_then(TerminateNotice::from_seconds).unwrap_or_default();
    Ok(Profile {
        terminate: terminate.is_on.then_some(length),
        os_image: if os_image.is_on { OsImageNotice::On } else { OsImageNotice::Off },
    })
}

/// Adds the defaults of omitted members: enabled, and the length.
pub(super) fn complete_profile(holder: &mut Value) {
    for (name, length) in [(TERMINATE, TerminateNotice::default().length()), (OS_IMAGE, OS_IMAGE_NOTICE)] {
        let Some(Value::Object(members)) = holder.get_mut(PROFILE).and_then(|profile| profile.get_mut(name))
        else {
            continue;
        };
        let has_length = members.get(LENGTH).is_some_and(|length| !length.is_null());
        if has_length && members.get(ENABLE).is_none_or(Value::is_null) {
            members.insert(ENABLE.to_owned(), Value::from(true));
        }
        if !has_length && members.get(ENABLE) == Some(&Value::from(true)) {
            members.insert(LENGTH.to_owned(), Value::from(show_iso_duration(length)));
        }
    }
}

/// Updates a body to the profile of the rules, if it differs; otherwise it stays as written.
pub(super) fn refresh_profile(holder: &mut Value, is: Profile) {
    let was = read_profile(holder, Priority::Regular).unwrap_or_default();
    if was.terminate != is.terminate {
        let notice = match is.terminate {
            Some(notice) => json!({ ENABLE: true, LENGTH: show_iso_duration(notice.length()) }),
            None => json!({ ENABLE: false }),
        };
        write_notice(holder, TERMINATE, notice);
    }
    if was.os_image != is.os_image {
        let notice = match is.os_image {
            OsImageNotice::On => json!({ ENABLE: true, LENGTH: show_iso_duration(OS_IMAGE_NOTICE) }),
            OsImageNotice::Off => json!({ ENABLE: false }),
        };
        write_notice(holder, OS_IMAGE, notice);
    }
}

fn write_notice(holder: &mut Value, name: &str, notice: Value) {
    let Value::Object(members) = holder else { return };
    let profile = members.entry(PROFILE).or_insert_with(|| json!({}));
    if !profile.is_object() {
        *profile = json!({});
    }
    if let Value::Object(notices) = profile {
        notices.insert(name.to_owned(), notice);
    }
}

fn read_notice(
    holder: &Value,
    name: &str,
    check: fn(&Value) -> Result<Duration, ArmError>,
) -> Result<Notice, ArmError> {
    let path = |member: &str| format!("{PROFILE}.{name}.{member}");
    object_at(holder, PROFILE)?;
    object_at(holder, &format!("{PROFILE}.{name}"))?;
    let length = at(holder, &path(LENGTH)).map(check).transpose()?;
    let is_on = flag_at(holder, &path(ENABLE))?.unwrap_or(length.is_some());
    Ok(Notice { is_on, length })
}

fn terminate_length(value: &Value) -> Result<Duration, ArmError> {
    let length = value.as_str().and_then(parse_iso_duration);
    let fits = |length: &Duration| TerminateNotice::from_seconds(length.as_secs()).is_some();
    length.filter(fits).ok_or_else(|| wrong_length(value, "between PT5M and PT15M"))
}

fn os_image_length(value: &Value) -> Result<Duration, ArmError> {
    let length = value.as_str().and_then(parse_iso_duration);
    length.filter(|length| *length == OS_IMAGE_NOTICE).ok_or_else(|| wrong_length(value, "PT15M"))
}

fn wrong_length(value: &Value, wanted: &str) -> ArmError {
    let message = format!(
        "The value '{}' of parameter '{LENGTH}' is invalid. It must be a length of time in ISO 8601 format, {wanted}.",
        shown(value)
    );
    ArmError::invalid(LENGTH, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use forewarn_lifecycle::EvictionPolicy;

    const SPOT: Priority = Priority::Spot(EvictionPolicy::Delete);

    fn terminate(notice: &Value) -> Value {
        json!({ "scheduledEventsProfile": { "terminateNotificationProfile": notice } })
    }

    fn seconds(notice: &Value) -> Result<Option<u64>, ArmError> {
        let profile = read_profile(&terminate(notice), Priority::Regular)?;
        Ok(profile.terminate.map(|notice| notice.length().as_secs()))
    }

    /// promise: Z2
    #[test]
    fn any_length_from_5_to_15_minutes_will_do() {
        for (text, expected) in [
            ("PT5M", 300),
            ("PT7M30S", 450),
            ("PT600S", 600),
            ("PT0H15M", 900),
            ("P0DT5M", 300),
            ("PT15M", 900),
        ] {
            assert_eq!(seconds(&json!({ "enable": true, "notBeforeTimeout": text })), Ok(Some(expected)));
            assert_eq!(seconds(&json!({ "enable": false, "notBeforeTimeout": text })), Ok(None));
            assert_eq!(seconds(&json!({ "notBeforeTimeout": text })), Ok(Some(expected)), "{text}");
        }
        assert_eq!(seconds(&json!({ "enable": true })), Ok(Some(300)));
        for nothing in [json!({}), json!(null), json!({ "enable": false }), json!({ "enable": null })] {
            assert_eq!(seconds(&nothing), Ok(None), "{nothing}");
        }
    }

    /// promise: Z2
    #[test]
    fn any_other_length_is_rejected_with_its_target() {
        for wrong in
            ["PT4M59S", "PT15M1S", "P1D", "10", "", "PT", "pt5m", "PT5.5M", "PT300.5S", "5m", "PT0S", "-PT5M"]
                .map(Value::from)
                .into_iter()
                .chain([json!(10), json!(true), json!({}), json!(["PT5M"])])
        {
            for enable in [json!(true), json!(false), json!(null)] {
                let error = seconds(&json!({ "enable": enable, "notBeforeTimeout": wrong })).unwrap_err();
                let given = (error.status, error.code.as_ref(), error.target.as_deref());
                assert_eq!(given, (400, "InvalidParameter", Some("notBeforeTimeout")), "{wrong}");
            }
        }
    }

    #[test]
    fn an_invalid_profile_is_rejected() {
        for (body, target) in [
            (json!({ "scheduledEventsProfile": [] }), "scheduledEventsProfile"),
            (terminate(&json!("PT5M")), "terminateNotificationProfile"),
            (terminate(&json!({ "enable": "maybe" })), "enable"),
        ] {
            let error = read_profile(&body, Priority::Regular).unwrap_err();
            assert_eq!((error.status, error.target.as_deref()), (400, Some(target)), "{body}");
        }
        assert_eq!(read_profile(&json!({}), Priority::Regular), Ok(Profile::default()));
        assert_eq!(read_profile(&json!(null), SPOT), Ok(Profile::default()));
    }

    /// promise: Z2
    #[test]
    fn the_deletion_of_a_spot_machine_is_not_announced() {
        for wanted in [json!({ "enable": true }), json!({ "notBeforeTimeout": "PT5M" })] {
            let error = read_profile(&terminate(&wanted), SPOT).unwrap_err();
            assert_eq!((error.status, error.target.as_deref()), (400, Some("terminateNotificationProfile")));
        }
        assert_eq!(read_profile(&terminate(&json!({ "enable": false })), SPOT), Ok(Profile::default()));
    }

    #[test]
    fn a_new_image_has_15_minutes_or_none() {
        let read = |notice: Value| {
            let body = json!({ "scheduledEventsProfile": { "osImageNotificationProfile": notice } });
            read_profile(&body, SPOT).map(|profile| profile.os_image)
        };
        for on in [json!({ "enable": true }), json!({ "notBeforeTimeout": "PT900S" })] {
            assert_eq!(read(on), Ok(OsImageNotice::On));
        }
        assert_eq!(read(json!({ "enable": false, "notBeforeTimeout": "PT15M" })), Ok(OsImageNotice::Off));
        let error = read(json!({ "enable": true, "notBeforeTimeout": "PT10M" })).unwrap_err();
        assert_eq!((error.status, error.target.as_deref()), (400, Some("notBeforeTimeout")));
    }

    #[test]
    fn omitted_members_are_added_and_others_stay() {
        for (given, meant) in [
            (json!({ "enable": true }), json!({ "enable": true, "notBeforeTimeout": "PT5M" })),
            (
                json!({ "notBeforeTimeout": "PT600S" }),
                json!({ "enable": true, "notBeforeTimeout": "PT600S" }),
            ),
            (json!({ "enable": false }), json!({ "enable": false })),
            (
                json!({ "enable": false, "notBeforeTimeout": "PT9M" }),
                json!({ "enable": false, "notBeforeTimeout": "PT9M" }),
            ),
            (json!({}), json!({})),
            (json!("x"), json!("x")),
        ] {
            let mut body = terminate(&given);
            complete_profile(&mut body);
            assert_eq!(body, terminate(&meant));
        }
        let mut image =
            json!({ "scheduledEventsProfile": { "osImageNotificationProfile": { "enable": true } } });
        complete_profile(&mut image);
        let notice = &image["scheduledEventsProfile"]["osImageNotificationProfile"];
        assert_eq!(notice["notBeforeTimeout"], "PT15M");
    }

    /// promise: Z2
    #[test]
    fn the_profile_of_the_rules_is_shown_and_a_length_keeps_its_form() {
        let profile = |seconds: u64| Profile {
            terminate: TerminateNotice::from_seconds(seconds),
            os_image: OsImageNotice::Off,
        };
        let on = |length: &str| terminate(&json!({ "enable": true, "notBeforeTimeout": length }));
        for (was, is, given) in [
            (on("PT600S"), profile(600), on("PT600S")),
            (on("PT600S"), profile(450), on("PT7M30S")),
            (on("PT600S"), profile(0), terminate(&json!({ "enable": false }))),
            (json!({}), profile(0), json!({})),
            (json!({}), profile(300), on("PT5M")),
            (json!({ "scheduledEventsProfile": "x" }), profile(300), on("PT5M")),
        ] {
            let mut body = was;
            refresh_profile(&mut body, is);
            assert_eq!(body, given);
            assert_eq!(read_profile(&body, Priority::Regular), Ok(is));
        }
        let mut body = on("PT600S");
        let is = Profile { os_image: OsImageNotice::On, ..profile(600) };
        refresh_profile(&mut body, is);
        assert_eq!(read_profile(&body, Priority::Regular), Ok(is));
        refresh_profile(&mut body, profile(600));
        assert_eq!(read_profile(&body, Priority::Regular), Ok(profile(600)));
    }
}
