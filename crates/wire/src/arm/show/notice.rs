//! What a resource is told beforehand, and which events approve themselves: `scheduledEventsProfile` and
//! `scheduledEventsPolicy`.
//!
//! What its client wrote stays as long as the rules mean the same: `PT600S` is not made `PT10M`. When an operator has
//! changed it since, it is written anew, and only where it differs.

use std::time::Duration;

use forewarn_lifecycle::{Approve, OsImageNotice, Policy, Profile, TerminateNotice};
use serde_json::Value;

use super::edit::{at, put, text_at};

/// The notice of a new operating-system image.
const OS_IMAGE_NOTICE: Duration = Duration::from_mins(15);

/// Overlays the profile in the object at `holder`.
pub(super) fn put_profile(body: &mut Value, holder: &str, profile: Profile) {
    let path = |member: &str| format!("{holder}/scheduledEventsProfile/{member}");
    let terminate = profile.terminate.map(TerminateNotice::length);
    put_notice(body, &path("terminateNotificationProfile"), terminate);
    let os_image = match profile.os_image {
        OsImageNotice::On => Some(OS_IMAGE_NOTICE),
        OsImageNotice::Off => None,
    };
    put_notice(body, &path("osImageNotificationProfile"), os_image);
}

fn put_notice(body: &mut Value, path: &str, notice: Option<Duration>) {
    let (enable, length) = (format!("{path}/enable"), format!("{path}/notBeforeTimeout"));
    let is_on = at(body, &enable).is_some_and(|value| value == true);
    match notice {
        None if is_on => put(body, &enable, false),
        None => {}
        Some(notice) => {
            let kept = text_at(body, &length).and_then(seconds);
            if !is_on {
                put(body, &enable, true);
            }
            if kept != Some(notice.as_secs()) {
                put(body, &length, print_length(notice));
            }
        }
    }
}

/// The length that a text says, however it says it.
fn seconds(text: &str) -> Option<u64> {
    let length: jiff::SignedDuration = text.parse().ok()?;
    u64::try_from(length.as_secs()).ok()
}

/// A length in the shortest form: `PT10M`, `PT7M30S`.
fn print_length(length: Duration) -> String {
    match (length.as_secs() / 60, length.as_secs() % 60) {
        (minutes, 0) => format!("PT{minutes}M"),
        (0, seconds) => format!("PT{seconds}S"),
        (minutes, seconds) => format!("PT{minutes}M{seconds}S"),
    }
}

/// Overlays the policy of a resource.
pub(super) fn put_policy(body: &mut Value, policy: Policy) {
    let usual = Policy::default();
    for (member, is, usually) in [
        ("userInitiatedReboot", policy.user_restart, usual.user_restart),
        ("userInitiatedRedeploy", policy.user_redeploy, usual.user_redeploy),
        ("allInstancesDown", policy.all_instances_down, usual.all_instances_down),
    ] {
        let path = format!("/properties/scheduledEventsPolicy/{member}/automaticallyApprove");
        let (is, usually) = (is == Approve::Automatically, usually == Approve::Automatically);
        if at(body, &path).and_then(Value::as_bool).unwrap_or(usually) != is {
            put(body, &path, is);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(kept: &Value, terminate: Option<u64>, os_image: OsImageNotice) -> Value {
        let mut body = json!({ "p": { "scheduledEventsProfile": kept } });
        let terminate = terminate.map(|seconds| TerminateNotice::from_seconds(seconds).unwrap());
        put_profile(&mut body, "/p", Profile { terminate, os_image });
        body["p"]["scheduledEventsProfile"].take()
    }

    #[test]
    fn a_text_stays_as_long_as_it_means_the_same() {
        for text in ["PT10M", "PT600S", "PT0H10M", "PT9M60S"] {
            let kept =
                json!({ "terminateNotificationProfile": { "enable": true, "notBeforeTimeout": text } });
            assert_eq!(shown(&kept, Some(600), OsImageNotice::Off), kept);
            let other = shown(&kept, Some(450), OsImageNotice::Off);
            assert_eq!(other["terminateNotificationProfile"]["notBeforeTimeout"], "PT7M30S");
            let off = shown(&kept, None, OsImageNotice::Off);
            let expected =
                json!({ "terminateNotificationProfile": { "enable": false, "notBeforeTimeout": text } });
            assert_eq!(off, expected);
        }
    }

    #[test]
    fn what_nobody_said_is_filled_in() {
        let five = json!({ "enable": true, "notBeforeTimeout": "PT5M" });
        let fifteen = json!({ "enable": true, "notBeforeTimeout": "PT15M" });
        let both = json!({ "terminateNotificationProfile": five, "osImageNotificationProfile": fifteen });
        assert_eq!(shown(&json!(null), Some(300), OsImageNotice::On), both);
        let terse =
            json!({ "terminateNotificationProfile": { "enable": true }, "osImageNotificationProfile": 7 });
        assert_eq!(shown(&terse, Some(300), OsImageNotice::On), both);
        assert_eq!(shown(&json!(null), None, OsImageNotice::Off), json!(null));
        let off = json!({ "terminateNotificationProfile": { "enable": false } });
        assert_eq!(shown(&off, None, OsImageNotice::Off), off);
    }

    #[test]
    fn a_policy_is_shown_where_it_is_not_the_usual_one() {
        let show = |kept: Value, policy: Policy| {
            let mut body = json!({ "properties": kept });
            put_policy(&mut body, policy);
            body["properties"].take()
        };
        let usual = Policy::default();
        assert_eq!(show(json!({}), usual), json!({}));
        let said =
            json!({ "scheduledEventsPolicy": { "userInitiatedReboot": { "automaticallyApprove": false } } });
        assert_eq!(show(said.clone(), usual), said);
        let changed = Policy { user_restart: Approve::Automatically, ..usual };
        let expected =
            json!({ "scheduledEventsPolicy": { "userInitiatedReboot": { "automaticallyApprove": true } } });
        assert_eq!(show(said, changed), expected);
        assert_eq!(show(json!({ "scheduledEventsPolicy": "x" }), changed), expected);
        let asks = Policy { all_instances_down: Approve::WhenAsked, ..usual };
        let expected =
            json!({ "scheduledEventsPolicy": { "allInstancesDown": { "automaticallyApprove": false } } });
        assert_eq!(show(json!({}), asks), expected);
    }
}
