//! Random histories of two servers that commit, move and take over, with copies that are lost, late and repeated.

use std::collections::BTreeMap;

use forewarn_ownership::{
    Answer, BatchFate, BatchId, Commit, StreamWriter, Takeover, TakeoverStep, Term, Transaction, WriterStep,
};
use proptest::prelude::*;

use crate::reference_engine::{NumberWriter, ReferenceEngine, at, id, name};

#[derive(Clone, Copy, Debug)]
enum HistoryStep {
    Commit(usize),
    TakeOver(usize),
    Move(usize),
    /// The server to which the stream was moved reads its keys.
    Accept(usize),
    Repeat(usize),
    Execute(usize),
    ExecuteSilently(usize),
    Lose(usize),
}

fn steps() -> impl Strategy<Value = HistoryStep> {
    let server = 0..2_usize;
    prop_oneof![
        5 => server.clone().prop_map(HistoryStep::Commit),
        2 => server.clone().prop_map(HistoryStep::TakeOver),
        1 => server.clone().prop_map(HistoryStep::Move),
        2 => server.clone().prop_map(HistoryStep::Accept),
        3 => server.prop_map(HistoryStep::Repeat),
        6 => (0..8_usize).prop_map(HistoryStep::Execute),
        2 => (0..8_usize).prop_map(HistoryStep::ExecuteSilently),
        1 => (0..8_usize).prop_map(HistoryStep::Lose),
    ]
}

/// The part of a server in the history.
enum Holding {
    Nothing,
    TakingOver(Takeover<(), u32>),
    Writer(NumberWriter),
}

struct Servers {
    engine: ReferenceEngine,
    holdings: [Holding; 2],
    copies: Vec<(usize, Transaction<(), u32>)>,
    begun: u32,
    /// Batches that a server has answered, by number.
    answered: BTreeMap<u64, BatchId>,
    /// Batches of fenced servers, with their fate.
    fates: Vec<(BatchId, BatchFate)>,
    terms: Vec<Term>,
}

impl Servers {
    fn new() -> Self {
        let (engine, writer) = ReferenceEngine::with_owner();
        let holdings = [Holding::Writer(writer), Holding::Nothing];
        let terms = vec![Term(1)];
        let (copies, answered, fates) = (Vec::new(), BTreeMap::new(), Vec::new());
        Self { engine, holdings, copies, begun: 0, answered, fates, terms }
    }

    fn happen(&mut self, step: HistoryStep) {
        match step {
            HistoryStep::Commit(server) => self.commit(server),
            HistoryStep::TakeOver(server) => self.take_over(server),
            HistoryStep::Move(server) => self.begin_move(server),
            HistoryStep::Accept(server) => self.accept(server),
            HistoryStep::Repeat(server) => self.repeat(server),
            HistoryStep::Execute(copy) => {
                if let Some((server, batch, answer)) = self.execute(copy) {
                    self.answer(server, batch, answer);
                }
            }
            HistoryStep::ExecuteSilently(copy) => drop(self.execute(copy)),
            HistoryStep::Lose(copy) if copy < self.copies.len() => drop(self.copies.remove(copy)),
            HistoryStep::Lose(_) => {}
        }
    }

    fn commit(&mut self, server: usize) {
        self.begun += 1;
        let batch = self.begun;
        let Holding::Writer(writer) = &mut self.holdings[server] else { return };
        let commit = Commit { batch: id(batch), payload: Some(batch), details: (), clock: at(0) };
        if let Ok(transaction) = writer.begin(commit) {
            self.copies.push((server, transaction.clone()));
        }
    }

    fn begin_move(&mut self, server: usize) {
        self.begun += 1;
        let Holding::Writer(writer) = &mut self.holdings[server] else { return };
        let to = name(["b", "a"][server]);
        if let Ok(transaction) = writer.begin_move(to, id(self.begun), at(0)) {
            self.copies.push((server, transaction.clone()));
        }
    }

    fn accept(&mut self, server: usize) {
        let (own, engine) = (name(["a", "b"][server]), &self.engine);
        let knows = match &self.holdings[server] {
            Holding::Nothing => false,
            Holding::TakingOver(_) => true,
            Holding::Writer(writer) => Some(writer.owner()) == engine.owner,
        };
        let read =
            StreamWriter::after_move(own, engine.owner.as_ref(), engine.revision, engine.head().clone());
        if let (false, Ok(writer)) = (knows, read) {
            self.holdings[server] = Holding::Writer(writer);
        }
    }

    /// A server takes over at any time, whatever it holds; a transaction in flight is then of no interest to it.
    fn take_over(&mut self, server: usize) {
        self.begun += 1;
        let (own, batch) = (name(["a", "b"][server]), id(self.begun));
        let takeover = Takeover::new(own, self.engine.revision, self.engine.head(), batch, at(0));
        let takeover = takeover.expect("the clock stands");
        self.copies.push((server, takeover.transaction().clone()));
        self.holdings[server] = Holding::TakingOver(takeover);
    }

    fn in_flight(&self, server: usize) -> Option<&Transaction<(), u32>> {
        match &self.holdings[server] {
            Holding::Nothing => None,
            Holding::TakingOver(takeover) => Some(takeover.transaction()),
            Holding::Writer(writer) => writer.in_flight(),
        }
    }

    fn repeat(&mut self, server: usize) {
        let Some(transaction) = self.in_flight(server).cloned() else { return };
        self.answer(server, transaction.head.batch, Answer::NoAnswer);
        self.copies.push((server, transaction));
    }

    fn execute(&mut self, copy: usize) -> Option<(usize, BatchId, Answer<()>)> {
        if copy >= self.copies.len() {
            return None;
        }
        let (server, transaction) = self.copies.remove(copy);
        let answer = self.engine.execute(&transaction);
        self.terms.push(self.engine.head().term);
        Some((server, transaction.head.batch, answer))
    }

    fn answer(&mut self, server: usize, batch: BatchId, answer: Answer<()>) {
        if self.in_flight(server).map(|transaction| transaction.head.batch) != Some(batch) {
            return;
        }
        match std::mem::replace(&mut self.holdings[server], Holding::Nothing) {
            Holding::Nothing => {}
            Holding::TakingOver(takeover) => {
                self.holdings[server] = match takeover.answer(answer) {
                    TakeoverStep::Won(writer) => Holding::Writer(writer),
                    TakeoverStep::Repeat(takeover) => Holding::TakingOver(takeover),
                    TakeoverStep::Lost { .. } | TakeoverStep::Rejected => Holding::Nothing,
                };
            }
            Holding::Writer(mut writer) => {
                let step = writer.answer(answer).expect("a transaction is in flight");
                self.holdings[server] = Holding::Writer(writer);
                self.note(batch, &step);
            }
        }
    }

    fn note(&mut self, batch: BatchId, step: &WriterStep<(), u32>) {
        match step {
            WriterStep::Committed { number, .. } => {
                assert_eq!(self.answered.insert(*number, batch), None, "a number is answered once");
            }
            WriterStep::Fenced { fate, payload: Some(_), .. } => self.fates.push((batch, *fate)),
            WriterStep::Fenced { payload: None, .. } | WriterStep::Moved { .. } => {}
            WriterStep::Repeat | WriterStep::Rejected { .. } => {}
        }
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let log = &self.engine.log;
        for (number, batch) in &self.answered {
            prop_assert_eq!(log.get(number).map(|(batch, _)| batch), Some(batch));
        }
        prop_assert!(log.keys().copied().eq(1..=self.engine.head().number), "the log has no gap");
        let mut batches: Vec<_> = log.values().map(|(batch, _)| *batch).collect();
        batches.sort_unstable();
        batches.dedup();
        prop_assert_eq!(batches.len(), log.len(), "a batch is in the log once");
        prop_assert!(self.terms.is_sorted());
        for (batch, fate) in &self.fates {
            let is_there = log.values().any(|(there, _)| there == batch);
            match fate {
                BatchFate::NotApplied => prop_assert!(!is_there),
                BatchFate::Unknown { number, batch } => {
                    prop_assert_eq!(is_there, log.get(number).is_some_and(|(there, _)| there == batch));
                }
            }
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn answered_batches_are_in_the_log_once(history in prop::collection::vec(steps(), 0..120)) {
        let mut servers = Servers::new();
        history.into_iter().for_each(|step| servers.happen(step));
        servers.check()?;
    }
}
