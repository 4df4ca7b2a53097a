//! The engine, the network in front of it, and the log of one stream.

use forewarn_ownership::{Answer, BatchId, Head, OwnerRecord, Revision, Transaction};

use super::application::{Batch, Record};

pub(super) type StreamTransaction = Transaction<(), Batch>;

/// The key that a transaction compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ComparedKey {
    Head,
    /// Omission: a transaction compares the owner, which does not change between two commits of one owner.
    Owner,
}

/// One stream in the engine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Engine {
    pub(super) revision: Revision,
    pub(super) head: Head<()>,
    pub(super) owner: OwnerRecord,
    pub(super) log: Vec<(BatchId, Batch)>,
    /// The ids of all batches that were written to the log, in order.
    pub(super) applied: Vec<BatchId>,
    pub(super) broken: EngineFaults,
}

/// Violations that the engine has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct EngineFaults {
    pub(super) term_went_back: bool,
    pub(super) number_skipped: bool,
}

impl Engine {
    /// The engine after the creation of a stream.
    pub(super) fn created(creation: &StreamTransaction) -> Self {
        Self {
            revision: Revision(1),
            head: creation.head.clone(),
            owner: creation.owner.clone().expect("a creation names the owner"),
            log: Vec::new(),
            applied: Vec::new(),
            broken: EngineFaults::default(),
        }
    }

    pub(super) fn execute(&mut self, transaction: &StreamTransaction, compared: ComparedKey) -> Answer<()> {
        if !self.matches(transaction, compared) {
            return Answer::Conflict { revision: self.revision, head: Some(self.head.clone()) };
        }
        self.apply(transaction);
        Answer::Applied { revision: self.revision }
    }

    /// True if the comparison of a transaction succeeds.
    pub(super) fn matches(&self, transaction: &StreamTransaction, compared: ComparedKey) -> bool {
        match (compared, &transaction.owner) {
            (ComparedKey::Head, _) => transaction.expected == self.revision,
            (ComparedKey::Owner, None) => transaction.head.term == self.owner.term,
            (ComparedKey::Owner, Some(owner)) => owner.term == self.owner.term.next(),
        }
    }

    fn apply(&mut self, transaction: &StreamTransaction) {
        let Transaction { owner, head, payload, .. } = transaction;
        self.broken.term_went_back |= head.term < self.head.term;
        if let Some(batch) = payload {
            self.write_log(head, *batch);
        }
        self.revision = Revision(self.revision.0 + 1);
        self.head = head.clone();
        if let Some(owner) = owner {
            self.owner = owner.clone();
        }
    }

    fn write_log(&mut self, head: &Head<()>, batch: Batch) {
        self.applied.push(head.batch);
        let place = usize::try_from(head.number - 1).expect("a short log");
        self.broken.number_skipped |= place != self.log.len();
        self.log.truncate(place);
        self.log.push((head.batch, batch));
    }

    pub(super) fn count(&self, wanted: fn(&Record) -> bool) -> usize {
        self.log.iter().filter(|(_, batch)| wanted(&batch.record)).count()
    }

    pub(super) fn applied_twice(&self) -> bool {
        let repeated = |(place, batch): (usize, &BatchId)| self.applied[..place].contains(batch);
        self.applied.iter().enumerate().any(repeated)
    }
}

/// A copy of a transaction on its way to the engine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SentCopy {
    pub(super) from: usize,
    pub(super) transaction: StreamTransaction,
}

/// Copies on their way, in an order that says nothing about their arrival.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Network(Vec<SentCopy>);

impl Network {
    pub(super) fn copies(&self) -> &[SentCopy] {
        &self.0
    }

    /// Places of copies that differ.
    pub(super) fn distinct(&self) -> impl Iterator<Item = usize> {
        (0..self.0.len()).filter(|place| *place == 0 || self.0[*place] != self.0[place - 1])
    }

    pub(super) fn send(&mut self, from: usize, transaction: StreamTransaction) {
        let key = |copy: &SentCopy| (copy.from, copy.transaction.head.batch);
        let place = self.0.partition_point(|copy| key(copy) < (from, transaction.head.batch));
        self.0.insert(place, SentCopy { from, transaction });
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&SentCopy) -> bool) {
        self.0.retain(keep);
    }

    pub(super) fn take(&mut self, place: usize) -> SentCopy {
        self.0.remove(place)
    }
}
