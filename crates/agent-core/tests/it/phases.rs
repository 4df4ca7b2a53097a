//! The life of an event on one machine.

use std::time::Duration;

use forewarn_agent_core::{
    Approval, ApprovalResult, Condition, Hook, Mine, Phase, Rule, Settings, Treatment,
};
use forewarn_types::Steady;
use serde_json::json;

use super::support::{Event, ME, Machine, drain, hook, id, settings};

fn all_phases() -> Vec<Hook> {
    let name = |phase: Phase| format!("on-{}", phase.as_str());
    Phase::ALL.into_iter().map(|phase| hook(&name(phase), phase)).collect()
}

/// promise: A1
#[test]
fn an_event_is_prepared_approved_accompanied_and_undone() {
    let mut machine = Machine::with_hooks(&all_phases());
    machine.observe(&[Event::reboot(1)]);
    assert_eq!(machine.running(), ["scheduled on-scheduled"]);
    assert!(machine.approvals.is_empty(), "nothing is approved before the work has ended");
    machine.done("on-scheduled");
    assert_eq!(machine.approvals, [id(1)]);
    machine.answer(1, ApprovalResult::Accepted);
    machine.observe(&[Event::reboot(1).started()]);
    machine.done("on-started");
    machine.observe(&[]);
    assert_eq!(machine.running(), ["completed on-completed"]);
    machine.done("on-completed");
    assert_eq!(machine.running(), ["undo on-undo"]);
    machine.done("on-undo");
    assert!(!machine.watcher.is_drained());
    let told =
        ["seen", "preparing", "ready", "approving", "approved", "started", "completed", "undoing", "undone"];
    assert_eq!(machine.notes, told);
    assert_eq!(*machine.watcher.memory(), Default::default(), "nothing is left of it");
}

/// promise: A2
#[test]
fn an_event_that_goes_before_its_time_and_unapproved_was_cancelled() {
    let mut machine = Machine::with_hooks(&all_phases());
    machine.observe(&[Event::new(1, "Reboot", &[ME, "web_1"], 900)]);
    machine.done("on-scheduled");
    machine.pass(100);
    machine.observe(&[]);
    machine.settle();
    assert_eq!(machine.log, ["scheduled on-scheduled 1", "cancelled on-cancelled 1", "undo on-undo 1"]);
}

/// promise: A2
#[test]
fn an_event_that_goes_after_its_time_was_completed_even_if_its_start_was_not_seen() {
    let mut machine = Machine::with_hooks(&all_phases());
    machine.observe(&[Event::new(1, "Reboot", &[ME, "web_1"], 900)]);
    machine.done("on-scheduled");
    machine.pass(901);
    machine.observe(&[]);
    assert_eq!(machine.running(), ["completed on-completed"]);
}

/// promise: A2
#[test]
fn an_approved_event_that_goes_was_completed() {
    let mut machine = Machine::with_hooks(&all_phases());
    machine.observe(&[Event::reboot(1)]);
    machine.done("on-scheduled");
    machine.answer(1, ApprovalResult::Accepted);
    machine.observe(&[]);
    assert_eq!(machine.running(), ["completed on-completed"]);
}

/// promise: A4
#[test]
fn a_hook_has_its_own_time_and_no_more_than_is_left() {
    let mut machine = Machine::with_hooks(&[Hook { limit: Duration::from_secs(600), ..drain() }]);
    machine.observe(&[Event::new(1, "Preempt", &[ME], 30)]);
    assert_eq!(machine.left(machine.run("drain")), 28, "thirty seconds less the two that are spared");
    let mut machine = Machine::with_hooks(&[Hook { limit: Duration::from_secs(10), ..drain() }]);
    machine.observe(&[Event::reboot(1)]);
    assert_eq!(machine.left(machine.run("drain")), 10);
}

/// promise: A3
#[test]
fn an_event_first_seen_late_gives_what_is_left() {
    let mut machine = Machine::with_hooks(&[drain()]);
    machine.pass(880);
    machine.observe(&[Event::reboot(1)]);
    assert_eq!(machine.left(machine.run("drain")), 18);
    machine.done("drain");
    assert_eq!(machine.approvals, [id(1)]);
}

/// promise: A4
#[test]
fn with_no_time_left_a_hook_has_failed_and_nothing_hangs() {
    let mut machine = Machine::with_hooks(&[drain()]);
    machine.pass(899);
    machine.observe(&[Event::reboot(1)]);
    assert!(machine.running().is_empty());
    assert_eq!(machine.notes, ["seen", "preparing", "drain failed: no time left", "held"]);
}

/// promise: A3
#[test]
fn an_event_that_has_started_when_it_is_first_seen_runs_what_is_for_that_and_nothing_else() {
    let mut machine = Machine::with_hooks(&all_phases());
    machine.observe(&[Event::reboot(1).started()]);
    machine.settle();
    machine.observe(&[]);
    machine.settle();
    assert_eq!(machine.log, ["started on-started 1", "completed on-completed 1"]);
    assert_eq!(machine.notes, ["seen", "too late", "completed"]);
}

/// promise: A3
#[test]
fn a_hook_that_wants_to_runs_even_late() {
    let mut machine =
        Machine::with_hooks(&[Hook { even_late: true, ..drain() }, hook("stop", Phase::Scheduled)]);
    machine.observe(&[Event::reboot(1).started()]);
    machine.settle();
    machine.observe(&[]);
    machine.settle();
    assert_eq!(machine.log, ["scheduled drain 1", "undo drain 1"]);
    assert!(machine.approvals.is_empty());
}

#[test]
fn hooks_run_in_order_one_after_the_other() {
    let late = Hook { order: 90, ..hook("a", Phase::Scheduled) };
    let early = Hook { order: 10, ..hook("z", Phase::Scheduled) };
    let mut machine = Machine::with_hooks(&[late, early, hook("m", Phase::Scheduled)]);
    machine.observe(&[Event::reboot(1)]);
    assert_eq!(machine.running(), ["scheduled z"]);
    machine.settle();
    assert_eq!(machine.log, ["scheduled z 1", "scheduled m 1", "scheduled a 1"]);
}

#[test]
fn a_start_before_the_hooks_are_done_drops_those_that_have_not_begun() {
    let mut machine = Machine::with_hooks(&[
        hook("a", Phase::Scheduled),
        hook("b", Phase::Scheduled),
        hook("on-started", Phase::Started),
    ]);
    machine.observe(&[Event::reboot(1)]);
    machine.observe(&[Event::reboot(1).started()]);
    assert_eq!(machine.running(), ["scheduled a", "started on-started"]);
    machine.settle();
    assert!(!machine.log.contains(&"scheduled b 1".to_owned()));
    assert!(machine.approvals.is_empty());
}

#[test]
fn what_runs_when_an_event_is_cancelled_is_stopped_before_it_is_undone() {
    let mut machine = Machine::with_hooks(&[drain()]);
    machine.observe(&[Event::reboot(1)]);
    machine.pass(5);
    machine.observe(&[]);
    machine.settle();
    assert_eq!(machine.log, ["scheduled drain 1", "stop drain", "undo drain 1"]);
    assert_eq!(machine.notes, ["seen", "preparing", "cancelled", "undoing", "undone"]);
}

#[test]
fn a_hook_that_fails_is_tried_again_as_often_as_it_may_be() {
    let mut machine = Machine::with_hooks(&[Hook { retries: 2, ..drain() }]);
    machine.observe(&[Event::reboot(1)]);
    for _ in 0..3 {
        machine.fail("drain");
        machine.pass(2);
    }
    let tries = ["scheduled drain 1", "scheduled drain 2", "scheduled drain 3"];
    assert_eq!(machine.log, tries);
    assert_eq!(machine.notes[2..], ["drain failed: it failed", "held"]);
    machine.pass(300);
    assert_eq!(machine.log, tries, "and no more often");
}

#[test]
fn events_of_others_concern_only_hooks_that_ask_for_them() {
    let any = Condition { mine: Mine::Any, ..Condition::default() };
    let mut machine = Machine::with_hooks(&[drain(), Hook { when: any, ..hook("tell", Phase::Scheduled) }]);
    machine.observe(&[Event::new(1, "Reboot", &["web_1"], 900)]);
    machine.settle();
    machine.observe(&[]);
    assert_eq!(machine.log, ["scheduled tell 1"]);
    assert!(machine.approvals.is_empty());
    assert!(!machine.watcher.is_drained());
}

#[test]
fn a_type_that_is_not_known_is_prepared_for_and_never_approved() {
    for treatment in [Treatment::Prepare, Treatment::ApproveAtOnce] {
        let rule = Rule { when: Condition::default(), treatment, approval: None, on_failure: None };
        let hooks = vec![drain()];
        for approval in [Approval::Alone, Approval::WhenDone, Approval::Leader] {
            let rules = vec![rule.clone()];
            let mut machine = Machine::new(Settings { hooks: hooks.clone(), rules, approval, ..settings() });
            machine.observe(&[Event::reboot(1).with("EventType", "Defrost"), Event::reboot(2)]);
            machine.settle();
            machine.pass(60);
            assert_eq!(machine.approvals, [id(2)], "{treatment:?} {approval:?}");
            let prepared = machine.log.iter().filter(|line| *line == "scheduled drain 1").count();
            assert_eq!(prepared, if treatment == Treatment::Prepare { 2 } else { 0 });
            assert_eq!(machine.notes.iter().filter(|note| *note == "unknown type").count(), 1);
        }
    }
}

/// promise: A3
#[test]
fn an_event_with_a_status_that_is_not_known_is_skipped() {
    let mut machine = Machine::with_hooks(&[drain()]);
    let strange = |event: Event| event.with("EventStatus", "Pondered");
    machine.observe(&[strange(Event::reboot(1)), Event::reboot(2)]);
    machine.settle();
    machine.observe(&[strange(Event::reboot(1)), Event::reboot(2)]);
    assert_eq!(machine.approvals, [id(2)]);
    let skipped = machine.notes.iter().filter(|note| note.starts_with("skipped")).collect::<Vec<_>>();
    assert_eq!(skipped, ["skipped: unknown EventStatus: \"Pondered\""], "once");
    machine.observe(&[Event::reboot(1), Event::reboot(2)]);
    machine.settle();
    assert_eq!(machine.approvals, [id(2), id(1)], "it is handled as soon as it can be read");
}

/// promise: A3
#[test]
fn an_event_that_can_no_longer_be_read_has_not_ended_and_is_not_approved() {
    let whole = || Event::reboot(1);
    // By id; by none that can be read; by a status that is not known.
    let broken = [
        whole().with("Resources", json!([7])),
        whole().with("EventId", 7),
        whole().with("EventStatus", "Pondered"),
    ];
    for broken in broken {
        let mut machine = Machine::with_hooks(&[drain(), hook("after", Phase::Completed)]);
        machine.observe(&[whole()]);
        assert_eq!(machine.running(), ["scheduled drain"]);
        machine.observe(std::slice::from_ref(&broken));
        machine.settle();
        machine.pass(5);
        assert!(machine.approvals.is_empty(), "{broken:?}");
        assert!(machine.watcher.is_drained());
        // The same after a restart.
        let mut machine = machine.restart(5);
        machine.observe(std::slice::from_ref(&broken));
        machine.pass(5);
        assert!(machine.log.is_empty() && machine.approvals.is_empty(), "{broken:?}: {:?}", machine.log);
        machine.observe(&[whole()]);
        assert_eq!(machine.approvals, [id(1)], "{broken:?}");
        machine.observe(&[]);
        machine.settle();
        assert_eq!(machine.log, ["completed after 1", "undo drain 1"]);
    }
}

/// promise: A3
#[test]
fn an_event_ends_beside_an_unreadable_one_that_was_there_before() {
    let unreadable = || Event::reboot(2).with("EventId", 7);
    let mut machine = Machine::with_hooks(&[drain(), hook("after", Phase::Completed)]);
    machine.observe(&[Event::reboot(1), unreadable()]);
    machine.settle();
    machine.observe(&[Event::reboot(1).started(), unreadable()]);
    machine.observe(&[unreadable()]);
    machine.settle();
    assert_eq!(machine.log, ["scheduled drain 1", "completed after 1", "undo drain 1"]);
    assert!(!machine.watcher.is_drained());
}

#[test]
fn what_is_in_hand_comes_with_the_end_of_its_notice() {
    let mut machine = Machine::with_hooks(&[drain()]);
    machine.observe(&[Event::reboot(1), Event::new(2, "Freeze", &["web_1"], 600)]);
    let cases = |machine: &Machine| {
        let seconds = |at: Steady| at.since(Steady::from_millis(0)).as_secs();
        let cases = machine.watcher.cases();
        cases.map(|(case, deadline)| (case.observed.id, deadline.map(seconds))).collect::<Vec<_>>()
    };
    assert_eq!(cases(&machine), [(id(1), Some(900)), (id(2), Some(600))]);
    machine.observe(&[Event::reboot(1).started(), Event::new(2, "Freeze", &["web_1"], 600)]);
    assert_eq!(cases(&machine), [(id(1), None), (id(2), Some(600))], "what has started has no notice left");
}

#[test]
fn no_news_changes_nothing() {
    let mut machine = Machine::with_hooks(&[drain()]);
    machine.observe(&[Event::reboot(1)]);
    machine.observe(&[Event::reboot(1)]);
    machine.pass(20);
    assert_eq!(machine.log, ["scheduled drain 1"]);
}

/// promise: A1
#[test]
fn no_event_goes_back() {
    let mut machine = Machine::with_hooks(&[drain()]);
    machine.observe(&[Event::reboot(1).started()]);
    machine.observe(&[Event::reboot(1)]);
    machine.pass(60);
    assert!(machine.log.is_empty() && machine.approvals.is_empty(), "{:?}", machine.log);
    machine.observe(&[]);
    assert_eq!(machine.notes, ["seen", "too late", "completed"]);
}
