//! Undoing: only what was done, only when nothing is pending, and in the end.

use forewarn_agent_core::{Approval, EventOutcome, Hook, Phase, Settings};
use serde_json::json;

use super::support::{Event, ME, Machine, drain, hook, id, settings};

/// promise: A2
#[test]
fn while_another_event_of_this_machine_is_pending_it_stays_drained() {
    let mut machine = Machine::with_hooks(&[drain()]);
    machine.observe(&[Event::reboot(1)]);
    machine.done("drain");
    let freeze = Event::new(2, "Freeze", &[ME], 2_000);
    machine.observe(&[Event::reboot(1), freeze.clone()]);
    machine.done("drain");
    machine.observe(std::slice::from_ref(&freeze));
    machine.settle();
    assert!(machine.watcher.is_drained());
    assert!(!machine.log.contains(&"undo drain 1".to_owned()), "{:?}", machine.log);
    machine.observe(&[freeze.started()]);
    assert!(machine.watcher.is_drained());
    machine.observe(&[]);
    machine.settle();
    assert_eq!(machine.log, ["scheduled drain 1", "scheduled drain 1", "undo drain 1"]);
    assert!(!machine.watcher.is_drained());
}

#[test]
fn a_failure_that_started_at_once_keeps_it_drained_too() {
    let mut machine = Machine::with_hooks(&[drain()]);
    machine.observe(&[Event::reboot(1)]);
    machine.done("drain");
    let failure = Event::new(2, "Reboot", &[ME], 0).started();
    machine.observe(&[failure]);
    machine.settle();
    assert!(machine.watcher.is_drained());
    machine.observe(&[]);
    machine.settle();
    assert_eq!(machine.log.last().unwrap(), "undo drain 1");
}

/// promise: A2
#[test]
fn only_hooks_that_have_begun_are_undone() {
    let second = Hook { order: 90, undoes: true, ..hook("second", Phase::Scheduled) };
    let mut machine = Machine::with_hooks(&[drain(), second]);
    machine.observe(&[Event::reboot(1)]);
    machine.observe(&[Event::reboot(1).started()]);
    machine.done("drain");
    machine.observe(&[]);
    machine.settle();
    assert_eq!(machine.log, ["scheduled drain 1", "undo drain 1"]);
}

#[test]
fn what_was_done_first_is_undone_last() {
    let second = Hook { order: 90, undoes: true, ..hook("second", Phase::Scheduled) };
    let mut machine = Machine::with_hooks(&[drain(), second]);
    machine.observe(&[Event::reboot(1)]);
    machine.settle();
    machine.observe(&[]);
    machine.settle();
    assert_eq!(machine.log[2..], ["undo second 1", "undo drain 1"]);
}

#[test]
fn a_failed_hook_is_undone_as_well_it_may_have_done_half_of_it() {
    let mut machine = Machine::with_hooks(&[drain()]);
    machine.observe(&[Event::reboot(1)]);
    machine.fail("drain");
    machine.pass(901);
    machine.observe(&[]);
    machine.settle();
    assert_eq!(machine.log, ["scheduled drain 1", "undo drain 1"]);
}

#[test]
fn an_event_that_comes_while_something_is_undone_waits_for_that() {
    let mut machine = Machine::with_hooks(&[drain(), hook("back", Phase::Undo)]);
    machine.observe(&[Event::reboot(1)]);
    machine.settle();
    machine.observe(&[]);
    assert_eq!(machine.running(), ["undo drain"]);
    machine.observe(&[Event::reboot(2)]);
    assert_eq!(machine.running(), ["undo drain"]);
    machine.done("drain");
    assert_eq!(machine.running(), ["scheduled drain"], "and the rest is not undone while it is pending");
    machine.settle();
    machine.observe(&[]);
    machine.settle();
    assert_eq!(machine.log[3..], ["undo drain 1", "undo back 1"]);
}

#[test]
fn what_a_hook_remembers_comes_back_to_it() {
    let mut machine = Machine::with_hooks(&[drain()]);
    machine.observe(&[Event::reboot(1)]);
    assert_eq!(machine.run("drain").memory, None);
    machine.done_with("drain", json!({"active": ["nginx"]}));
    machine.observe(&[Event::reboot(1), Event::reboot(2)]);
    assert_eq!(machine.run("drain").memory, Some(json!({"active": ["nginx"]})));
    machine.done("drain");
    let mut machine = machine.restart(60);
    machine.observe(&[]);
    assert_eq!(machine.run("drain").memory, Some(json!({"active": ["nginx"]})));
}

/// promise: A2
#[test]
fn a_hook_is_told_since_when_it_owes() {
    let mut machine = Machine::with_hooks(&[drain(), hook("note", Phase::Scheduled)]);
    machine.observe(&[Event::reboot(1)]);
    assert_eq!(machine.run("drain").pending_undo, Some(id(1)));
    // An agent that dies before its hook has ended does not know what it has done, but that it owes.
    let mut machine = machine.restart(5);
    machine.observe(&[Event::reboot(1), Event::reboot(2)]);
    for event in [id(1), id(2)] {
        let run = machine.run("drain");
        assert_eq!((run.task.event, run.pending_undo, &run.memory), (event, Some(id(1)), &None));
        machine.done("drain");
    }
    assert_eq!(machine.run("note").pending_undo, None, "it undoes nothing");
    machine.settle();
    machine.observe(&[]);
    assert_eq!(machine.run("drain").pending_undo, Some(id(1)));
    machine.settle();
    machine.observe(&[Event::reboot(3)]);
    assert_eq!(machine.run("drain").pending_undo, Some(id(3)), "what was undone is owed no more");
}

#[test]
fn what_cannot_be_undone_is_said_and_tried_again_after_the_next_event_or_in_the_next_life() {
    let mut machine = Machine::with_hooks(&[Hook { retries: 1, ..drain() }]);
    machine.observe(&[Event::reboot(1)]);
    machine.done("drain");
    machine.observe(&[]);
    machine.fail("drain");
    machine.pass(2);
    machine.fail("drain");
    machine.pass(600);
    assert_eq!(machine.log[1..], ["undo drain 1", "undo drain 2"]);
    assert_eq!(machine.notes.last().unwrap(), "drain not undone: it failed");
    assert!(machine.watcher.is_drained());
    let mut machine = machine.restart(5);
    machine.observe(&[]);
    machine.settle();
    assert_eq!(machine.log, ["undo drain 3"]);
    assert!(!machine.watcher.is_drained());
}

#[test]
fn what_nobody_knows_how_to_undo_is_said_and_forgotten() {
    let mut machine = Machine::with_hooks(&[drain()]);
    machine.observe(&[Event::reboot(1)]);
    machine.done("drain");
    let memory = machine.watcher.memory().clone();
    let mut machine = Machine::with_memory(super::support::settings(), memory);
    machine.observe(&[]);
    assert!(machine.notes.contains(&"drain not undone: the hook is no longer in the settings".to_owned()));
    assert!(!machine.watcher.is_drained());
}

#[test]
fn who_undoes_is_told_what_became_of_the_event_also_in_the_next_life() {
    let after = |is_started: bool| {
        let mut machine =
            Machine::new(Settings { hooks: vec![drain()], approval: Approval::Never, ..settings() });
        machine.observe(&[Event::reboot(1)]);
        assert_eq!(machine.run("drain").outcome, None);
        machine.done("drain");
        if is_started {
            machine.observe(&[Event::reboot(1).started()]);
        }
        machine.observe(&[]);
        let outcome = machine.run("drain").outcome;
        let mut machine = machine.restart(10);
        machine.observe(&[]);
        assert_eq!(machine.run("drain").outcome, outcome);
        outcome
    };
    assert_eq!((after(true), after(false)), (Some(EventOutcome::Completed), Some(EventOutcome::Cancelled)));
}

/// promise: A2
#[test]
fn what_is_being_undone_gives_way_to_an_event_for_which_there_is_no_time_otherwise() {
    let mut machine = Machine::with_hooks(&[drain()]);
    machine.observe(&[Event::reboot(1)]);
    machine.settle();
    machine.observe(&[]);
    assert_eq!(machine.running(), ["undo drain"]);
    machine.observe(&[Event::new(2, "Preempt", &[ME], 30)]);
    assert_eq!(machine.log[1..], ["undo drain 1", "stop drain", "scheduled drain 1"]);
    machine.settle();
    machine.observe(&[]);
    assert_eq!(machine.running(), ["undo drain"], "it is owed as before");
    assert!(!machine.notes.iter().any(|note| note.contains("not undone")));
}

/// promise: A2
#[test]
fn with_time_enough_what_is_being_undone_is_waited_for_until_there_is_no_more() {
    let mut machine = Machine::with_hooks(&[drain()]);
    machine.observe(&[Event::reboot(1)]);
    machine.settle();
    machine.observe(&[]);
    machine.observe(&[Event::reboot(2)]);
    machine.pass(800);
    assert_eq!(machine.log[1..], ["undo drain 1"]);
    machine.pass(60);
    assert_eq!(machine.log[1..], ["undo drain 1", "stop drain", "scheduled drain 1"]);
}

#[test]
fn who_undoes_knows_that_it_was_tried_before() {
    let mut machine = Machine::with_hooks(&[drain()]);
    machine.observe(&[Event::reboot(1)]);
    machine.settle();
    machine.observe(&[]);
    let mut machine = machine.restart(5);
    machine.observe(&[]);
    assert_eq!(machine.log, ["undo drain 2"]);
}

#[test]
fn an_undo_knows_the_last_status_of_its_event() {
    let mut machine = Machine::with_hooks(&[drain()]);
    machine.observe(&[Event::reboot(1)]);
    machine.done("drain");
    machine.observe(&[Event::reboot(1).started()]);
    machine.observe(&[]);
    let run = machine.run("drain");
    assert_eq!(run.observed.status, forewarn_agent_core::Status::Started);
    assert!(run.observed.not_before.is_some(), "the announcement is kept");
}
