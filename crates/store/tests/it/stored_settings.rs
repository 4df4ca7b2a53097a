//! The stored form of settings: bytes of a cluster that does not use the rule of enrolment are those of older versions.

#![allow(clippy::unwrap_used, reason = "a test may stumble")]

use forewarn_control::{ClusterId, Record};
use forewarn_lifecycle::{Change, EnrolmentRule, FailureKind, Now, Settings, Unenrolled};
use forewarn_store::{record_from_stored, record_to_stored};

fn stored(settings: Settings) -> Vec<u8> {
    let record = Record::rules(Now::at_millis(0), ClusterId(0), Change::SettingsChanged(settings));
    let bytes = record_to_stored(7, &record);
    assert_eq!(record_from_stored(7, &bytes).unwrap(), record);
    bytes
}

/// The number of the change, then the settings.
fn end(settings: Settings) -> Vec<u8> {
    let bytes = stored(settings);
    let length = if settings.user_operations_max.is_some() { 5 } else { 4 };
    bytes[bytes.len() - length..].to_vec()
}

#[test]
fn settings_without_a_rule_of_enrolment_have_the_bytes_of_older_versions() {
    assert_eq!(end(Settings::default()), [26, 0, 0, 0]);
    let other = Settings {
        unenrolled: Unenrolled::WaitAnyway,
        user_operations_max: Some(3),
        failure: FailureKind::Redeploy,
        enrolment: EnrolmentRule::OnFirstPoll,
    };
    assert_eq!(end(other), [26, 1, 1, 3, 1]);
}

#[test]
fn the_rule_of_enrolment_takes_no_byte_of_its_own() {
    let always = Settings { enrolment: EnrolmentRule::Always, ..Settings::default() };
    assert_eq!(end(always), [26, 2, 0, 0]);
    assert_eq!(end(Settings { unenrolled: Unenrolled::WaitAnyway, ..always }), [26, 3, 0, 0]);
}
