//! The rules of the article, shown through `az`: who waits for whom, which notice counts, and what raises a Terminate.

use crate::arm::scale_sets::{CREATE, OF_SET, instances};
use forewarn_testkit::arm::{AFTER_10, AFTER_15, instance};
use forewarn_testkit::az::{Az, RunningAz};
use forewarn_testkit::wait_until;

/// A scale set whose instances are told ten minutes before; one of them has asked.
fn set_of(az: &Az, capacity: u32) {
    az.ok(&format!("{CREATE} --instance-count {capacity}"));
    az.server.server.enrol(&[&instance(0)]);
}

/// Begins to delete an instance, and sees that so many are announced.
fn delete(az: &Az, ids: &str, announced: usize) -> RunningAz {
    let running = az.begin(&format!("vmss delete-instances {OF_SET} --instance-ids {ids}"));
    wait_until("it is told", || (az.server.seen(&instance(0)).len() == announced).then_some(()));
    running
}

/// What is to be seen where every one of these instances has an event of that status.
fn all(status: &str, numbers: &[u32]) -> Vec<String> {
    numbers.iter().map(|number| format!("Terminate {status} {}", instance(*number))).collect()
}

/// promise: T4
#[test]
#[ignore = "needs az; `cargo xtask azure` installs it"]
fn a_later_delete_that_is_approved_waits_for_an_earlier_one_that_is_not() {
    let az = Az::start(crate::program());
    let place = &az.server;
    set_of(&az, 4);
    let mut first = delete(&az, "1", 1);
    place.server.advance("2m");
    let mut second = delete(&az, "2", 2);
    place.approve(&instance(2), &instance(2));
    assert_eq!(place.short(&instance(0)), all("Scheduled", &[1, 2]), "it waits for the other");
    assert!(!first.is_over() && !second.is_over());
    // The notice of the first is over, two minutes before that of the second: both go.
    place.server.advance("8m");
    assert_eq!(place.short(&instance(0)), all("Started", &[1, 2]));
    assert_eq!((first.end().code, second.end().code), (Some(0), Some(0)));
    place.server.advance("5m");

    // Approved first, the earlier one goes at once, and the later one when it is asked.
    let third = delete(&az, "3", 1);
    place.approve(&instance(3), &instance(3));
    assert_eq!(third.end().code, Some(0));
    assert_eq!(instances(&az).len(), 1);
}

/// promise: T4
#[test]
#[ignore = "needs az; `cargo xtask azure` installs it"]
fn deletes_at_the_same_time_go_together_or_when_their_notice_is_over() {
    let az = Az::start(crate::program());
    let place = &az.server;
    set_of(&az, 5);
    let mut deletion = delete(&az, "1 2", 2);
    assert!(place.seen(&instance(0)).iter().all(|seen| seen.not_before == AFTER_10));
    place.approve(&instance(1), &instance(1));
    assert_eq!(place.short(&instance(0)), all("Scheduled", &[1, 2]), "one of them is not enough");
    place.server.advance("9m59s");
    assert_eq!(place.short(&instance(0)), all("Scheduled", &[1, 2]));
    assert!(!deletion.is_over());
    place.server.advance("1s");
    assert_eq!(place.short(&instance(0)), all("Started", &[1, 2]));
    assert_eq!(deletion.end().code, Some(0));
    place.server.advance("5m");

    let deletion = delete(&az, "3 4", 2);
    place.approve(&instance(3), &instance(3));
    place.approve(&instance(4), &instance(4));
    assert_eq!(place.short(&instance(0)), all("Started", &[3, 4]));
    assert_eq!(deletion.end().code, Some(0));
}

/// promise: T4
#[test]
#[ignore = "needs az; `cargo xtask azure` installs it"]
fn an_instance_has_the_notice_of_the_model_that_it_was_upgraded_to() {
    let az = Az::start(crate::program());
    let place = &az.server;
    set_of(&az, 4);
    az.ok(&format!("vmss update {OF_SET} --terminate-notification-time 15"));
    az.ok(&format!("vmss update-instances {OF_SET} --instance-ids 2"));
    let latest: Vec<_> = instances(&az).into_iter().map(|(_, is_latest)| is_latest).collect();
    assert_eq!(latest, [false, false, true, false]);
    az.ok(&format!("vmss delete-instances {OF_SET} --instance-ids 1 2 --no-wait"));
    let seen = place.seen(&instance(0));
    let told: Vec<_> = seen.iter().map(|seen| (seen.whom.clone(), seen.not_before.as_str())).collect();
    assert_eq!(told, [(instance(1), AFTER_10), (instance(2), AFTER_15)]);
    // Switched off, it is off for whoever is upgraded to that.
    az.ok(&format!("vmss update {OF_SET} --enable-terminate-notification false"));
    az.ok(&format!("vmss update-instances {OF_SET} --instance-ids 3"));
    az.ok(&format!("vmss delete-instances {OF_SET} --instance-ids 3"));
    assert_eq!(place.seen(&instance(0)).len(), 2);
}

/// promise: E2, Z3
#[test]
#[ignore = "needs az; `cargo xtask azure` installs it"]
fn only_a_delete_raises_a_terminate() {
    let az = Az::start(crate::program());
    let place = &az.server;
    set_of(&az, 2);
    for (command, event) in [
        ("restart", Some("Reboot")),
        ("perform-maintenance", Some("Redeploy")),
        ("reimage", None),
        ("stop", None),
        ("start", None),
        ("deallocate", None),
        ("start", None),
    ] {
        let running = az.begin(&format!("vmss {command} {OF_SET} --instance-ids 1"));
        if let Some(event) = event {
            wait_until("it is told", || (!place.seen(&instance(0)).is_empty()).then_some(()));
            assert_eq!(
                place.short(&instance(0)),
                [format!("{event} Scheduled {}", instance(1))],
                "{command}"
            );
            place.approve(&instance(1), &instance(1));
            place.server.advance("5m");
        }
        let ended = running.end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(place.short(&instance(0)), [""; 0], "{command}");
    }
    let told = place.server.json(&["vm", "show", &instance(1)]);
    assert!(told["boots"].as_u64().unwrap() > 4, "{told}");
    assert_eq!(instances(&az).len(), 2);
}

/// promise: T4
#[test]
#[ignore = "needs az; `cargo xtask azure` installs it"]
fn a_spot_set_has_no_terminate_notification_and_its_instances_are_evicted() {
    let az = Az::start(crate::program());
    let place = &az.server;
    let spot = "--priority Spot --eviction-policy Delete";
    let refused = az.refused(&format!("{CREATE} {spot}"));
    assert!(refused.contains("erminate") && refused.to_lowercase().contains("spot"), "{refused}");
    let gone = az.run(&format!("vmss show {OF_SET}"));
    assert_eq!(gone.code, Some(3), "nothing was made: {gone:?}");
    let create = CREATE.replace(" --terminate-notification-time 10", "");
    az.ok(&format!("{create} {spot} --instance-count 2"));
    place.server.enrol(&[&instance(0)]);
    let refused = az.refused(&format!(
        "vmss update {OF_SET} --enable-terminate-notification true --terminate-notification-time 10"
    ));
    assert!(refused.contains("erminate") && refused.to_lowercase().contains("spot"), "{refused}");
    az.ok(&format!("vmss simulate-eviction {OF_SET} --instance-id 1"));
    assert_eq!(place.short(&instance(0)), [format!("Preempt Scheduled {}", instance(1))]);
    place.approve(&instance(1), &instance(1));
    place.server.advance("5m");
    assert!(!place.is_there(&instance(1)));
    assert_eq!(instances(&az).len(), 1);
}
