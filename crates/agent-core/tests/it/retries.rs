//! Hooks that have failed and run again because somebody wants it.

use forewarn_agent_core::{Hook, Phase, Settings, Stage};

use super::support::{Event, Machine, drain, hook, id, settings};

fn stage(machine: &Machine) -> Stage {
    machine.watcher.peer_status().events[&id(1).to_string()].stage
}

/// promise: A1
#[test]
fn failed_hooks_run_again_and_then_the_event_is_approved() {
    let good = Hook { order: 90, ..hook("good", Phase::Scheduled) };
    let mut machine = Machine::with_hooks(&[drain(), good]);
    machine.observe(&[Event::reboot(1)]);
    machine.fail("drain");
    machine.done("good");
    assert_eq!(stage(&machine), Stage::Failed);
    assert_eq!(machine.retry(Some(2)), [""; 0], "another event");
    assert_eq!(machine.retry(Some(1)), ["scheduled drain"]);
    assert_eq!((stage(&machine), machine.approvals.len()), (Stage::Preparing, 0));
    assert_eq!(machine.retry(None), [""; 0], "it runs already");
    machine.fail("drain");
    assert_eq!(stage(&machine), Stage::Failed);
    assert_eq!(machine.retry(None), ["scheduled drain"]);
    machine.done("drain");
    assert_eq!(machine.approvals, [id(1)]);
    assert_eq!(
        machine.log,
        ["scheduled drain 1", "scheduled good 1", "scheduled drain 2", "scheduled drain 3"]
    );
    let last: Vec<_> = machine.notes.iter().rev().take(2).rev().collect();
    assert_eq!(last, ["ready", "approving"], "{:?}", machine.notes);
}

#[test]
fn a_failed_hook_that_is_no_longer_in_the_settings_holds_nothing_after_a_retry() {
    let mut machine = Machine::with_hooks(&[drain()]);
    machine.observe(&[Event::reboot(1)]);
    machine.fail("drain");
    machine.watcher.change(Settings { hooks: Vec::new(), ..settings() });
    machine.pass(1);
    assert!(machine.approvals.is_empty());
    machine.retry(None);
    assert_eq!(machine.approvals, [id(1)]);
}

/// promise: A2
#[test]
fn a_retry_survives_a_restart_of_the_agent() {
    let mut machine = Machine::with_hooks(&[drain()]);
    machine.observe(&[Event::reboot(1)]);
    machine.fail("drain");
    machine.retry(None);
    let mut machine = machine.restart(1);
    machine.observe(&[Event::reboot(1)]);
    assert_eq!(machine.log, ["scheduled drain 3"]);
}

#[test]
fn a_failed_hook_of_a_started_event_and_a_failed_undo_run_again_too() {
    let started = hook("on-started", Phase::Started);
    let mut machine = Machine::with_hooks(&[drain(), started]);
    machine.observe(&[Event::reboot(1)]);
    machine.fail("drain");
    machine.observe(&[Event::reboot(1).started()]);
    machine.fail("on-started");
    assert_eq!(machine.retry(None), ["started on-started"], "it is too late to prepare");
    machine.done("on-started");
    machine.observe(&[]);
    machine.fail("drain");
    assert!(machine.running().is_empty() && machine.watcher.is_drained());
    assert_eq!(machine.retry(None), ["undo drain"]);
    machine.done("drain");
    assert!(!machine.watcher.is_drained());
}
