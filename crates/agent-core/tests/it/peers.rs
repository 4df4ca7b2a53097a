//! Several machines in one event, and several events at once.

use std::collections::BTreeMap;
use std::time::Duration;

use forewarn_agent_core::{
    Approval, PeerEventStatus, PeerReport, PeerStatus, PeersToPoll, Settings, Silence, Stage,
};

use super::support::{Event, ME, Machine, drain, id, settings};

fn leader(silence: Silence) -> Machine {
    let mut peers = settings().peers;
    peers.silence = silence;
    Machine::new(Settings { approval: Approval::Leader, hooks: vec![drain()], peers, ..settings() })
}

fn shared(resources: &[&str]) -> Event {
    Event::new(1, "Reboot", resources, 900)
}

/// promise: A5
#[test]
fn the_first_approves_when_all_are_ready_and_not_before() {
    let mut machine = leader(Silence::Wait);
    machine.observe(&[shared(&[ME, "web_1", "web_2"])]);
    machine.settle();
    assert_eq!(
        machine.watcher.peers_to_poll(),
        PeersToPoll::Named(vec!["web_1".to_owned(), "web_2".to_owned()])
    );
    machine.hear(&[("web_1", 1, Stage::Ready), ("web_2", 1, Stage::Preparing)]);
    assert!(machine.approvals.is_empty());
    machine.hear(&[("web_1", 1, Stage::Ready), ("web_2", 1, Stage::Ready)]);
    assert_eq!(machine.approvals, [id(1)]);
    machine.hear(&[("web_1", 1, Stage::Ready), ("web_2", 1, Stage::Ready)]);
    assert_eq!(machine.approvals, [id(1)], "once");
}

/// promise: A5
#[test]
fn the_others_leave_it_to_the_first_that_is_alive() {
    let mut machine = leader(Silence::GoOn);
    machine.observe(&[shared(&["web_9", ME, "web_2"])]);
    machine.settle();
    machine.hear(&[("web_9", 1, Stage::Ready), ("web_2", 1, Stage::Ready)]);
    for _ in 0..5 {
        machine.pass(5);
        machine.hear(&[("web_9", 1, Stage::Ready), ("web_2", 1, Stage::Ready)]);
    }
    assert!(machine.approvals.is_empty());
    for _ in 0..3 {
        machine.pass(5);
        machine.hear(&[("web_2", 1, Stage::Ready)]);
    }
    assert_eq!(machine.approvals, [id(1)], "the first has fallen silent");
    assert!(machine.notes.contains(&"approving without web_9".to_owned()));
}

#[test]
fn a_silent_peer_is_waited_for_or_not_as_it_was_said() {
    let silences = [
        (Silence::Wait, None),
        (Silence::GoOn, Some(11)),
        (Silence::GoOnWhenLeft(Duration::from_secs(300)), Some(600)),
    ];
    for (silence, expected) in silences {
        let mut machine = leader(silence);
        machine.observe(&[shared(&[ME, "web_1"])]);
        machine.settle();
        let approved = (0..899).find(|_| {
            machine.pass(1);
            machine.hear(&[]);
            !machine.approvals.is_empty()
        });
        assert_eq!(approved.map(|seconds| seconds + 1), expected, "{silence:?}");
    }
}

/// promise: A5
#[test]
fn a_peer_that_was_not_asked_is_not_silent() {
    let mut machine = leader(Silence::GoOn);
    machine.observe(&[shared(&[ME, "web_1"])]);
    machine.settle();
    machine.hear(&[("web_1", 1, Stage::Preparing)]);
    // This machine was paused, and asks again afterwards.
    machine.pass(60);
    assert!(machine.approvals.is_empty());
    machine.hear(&[("web_1", 1, Stage::Preparing)]);
    machine.pass(5);
    assert!(machine.approvals.is_empty());
    machine.pass(6);
    machine.hear(&[]);
    assert_eq!(machine.approvals, [id(1)], "it was asked in vain");
}

/// promise: A5
#[test]
fn a_peer_that_is_alive_and_has_no_time_is_neither_silent_nor_ready() {
    let mut machine = leader(Silence::GoOn);
    machine.observe(&[shared(&[ME, "web_1"])]);
    machine.settle();
    machine.hear(&[("web_1", 1, Stage::Preparing)]);
    for _ in 0..60 {
        machine.pass(1);
        machine.hear_report(PeerReport::Alive("web_1".to_owned()));
    }
    assert!(machine.approvals.is_empty(), "it may still drain");
    machine.hear(&[("web_1", 1, Stage::Ready)]);
    assert_eq!(machine.approvals, [id(1)]);
}

/// promise: A5
#[test]
fn what_a_peer_said_long_ago_does_not_make_it_ready() {
    let mut machine = leader(Silence::GoOn);
    machine.observe(&[shared(&[ME, "web_1"])]);
    machine.hear(&[("web_1", 1, Stage::Ready)]);
    // Its agent may have been restarted since, and prepare once more.
    for _ in 0..20 {
        machine.pass(1);
        machine.hear_report(PeerReport::Alive("web_1".to_owned()));
    }
    machine.settle();
    assert!(machine.approvals.is_empty());
}

#[test]
fn a_peer_that_failed_is_not_ready_however_long_it_takes() {
    let mut machine = leader(Silence::GoOn);
    machine.observe(&[shared(&[ME, "web_1"])]);
    machine.settle();
    for _ in 0..100 {
        machine.hear(&[("web_1", 1, Stage::Failed)]);
        machine.pass(8);
    }
    assert!(machine.approvals.is_empty());
}

#[test]
fn a_peer_that_does_nothing_about_it_is_ready_and_one_that_has_not_seen_it_is_not() {
    let mut machine = leader(Silence::Wait);
    machine.observe(&[shared(&[ME, "web_1"])]);
    machine.settle();
    machine.hear(&[("web_1", 7, Stage::Ready)]);
    assert!(machine.approvals.is_empty());
    machine.hear(&[("web_1", 1, Stage::Idle)]);
    assert_eq!(machine.approvals, [id(1)]);
}

#[test]
fn nobody_is_ready_who_has_not_said_so_itself() {
    let mut machine = leader(Silence::Wait);
    machine.observe(&[shared(&[ME, "web_1"])]);
    machine.hear(&[("web_1", 1, Stage::Ready)]);
    assert!(machine.approvals.is_empty(), "its own hooks run");
    assert_eq!(machine.watcher.peer_status().events[&id(1).to_string()].stage, Stage::Preparing);
    machine.settle();
    assert_eq!(machine.approvals, [id(1)]);
    assert_eq!(machine.watcher.peer_status().events[&id(1).to_string()].stage, Stage::Ready);
}

/// promise: A2
#[test]
fn an_event_that_a_peer_has_approved_was_completed() {
    let mut machine = leader(Silence::Wait);
    machine.observe(&[shared(&["web_9", ME])]);
    machine.settle();
    let standing = PeerEventStatus { stage: Stage::Ready, approved: true };
    let events = BTreeMap::from([(id(1).to_string(), standing)]);
    machine.hear_words(vec![PeerStatus { name: "web_9".to_owned(), events }]);
    assert_eq!(machine.watcher.peers_to_poll(), PeersToPoll::None);
    machine.observe(&[]);
    assert!(machine.notes.contains(&"completed".to_owned()));
}

fn in_turn() -> Machine {
    let mut peers = settings().peers;
    peers.at_once = Some(1);
    Machine::new(Settings { hooks: vec![drain()], peers, ..settings() })
}

/// promise: A5
#[test]
fn one_word_is_not_a_round() {
    let mut machine = in_turn();
    machine.observe(&[Event::reboot(5)]);
    machine.hear_report(PeerReport::Status(PeerStatus { name: "web_1".to_owned(), events: BTreeMap::new() }));
    assert!(machine.running().is_empty(), "another peer may be drained");
    machine.hear(&[]);
    assert_eq!(machine.running(), ["scheduled drain"]);
}

/// promise: A5
#[test]
fn while_enough_others_are_drained_it_waits_for_its_turn() {
    let mut machine = in_turn();
    machine.observe(&[Event::reboot(5)]);
    assert_eq!(machine.watcher.peers_to_poll(), PeersToPoll::All);
    assert!(machine.running().is_empty(), "nobody was asked yet");
    machine.hear(&[("web_1", 9, Stage::Preparing), ("web_2", 3, Stage::Idle)]);
    assert!(machine.running().is_empty());
    assert_eq!(machine.watcher.peer_status().events[&id(5).to_string()].stage, Stage::Waiting);
    machine.pass(5);
    machine.hear(&[("web_1", 9, Stage::Ready)]);
    assert!(machine.running().is_empty());
    machine.pass(5);
    machine.hear_words(vec![PeerStatus { name: "web_1".to_owned(), events: BTreeMap::new() }]);
    assert_eq!(machine.running(), ["scheduled drain"]);
    let told = ["seen", "asks for its turn", "waits for its turn behind web_1", "preparing"];
    assert_eq!(machine.notes, told);
}

#[test]
fn of_two_that_wait_one_goes_first() {
    let mut machine = in_turn();
    machine.observe(&[Event::reboot(5)]);
    machine.hear(&[("web_1", 9, Stage::Waiting)]);
    assert_eq!(machine.running(), ["scheduled drain"]);
    let mut machine = in_turn();
    machine.observe(&[Event::reboot(5)]);
    machine.hear(&[("web_1", 2, Stage::Waiting)]);
    assert!(machine.running().is_empty());
}

/// promise: A5
#[test]
fn with_too_little_time_left_nobody_waits_for_a_turn() {
    let mut machine = in_turn();
    machine.observe(&[Event::reboot(5)]);
    for _ in 0..120 {
        machine.hear(&[("web_1", 2, Stage::Ready)]);
        assert!(machine.running().is_empty());
        machine.pass(5);
    }
    assert_eq!(machine.running(), ["scheduled drain"], "five minutes are left");
}

#[test]
fn those_of_the_same_event_go_together() {
    let mut machine = in_turn();
    machine.observe(&[Event::new(5, "Reboot", &[ME, "web_1"], 900)]);
    machine.hear(&[("web_1", 5, Stage::Preparing)]);
    assert_eq!(machine.running(), ["scheduled drain"]);
}

#[test]
fn where_nobody_answers_it_goes_on_after_a_while() {
    let mut machine = in_turn();
    machine.observe(&[Event::reboot(5)]);
    machine.pass(11);
    assert_eq!(machine.running(), ["scheduled drain"]);
}

#[test]
fn until_it_is_undone_a_machine_counts_as_drained() {
    let mut machine = in_turn();
    machine.observe(&[Event::reboot(5)]);
    machine.hear(&[]);
    machine.done("drain");
    machine.observe(&[]);
    assert_eq!(machine.running(), ["undo drain"]);
    assert_eq!(machine.watcher.peer_status().events[&id(5).to_string()].stage, Stage::Ready);
    machine.done("drain");
    assert!(machine.watcher.peer_status().events.is_empty());
}

/// promise: A7
#[test]
fn the_machines_that_are_waited_for_are_named_with_their_states() {
    let mut machine = leader(Silence::Wait);
    machine.observe(&[shared(&["web_9", ME, "web_1"])]);
    assert_eq!(machine.obstacle(), None, "it prepares");
    machine.settle();
    assert_eq!(machine.obstacle().unwrap(), "web_9 unknown, web_1 unknown");
    let refused = || PeerReport::Failed { name: "web_1".to_owned(), error: "refused".to_owned() };
    for _ in 0..4 {
        machine.pass(4);
        machine.hear_report(refused());
        machine.hear(&[("web_9", 1, Stage::Preparing)]);
    }
    assert_eq!(machine.obstacle().unwrap(), "web_9 preparing, web_1 silent: refused");
    machine.hear(&[("web_9", 1, Stage::Ready), ("web_1", 1, Stage::Ready)]);
    assert_eq!(machine.obstacle().unwrap(), "web_9 leads");
    let told: Vec<_> = machine.notes.iter().filter(|note| note.starts_with("not approving")).collect();
    let expected = [
        "not approving: web_9 unknown, web_1 unknown",
        "not approving: web_9 preparing, web_1 silent: refused",
        "not approving: web_9 leads",
    ];
    assert_eq!(told, expected, "progress is not logged, silence is");
    assert!(machine.approvals.is_empty());
}
