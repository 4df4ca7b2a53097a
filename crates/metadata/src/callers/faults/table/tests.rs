//! Faults are taken in order, once each, and by their machine only.

use std::collections::BTreeSet;
use std::time::Duration;

use forewarn_types::{ClusterId, FaultStatus, MachineId};

use super::*;
use crate::callers::faults::{Alteration, DocumentView};

const GONE: FaultAnswer = FaultAnswer::Status(FaultStatus::Gone);

fn machine(number: u32) -> CallerId {
    CallerId { cluster: ClusterId(0), machine: MachineId(number) }
}

fn polls_of(number: u32) -> FaultTarget {
    FaultTarget::Machine(machine(number), FaultedRequest::Poll)
}

fn altered(answer: Alteration, hide: Option<u64>) -> Option<TakenFault> {
    let hide = hide.map(Duration::from_secs);
    Some(TakenFault::Altered { answer, view: DocumentView { hide, jumps: false } })
}

#[test]
fn a_fault_applies_to_its_machine_its_requests_and_its_number_only() {
    let table = FaultTable::default();
    let gone = Some(TakenFault::Instead(Failure::Status(FaultStatus::Gone)));
    table.add(polls_of(1), GONE, Some(2)).unwrap();
    assert_eq!(table.take(machine(2), RequestKind::Poll), None);
    assert_eq!(table.take(machine(1), RequestKind::Approve), None);
    assert_eq!(table.take(machine(1), RequestKind::Poll), gone);
    assert_eq!((table.list()[0].left, table.list()[0].used), (Some(1), 1));
    assert_eq!(table.take(machine(1), RequestKind::Poll), gone);
    assert_eq!(table.take(machine(1), RequestKind::Poll), None);
    assert!(table.list().is_empty() && !table.has_any());
    table.add(FaultTarget::Machine(machine(1), FaultedRequest::Any), GONE, Some(2)).unwrap();
    assert_eq!(table.take(machine(1), RequestKind::Approve), gone);
    assert_eq!(table.take(machine(1), RequestKind::Poll), gone);
    assert_eq!(table.take(machine(1), RequestKind::Approve), None);
}

#[test]
fn faults_follow_each_other_and_hiding_applies_beside_them() {
    let table = FaultTable::default();
    table.add(polls_of(1), FaultAnswer::Hide(Duration::from_secs(5)), None).unwrap();
    table.add(polls_of(1), FaultAnswer::Truncated, Some(1)).unwrap();
    table.add(polls_of(1), FaultAnswer::Hang, Some(1)).unwrap();
    let take = || table.take(machine(1), RequestKind::Poll);
    assert_eq!(take(), altered(Alteration::Truncated, Some(5)));
    assert_eq!(take(), Some(TakenFault::Instead(Failure::Hang)));
    assert_eq!(take(), altered(Alteration::None, Some(5)));
    // A request that is not processed reads no document, so it uses up no hiding.
    assert_eq!((table.list()[0].left, table.list()[0].used), (None, 2));
    assert_eq!(table.remove(|fault| fault.target == polls_of(1)), 1);
    assert_eq!(take(), None);
}

#[test]
fn concurrent_requests_take_each_fault_once() {
    const FAULTS: u32 = 500;
    let table = FaultTable::default();
    for _ in 0..5 {
        table.add(polls_of(1), GONE, Some(FAULTS / 5)).unwrap();
    }
    let taken = std::thread::scope(|scope| {
        let poll = || (0..FAULTS).filter(|_| table.take(machine(1), RequestKind::Poll).is_some()).count();
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(poll)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
    });
    assert_eq!((taken, table.list().len()), (FAULTS as usize, 0));
}

#[test]
fn messages_of_a_webhook_are_no_requests_of_a_machine() {
    let table = FaultTable::default();
    table.add(FaultTarget::Webhook(3), FaultAnswer::Duplicate, Some(1)).unwrap();
    assert!(!table.has_any() && !table.take_duplicate(4));
    assert!(table.take_duplicate(3) && !table.take_duplicate(3));
}

#[test]
fn the_number_of_faults_is_limited_and_ids_are_not_reused() {
    let table = FaultTable::default();
    let ids: BTreeSet<_> =
        (0..FAULTS_MAX).map(|_| table.add(polls_of(1), GONE, Some(1)).unwrap().id).collect();
    assert_eq!(ids.len(), FAULTS_MAX);
    assert_eq!(table.add(polls_of(1), GONE, Some(1)), Err(TooManyFaults));
    assert_eq!(table.remove(|_| true), FAULTS_MAX);
    assert!(!ids.contains(&table.add(polls_of(1), GONE, Some(1)).unwrap().id));
}
