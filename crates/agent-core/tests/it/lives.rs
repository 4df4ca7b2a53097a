//! The agent ends, the machine reboots; each event still happens once.

use forewarn_agent_core::{ApprovalResult, Hook, Phase};

use super::support::{Event, Machine, drain, hook, id};

/// promise: A2
#[test]
fn hooks_that_are_done_are_not_run_again() {
    let mut machine = Machine::with_hooks(&[drain(), Hook { order: 90, ..hook("second", Phase::Scheduled) }]);
    machine.observe(&[Event::reboot(1)]);
    machine.done("drain");
    let mut machine = machine.restart(3);
    machine.observe(&[Event::reboot(1)]);
    assert_eq!(machine.log, ["scheduled second 2"], "the one that was under way is, and knows it");
    machine.settle();
    assert_eq!(machine.approvals, [id(1)]);
}

/// promise: A2
#[test]
fn an_approval_that_was_taken_is_not_given_again() {
    let mut machine = Machine::with_hooks(&[drain()]);
    machine.observe(&[Event::reboot(1)]);
    machine.done("drain");
    machine.answer(1, ApprovalResult::Accepted);
    let mut machine = machine.restart(3);
    machine.observe(&[Event::reboot(1)]);
    machine.pass(60);
    assert!(machine.approvals.is_empty());
    assert!(machine.log.is_empty());
}

#[test]
fn an_approval_of_which_nothing_is_known_is_given_again() {
    let mut machine = Machine::with_hooks(&[drain()]);
    machine.observe(&[Event::reboot(1)]);
    machine.done("drain");
    let mut machine = machine.restart(3);
    machine.observe(&[Event::reboot(1)]);
    assert_eq!(machine.approvals, [id(1)]);
}

/// promise: A2
#[test]
fn after_the_reboot_itself_everything_is_undone() {
    let mut machine = Machine::with_hooks(&[drain(), hook("told", Phase::Completed)]);
    machine.observe(&[Event::reboot(1)]);
    machine.done("drain");
    machine.answer(1, ApprovalResult::Accepted);
    machine.observe(&[Event::reboot(1).started()]);
    let mut machine = machine.restart(90);
    assert!(machine.watcher.is_drained(), "it is drained until it knows better");
    machine.observe(&[Event::reboot(1).started()]);
    assert!(machine.log.is_empty());
    machine.observe(&[]);
    machine.settle();
    assert_eq!(machine.log, ["completed told 1", "undo drain 1"]);
}

#[test]
fn a_start_and_an_end_that_nobody_saw_are_understood() {
    let mut machine = Machine::with_hooks(&[drain()]);
    machine.observe(&[Event::reboot(1)]);
    machine.fail("drain");
    let mut machine = machine.restart(1_200);
    machine.observe(&[]);
    assert!(machine.notes.contains(&"completed".to_owned()));
    let mut machine = Machine::with_hooks(&[drain()]);
    machine.observe(&[Event::reboot(1)]);
    machine.fail("drain");
    let mut machine = machine.restart(100);
    machine.observe(&[]);
    assert!(machine.notes.contains(&"cancelled".to_owned()));
}

/// promise: A2
#[test]
fn nothing_is_done_before_a_document_was_seen() {
    let mut machine = Machine::with_hooks(&[drain()]);
    machine.observe(&[Event::reboot(1)]);
    let mut machine = machine.restart(2_000);
    machine.pass(60);
    machine.hear(&[]);
    assert!(machine.log.is_empty() && machine.notes.is_empty());
}

#[test]
fn an_event_that_comes_back_is_prepared_for_again() {
    let mut machine = Machine::with_hooks(&[drain()]);
    machine.observe(&[Event::reboot(1)]);
    machine.done("drain");
    machine.observe(&[]);
    machine.settle();
    machine.observe(&[Event::reboot(1)]);
    machine.settle();
    assert_eq!(machine.log, ["scheduled drain 1", "undo drain 1", "scheduled drain 1"]);
}

/// promise: A2
#[test]
fn an_event_that_comes_back_waits_until_its_hooks_have_ended() {
    let mut machine = Machine::with_hooks(&[drain()]);
    machine.heeds_stops = false;
    machine.observe(&[Event::reboot(1)]);
    machine.observe(&[]);
    machine.observe(&[Event::reboot(1)]);
    assert_eq!(machine.log, ["scheduled drain 1", "stop drain"]);
    machine.fail("drain");
    assert_eq!(machine.log[2..], ["scheduled drain 1"]);
    assert!(machine.approvals.is_empty(), "the end of the first is not that of the second");
    machine.done("drain");
    assert_eq!(machine.approvals, [id(1)]);
}

#[test]
fn an_event_that_comes_back_and_goes_again_is_gone() {
    let mut machine = Machine::with_hooks(&[drain()]);
    machine.heeds_stops = false;
    machine.observe(&[Event::reboot(1)]);
    machine.observe(&[]);
    machine.observe(&[Event::reboot(1)]);
    machine.observe(&[]);
    machine.settle();
    assert_eq!(machine.log, ["scheduled drain 1", "stop drain", "undo drain 1"]);
}
