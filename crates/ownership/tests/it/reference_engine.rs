//! An engine in memory that does one thing after the other, and helpers for transactions.

use std::collections::BTreeMap;

use forewarn_ownership::{
    Answer, BatchId, Commit, Head, HeadClock, OwnerRecord, Revision, ServerName, StreamWriter, Takeover,
    TakeoverStep, Transaction,
};
use forewarn_types::Steady;

/// A commit of these tests: the contents of a batch are a number.
pub(crate) type NumberCommit = Commit<(), u32>;
pub(crate) type NumberWriter = StreamWriter<(), u32>;

/// One stream in an engine.
#[derive(Debug, Default)]
pub(crate) struct ReferenceEngine {
    pub(crate) revision: Revision,
    pub(crate) head: Option<Head<()>>,
    pub(crate) owner: Option<OwnerRecord>,
    pub(crate) log: BTreeMap<u64, (BatchId, u32)>,
}

impl ReferenceEngine {
    pub(crate) fn execute(&mut self, transaction: &Transaction<(), u32>) -> Answer<()> {
        if transaction.expected != self.revision {
            return Answer::Conflict { revision: self.revision, head: self.head.clone() };
        }
        let Transaction { owner, head, payload, .. } = transaction.clone();
        if let Some(payload) = payload {
            assert!(self.log.insert(head.number, (head.batch, payload)).is_none(), "a number is used once");
        }
        self.owner = owner.or(self.owner.take());
        self.head = Some(head);
        // Other keys of the engine change in between.
        self.revision = Revision(self.revision.0 + 3);
        Answer::Applied { revision: self.revision }
    }

    pub(crate) fn head(&self) -> &Head<()> {
        self.head.as_ref().expect("the stream exists")
    }

    /// A stream that server `a` has just created, and its writer.
    pub(crate) fn with_owner() -> (Self, NumberWriter) {
        let mut engine = Self::default();
        let creation = Takeover::creation(name("a"), id(0), (), at(0));
        let answer = engine.execute(creation.transaction());
        let TakeoverStep::Won(writer) = creation.answer(answer) else { panic!("no other server created it") };
        (engine, writer)
    }
}

pub(crate) fn name(text: &str) -> ServerName {
    ServerName::new(text).expect("a good name")
}

pub(crate) fn id(number: u32) -> BatchId {
    BatchId(u128::from(number).to_be_bytes())
}

pub(crate) fn at(millis: u64) -> HeadClock {
    HeadClock { steady: Steady::from_millis(millis), anchor: None }
}

/// A commit with a batch that contains its own number.
pub(crate) fn batch(number: u32) -> NumberCommit {
    Commit { batch: id(number), payload: Some(number), details: (), clock: at(0) }
}
