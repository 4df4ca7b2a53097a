//! Who approves what, and when.

use forewarn_agent_core::{Approval, ApprovalResult, Failure, Rule, Settings, Treatment};

use super::conditions::condition;
use super::support::{Event, ME, Machine, drain, hook, id, settings};

fn machine(approval: Approval) -> Machine {
    Machine::new(Settings { approval, hooks: vec![drain()], ..settings() })
}

/// promise: A1
#[test]
fn alone_it_approves_only_what_is_its_own() {
    let mut one = machine(Approval::Alone);
    one.observe(&[Event::reboot(1), Event::new(2, "Freeze", &[ME, "web_1"], 900)]);
    one.settle();
    assert_eq!(one.approvals, [id(1)]);
}

#[test]
fn when_done_it_approves_whoever_else_is_named() {
    let mut one = machine(Approval::WhenDone);
    one.observe(&[Event::new(2, "Freeze", &["web_1", ME], 900)]);
    assert!(one.approvals.is_empty());
    one.settle();
    assert_eq!(one.approvals, [id(2)]);
}

#[test]
fn never_is_never() {
    let mut one = machine(Approval::Never);
    one.observe(&[Event::reboot(1)]);
    one.settle();
    one.pass(890);
    assert!(one.approvals.is_empty());
}

#[test]
fn events_of_others_are_never_approved() {
    let mut one = machine(Approval::WhenDone);
    one.observe(&[Event::new(1, "Terminate", &["web_1"], 900)]);
    one.settle();
    one.pass(100);
    assert!(one.approvals.is_empty());
}

/// promise: A1
#[test]
fn a_hook_that_failed_holds_the_approval_or_does_not() {
    for (on_failure, approved) in [(Failure::Hold, vec![]), (Failure::Approve, vec![id(1)])] {
        let hooks = vec![drain(), hook("after", forewarn_agent_core::Phase::Scheduled)];
        let mut one = Machine::new(Settings { on_failure, hooks, ..settings() });
        one.observe(&[Event::reboot(1)]);
        one.done("after");
        one.fail("drain");
        assert_eq!(one.approvals, approved);
    }
}

#[test]
fn an_approval_that_is_not_taken_is_tried_again_and_less_and_less_often() {
    let mut one = machine(Approval::Alone);
    one.observe(&[Event::reboot(1)]);
    one.settle();
    let mut tried = 0;
    for _ in 0..100 {
        if one.approvals.len() > tried {
            tried = one.approvals.len();
            one.answer(1, ApprovalResult::Rejected("busy".to_owned()));
        }
        one.pass(1);
    }
    let tried = one.approvals.len();
    assert!((5..=12).contains(&tried), "{tried}");
    assert_eq!(one.notes.iter().filter(|note| *note == "approving").count(), 1);
    one.answer(1, ApprovalResult::Accepted);
    one.pass(100);
    assert_eq!(one.approvals.len(), tried);
}

/// promise: A3
#[test]
fn rules_decide_and_the_first_that_fits_does() {
    let ignore = Rule {
        when: condition("types = ['Freeze']\nshorter_than = '10s'"),
        treatment: Treatment::Ignore,
        approval: None,
        on_failure: None,
    };
    let at_once =
        Rule { when: condition("types = ['Freeze']"), treatment: Treatment::ApproveAtOnce, ..ignore.clone() };
    let never = Rule {
        when: condition("types = ['Terminate']"),
        treatment: Treatment::Prepare,
        approval: Some(Approval::Never),
        ..ignore.clone()
    };
    let rules = vec![ignore, at_once, never];
    let mut one = Machine::new(Settings { rules, hooks: vec![drain()], ..settings() });
    let freeze =
        |number, seconds: i64| Event::new(number, "Freeze", &[ME], 900).with("DurationInSeconds", seconds);
    one.observe(&[freeze(1, 9)]);
    assert_eq!(one.notes, ["seen", "ignored"]);
    assert!(!one.watcher.is_drained());
    one.observe(&[freeze(1, 9), freeze(2, 10)]);
    assert_eq!(one.approvals, [id(2)]);
    one.observe(&[Event::new(3, "Terminate", &[ME], 900)]);
    one.settle();
    assert_eq!(one.log, ["scheduled drain 1"]);
    assert_eq!(one.approvals, [id(2)]);
    one.observe(&[]);
    assert_eq!(one.running(), ["undo drain"]);
}

/// promise: A1
#[test]
fn what_was_refused_was_not_approved_and_what_was_not_answered_may_have_been() {
    let cases = [
        (ApprovalResult::Rejected("no".to_owned()), "cancelled"),
        (ApprovalResult::Unknown("late".to_owned()), "completed"),
    ];
    for (answer, became) in cases {
        let mut one = machine(Approval::Alone);
        one.observe(&[Event::reboot(1)]);
        one.settle();
        one.answer(1, answer);
        one.observe(&[]);
        assert!(one.notes.contains(&became.to_owned()), "{:?}", one.notes);
    }
}

/// promise: A1
#[test]
fn once_in_doubt_a_refusal_proves_nothing() {
    let mut one = machine(Approval::Alone);
    one.observe(&[Event::reboot(1)]);
    one.settle();
    one.answer(1, ApprovalResult::Unknown("late".to_owned()));
    one.pass(2);
    one.answer(1, ApprovalResult::Rejected("no".to_owned()));
    one.observe(&[]);
    assert!(one.notes.contains(&"completed".to_owned()));
}

/// promise: A7
#[test]
fn what_keeps_it_from_approving_is_told_once() {
    let shared = Event::new(1, "Reboot", &[ME, "web_1"], 900);
    let cases = [
        (Approval::Alone, shared.clone(), Some("other machines")),
        (Approval::Never, Event::reboot(1), Some("never")),
        (Approval::WhenDone, Event::new(1, "Thaw", &[ME], 900), Some("unknown type")),
        (Approval::WhenDone, shared, None),
    ];
    for (approval, event, obstacle) in cases {
        let mut one = machine(approval);
        one.observe(&[event]);
        assert_eq!(one.obstacle(), None, "it prepares");
        one.settle();
        one.pass(10);
        assert_eq!(one.obstacle().as_deref(), obstacle);
        let told: Vec<_> = one.notes.iter().filter_map(|note| note.strip_prefix("not approving: ")).collect();
        assert_eq!(told, obstacle.into_iter().collect::<Vec<_>>());
    }
    let mut one = machine(Approval::Alone);
    one.observe(&[Event::reboot(1)]);
    one.fail("drain");
    assert_eq!(one.obstacle().as_deref(), Some("hooks failed"));
}
