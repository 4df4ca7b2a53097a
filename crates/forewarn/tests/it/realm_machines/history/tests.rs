//! Each rule accepts a right history and rejects one that is wrong in one place.

use std::collections::BTreeSet;
use std::time::Duration;

use super::*;

fn at(millis: u64) -> Since {
    Duration::from_millis(millis)
}

fn command(name: &str, subject: &str) -> WriteCommand {
    WriteCommand { name: name.to_owned(), subject: subject.to_owned() }
}

fn write(sent: u64, answered: u64, entry: u64, name: &str, subject: &str) -> Write {
    let answer = Some(Acknowledgement { at: at(answered), entry: Some(entry) });
    Write { sent: at(sent), answer, command: command(name, subject) }
}

fn entry(number: u64, kind: &str) -> LogEntry {
    LogEntry { number, hash: format!("hash-{number}"), kind: kind.to_owned(), ..LogEntry::default() }
}

fn requested(number: u64, name: &str, subject: &str) -> LogEntry {
    LogEntry { command: Some(command(name, subject)), ..entry(number, "command") }
}

fn about_host(number: u64, kind: &str, host: &str) -> LogEntry {
    LogEntry { hosts: vec![host.to_owned()], because: Some(number - 1), ..entry(number, kind) }
}

fn about_event(number: u64, kind: &str, because: Option<u64>) -> LogEntry {
    let (events, machines) = (vec!["E1".to_owned()], vec!["spot/spot".to_owned()]);
    LogEntry { events, machines, because, ..entry(number, kind) }
}

fn hosts(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn sighting(previous_sent: u64, answered: u64, incarnation: u64, event: Option<bool>) -> Sighting {
    let seen = |is_started| SeenEvent { id: "E1".to_owned(), kind: "Preempt".to_owned(), is_started };
    Sighting {
        server: 0,
        guest: "spot".to_owned(),
        previous_sent: at(previous_sent),
        answered: at(answered),
        incarnation,
        events: event.into_iter().map(seen).collect(),
    }
}

/// Two hosts join and one leaves; a machine is evicted after its whole notice.
fn right() -> History {
    let log = vec![
        requested(1, "admit_host", "a"),
        about_host(2, "admitted", "a"),
        requested(3, "admit_host", "b"),
        about_host(4, "admitted", "b"),
        requested(5, "remove_host", "a"),
        about_host(6, "removed", "a"),
        requested(7, "evict", "spot"),
        about_event(8, "announced", Some(7)),
        about_event(9, "started", None),
        about_event(10, "completed", None),
    ];
    let newest =
        |count: usize| log[..count].iter().rev().map(|entry| (entry.number, entry.hash.clone())).collect();
    History {
        writes: vec![
            write(10, 20, 1, "admit_host", "a"),
            write(30, 40, 3, "admit_host", "b"),
            write(50, 60, 5, "remove_host", "a"),
            write(70, 80, 7, "evict", "spot"),
        ],
        host_reads: vec![
            HostRead { server: 1, sent: at(41), answered: at(45), hosts: hosts(&["a", "b"]) },
            HostRead { server: 1, sent: at(65), answered: at(66), hosts: hosts(&["b"]) },
        ],
        log_reads: vec![LogRead { server: 2, sent: at(41), answered: at(45), entries: newest(4) }],
        sightings: vec![
            sighting(0, 5, 1, None),
            sighting(75, 85, 2, Some(false)),
            sighting(30_040, 30_090, 3, Some(true)),
            sighting(30_100, 30_150, 4, None),
        ],
        missed_polls: Vec::new(),
        approvals: Vec::new(),
        effects: vec![Effect { action: "1".to_owned(), machine: "spot".to_owned() }],
        effects_before_logs: 1,
        logs: vec![log; 3],
    }
}

/// Changes a right history; it is rejected with a message that contains these words.
fn rejected(words: &str, change: impl FnOnce(&mut History)) {
    let mut history = right();
    change(&mut history);
    let found = history.violations();
    assert!(found.iter().any(|violation| violation.contains(words)), "{words}: {found:#?}");
}

#[test]
fn a_right_history_is_accepted() {
    assert_eq!(right().violations(), Vec::<String>::new());
}

#[test]
fn a_write_without_an_answer_may_be_in_the_log_or_not() {
    let mut history = right();
    history.writes[1].answer = None;
    history.writes.push(Write { sent: at(5), answer: None, command: command("admit_host", "c") });
    assert_eq!(history.violations(), Vec::<String>::new());
}

#[test]
fn an_acknowledged_write_that_is_not_in_the_log_is_found() {
    rejected("not in the log", |history| history.writes.push(write(90, 95, 11, "admit_host", "c")));
    rejected("another command", |history| history.writes[0].command.subject = "c".to_owned());
    rejected("in the log 0 times", |history| {
        let answer = Some(Acknowledgement { at: at(95), entry: None });
        history.writes.push(Write { sent: at(90), answer, command: command("admit_host", "c") });
    });
    rejected("ends at 4", |history| history.logs[1].truncate(4));
}

#[test]
fn a_write_that_was_carried_out_twice_is_found() {
    rejected("in the log 2 times", |history| {
        history.logs.iter_mut().for_each(|log| log.push(requested(11, "admit_host", "a")));
    });
    rejected("two answers name the entry 1", |history| {
        history.writes.push(write(11, 21, 1, "admit_host", "a"));
    });
}

#[test]
fn numbers_against_the_order_of_clients_are_found() {
    rejected("before it in the log", |history| {
        history.writes[2].sent = at(1);
        history.writes[2].answer = Some(Acknowledgement { at: at(2), entry: Some(5) });
    });
}

#[test]
fn a_number_that_occurs_twice_and_logs_that_differ_are_found() {
    rejected("in place of", |history| history.logs[0][5].number = 5);
    rejected("differ", |history| history.logs[2][3].hash = "another".to_owned());
}

#[test]
fn a_read_that_is_no_prefix_is_found() {
    rejected("at no time", |history| history.host_reads[0].hosts = hosts(&["a"]));
    rejected("at no time", |history| history.host_reads[1].hosts = hosts(&["a", "b"]));
    rejected("at no time", |history| {
        history.host_reads[0].sent = at(21);
        history.host_reads[0].answered = at(22);
    });
    rejected("has shown the log up to 4", |history| history.log_reads[0].sent = at(65));
    rejected("has shown the log up to 4", |history| {
        history.log_reads[0].sent = at(21);
        history.log_reads[0].answered = at(22);
    });
    rejected("not in the log", |history| history.log_reads[0].entries[1].1 = "another".to_owned());
    rejected("not in the log", |history| {
        history.log_reads[0].entries.remove(1);
    });
}

#[test]
fn a_lower_incarnation_is_found() {
    rejected("incarnation", |history| history.sightings[3].incarnation = 2);
}

#[test]
fn an_early_start_is_found_unless_a_guest_has_approved() {
    let early = |history: &mut History| history.sightings[2].answered = at(30_070);
    rejected("started after at most", early);
    rejected("started after at most", |history| {
        history.sightings.remove(2);
        history.sightings[2].answered = at(30_050);
    });
    let mut approved = right();
    early(&mut approved);
    approved.approvals.push(Approval { event: "E1".to_owned(), is_acknowledged: true });
    assert_eq!(approved.violations(), Vec::<String>::new());
}

#[test]
fn an_approval_that_was_lost_is_found() {
    rejected("not in the log: Approval", |history| {
        history.approvals.push(Approval { event: "E2".to_owned(), is_acknowledged: true });
    });
}

#[test]
fn an_id_that_was_used_twice_is_found() {
    let push = |history: &mut History, entry: LogEntry| {
        history.logs.iter_mut().for_each(|log| log.push(entry.clone()));
    };
    rejected("announced twice", |history| push(history, about_event(11, "announced", None)));
    rejected("started twice", |history| push(history, about_event(11, "started", None)));
    rejected("not announced", |history| {
        history.logs.iter_mut().for_each(|log| log[7].kind = "planned".to_owned());
    });
}

#[test]
fn an_action_that_was_carried_out_twice_or_never_is_found() {
    rejected("carried out twice", |history| history.effects.push(history.effects[0].clone()));
    let another = |history: &mut History| {
        history.effects.push(Effect { action: "2".to_owned(), machine: "spot".to_owned() });
    };
    rejected("2 carried out", |history| {
        another(history);
        history.effects_before_logs = 2;
    });
    let mut later = right();
    another(&mut later);
    assert_eq!(later.violations(), Vec::<String>::new(), "it has started after the log was read");
    rejected("0 carried out", |history| history.effects.clear());
}

#[test]
fn a_poll_that_a_running_server_has_not_answered_is_found() {
    let mut history = right();
    let missed = |server| MissedPoll { server, sent: at(50), reason: "timed out".to_owned() };
    history.missed_polls = vec![missed(0), missed(1)];
    assert_eq!(history.unanswered(at(50), |server| server == 1).len(), 1);
    assert_eq!(history.unanswered(at(51), |_| true), Vec::<String>::new());
}
