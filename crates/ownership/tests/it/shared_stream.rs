//! Commits of the shared stream by several servers.

use std::collections::BTreeSet;

use forewarn_ownership::{
    Answer, BatchFate, BeginError, NothingInFlight, Revision, SharedStep, SharedWriter, Term, Transaction,
};
use proptest::prelude::*;

use crate::reference_engine::{ReferenceEngine, at, batch, id};

type NumberShared = SharedWriter<(), u32>;

fn commit(engine: &mut ReferenceEngine, writer: &mut NumberShared, number: u32) -> SharedStep<(), u32> {
    let answer = engine.execute(writer.begin(batch(number)).unwrap());
    writer.answer(answer).unwrap()
}

#[test]
fn any_server_commits_and_the_term_stays() {
    let mut engine = ReferenceEngine::default();
    let mut first = NumberShared::new(None);
    let step = commit(&mut engine, &mut first, 1);
    assert_eq!(step, SharedStep::Committed { number: 1, revision: Revision(3), payload: Some(1) });
    let mut second = NumberShared::new(Some((engine.revision, engine.head().clone())));
    assert!(matches!(commit(&mut engine, &mut second, 2), SharedStep::Committed { number: 2, .. }));
    assert_eq!((engine.head().term, engine.owner.clone()), (Term(0), None));
}

#[test]
fn a_server_that_is_behind_reads_and_decides_again() {
    let mut engine = ReferenceEngine::default();
    let (mut first, mut second) = (NumberShared::new(None), NumberShared::new(None));
    commit(&mut engine, &mut first, 1);
    let SharedStep::Behind { revision, head, fate, payload } = commit(&mut engine, &mut second, 2) else {
        panic!("the other server was first")
    };
    assert_eq!((fate, payload), (BatchFate::NotApplied, Some(2)));
    assert_eq!(second.begin(batch(2)), Err(BeginError::Behind));
    second.follow(revision, head.unwrap()).unwrap();
    assert!(matches!(commit(&mut engine, &mut second, 2), SharedStep::Committed { number: 2, .. }));
}

#[test]
fn a_replica_never_goes_back() {
    let mut engine = ReferenceEngine::default();
    let mut writer = NumberShared::new(None);
    commit(&mut engine, &mut writer, 1);
    let (revision, old) = (engine.revision, engine.head().clone());
    commit(&mut engine, &mut writer, 2);
    writer.follow(revision, old).unwrap();
    assert_eq!((writer.revision(), writer.head()), (engine.revision, Some(engine.head())));
}

#[test]
fn a_replica_does_not_move_under_a_transaction() {
    let mut engine = ReferenceEngine::default();
    let mut writer = NumberShared::new(None);
    commit(&mut engine, &mut writer, 1);
    writer.begin(batch(2)).unwrap();
    assert_eq!(writer.begin(batch(3)), Err(BeginError::InFlight));
    assert_eq!(writer.follow(Revision(99), engine.head().clone()), Err(BeginError::InFlight));
    assert_eq!(writer.answer(Answer::Rejected), Ok(SharedStep::Rejected { payload: Some(2) }));
    assert_eq!(writer.answer(Answer::NoAnswer), Err(NothingInFlight));
}

#[derive(Clone, Copy, Debug)]
enum SharedHistoryStep {
    Work(usize),
    Repeat(usize),
    Execute(usize),
    ExecuteSilently(usize),
    Lose(usize),
}

fn steps() -> impl Strategy<Value = SharedHistoryStep> {
    prop_oneof![
        4 => (0..3_usize).prop_map(SharedHistoryStep::Work),
        3 => (0..3_usize).prop_map(SharedHistoryStep::Repeat),
        5 => (0..6_usize).prop_map(SharedHistoryStep::Execute),
        3 => (0..6_usize).prop_map(SharedHistoryStep::ExecuteSilently),
        1 => (0..6_usize).prop_map(SharedHistoryStep::Lose),
    ]
}

/// Each server wants to add its own numbers, once each.
struct Replica {
    writer: NumberShared,
    next: u32,
    attempts: u32,
}

struct Replicas {
    engine: ReferenceEngine,
    replicas: [Replica; 3],
    copies: Vec<(usize, Transaction<(), u32>)>,
}

impl Replicas {
    fn new() -> Self {
        let replica = |next| Replica { writer: NumberShared::new(None), next, attempts: 0 };
        let replicas = [replica(100), replica(200), replica(300)];
        Self { engine: ReferenceEngine::default(), replicas, copies: Vec::new() }
    }

    fn happen(&mut self, step: SharedHistoryStep) {
        match step {
            SharedHistoryStep::Work(server) => self.work(server),
            SharedHistoryStep::Repeat(server) => {
                let Some(transaction) = self.replicas[server].writer.in_flight().cloned() else { return };
                self.answer(server, &transaction, Answer::NoAnswer);
                self.copies.push((server, transaction));
            }
            SharedHistoryStep::Execute(copy) => {
                if let Some((server, transaction, answer)) = self.execute(copy) {
                    self.answer(server, &transaction, answer);
                }
            }
            SharedHistoryStep::ExecuteSilently(copy) => drop(self.execute(copy)),
            SharedHistoryStep::Lose(copy) if copy < self.copies.len() => drop(self.copies.remove(copy)),
            SharedHistoryStep::Lose(_) => {}
        }
    }

    fn work(&mut self, server: usize) {
        let replica = &mut self.replicas[server];
        replica.attempts += 1;
        let mut commit = batch(replica.next);
        commit.batch = id(u32::try_from(server).unwrap() * 1_000 + replica.attempts);
        if let Ok(transaction) = replica.writer.begin(commit) {
            self.copies.push((server, transaction.clone()));
        }
    }

    fn execute(&mut self, copy: usize) -> Option<(usize, Transaction<(), u32>, Answer<()>)> {
        if copy >= self.copies.len() {
            return None;
        }
        let (server, transaction) = self.copies.remove(copy);
        let answer = self.engine.execute(&transaction);
        Some((server, transaction, answer))
    }

    fn answer(&mut self, server: usize, transaction: &Transaction<(), u32>, answer: Answer<()>) {
        let replica = &mut self.replicas[server];
        if replica.writer.in_flight() != Some(transaction) {
            return;
        }
        match replica.writer.answer(answer).expect("a transaction is in flight") {
            SharedStep::Committed { .. } => replica.next += 1,
            SharedStep::Repeat | SharedStep::Rejected { .. } => {}
            SharedStep::Behind { revision, head, fate, .. } => {
                let log = &self.engine.log;
                let was_applied = match fate {
                    BatchFate::NotApplied => false,
                    BatchFate::Unknown { number, batch } => {
                        log.get(&number).map(|(id, _)| *id) == Some(batch)
                    }
                };
                replica.next += u32::from(was_applied);
                replica.writer.follow(revision, head.expect("the stream exists")).unwrap();
            }
        }
    }
}

proptest! {
    /// A server repeats its decision when it is behind, and nothing is decided twice.
    #[test]
    fn every_decision_is_in_the_log_once(history in prop::collection::vec(steps(), 0..150)) {
        let mut realm = Replicas::new();
        history.into_iter().for_each(|step| realm.happen(step));
        let numbers: Vec<_> = realm.engine.log.values().map(|(_, number)| *number).collect();
        let unique: BTreeSet<_> = numbers.iter().copied().collect();
        prop_assert_eq!(unique.len(), numbers.len());
        for (replica, first) in realm.replicas.iter().zip([100, 200, 300]) {
            let confirmed = first..replica.next;
            prop_assert!(confirmed.into_iter().all(|number| unique.contains(&number)));
        }
        prop_assert!(realm.engine.head.as_ref().is_none_or(|head| head.clock == at(0)));
    }
}
