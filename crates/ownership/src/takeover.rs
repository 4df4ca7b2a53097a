//! Takeover of a stream: a change of the head that fences the former owner.
//!
//! Only after [`TakeoverStep::Won`] does the server read snapshot and log: no transaction of a former owner can change
//! them any more.

use crate::clock::HeadClock;
use crate::ids::{BatchId, Revision, ServerName, Term};
use crate::in_flight::{InFlight, Outcome, next_head};
use crate::transaction::{Answer, BeginError, Commit, Head, OwnerRecord, Transaction};
use crate::writer::StreamWriter;

/// An attempt of a server to become the owner of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Takeover<D, P> {
    server: ServerName,
    in_flight: InFlight<D, P>,
}

/// The result of an answer for a takeover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakeoverStep<D, P> {
    /// The server owns the stream.
    Won(StreamWriter<D, P>),
    /// The outcome is unknown: send the same transaction again.
    Repeat(Takeover<D, P>),
    /// Another server has written the head. Begin again with this head if a takeover is still wanted.
    Lost {
        /// The revision of the head.
        revision: Revision,
        /// The head.
        head: Option<Head<D>>,
    },
    /// The engine refused the takeover. Nothing has changed.
    Rejected,
}

impl<D, P> Takeover<D, P> {
    /// Begins the takeover of a stream whose head was read. `clock` is the clock with which this server continues.
    ///
    /// # Errors
    /// The clock is earlier than the one of the head, or the batch id is the one of the head.
    pub fn new(
        server: ServerName,
        revision: Revision,
        head: &Head<D>,
        batch: BatchId,
        clock: HeadClock,
    ) -> Result<Self, BeginError>
    where
        D: Clone,
    {
        let commit = Commit { batch, payload: None, details: head.details.clone(), clock };
        let (mut head, payload) = next_head(head, commit)?;
        head.term = head.term.next();
        Ok(Self::of(server, revision, head, payload))
    }

    /// Begins the creation of a stream that does not exist, with this server as its owner.
    pub fn creation(server: ServerName, batch: BatchId, details: D, clock: HeadClock) -> Self {
        let head = Head { number: 0, term: Term::default().next(), batch, clock, details };
        Self::of(server, Revision::ABSENT, head, None)
    }

    fn of(server: ServerName, expected: Revision, head: Head<D>, payload: Option<P>) -> Self {
        let owner = Some(OwnerRecord { server: server.clone(), term: head.term });
        Self { server, in_flight: InFlight::new(Transaction { expected, owner, head, payload }) }
    }

    /// The transaction to send, and to send again after [`TakeoverStep::Repeat`].
    pub fn transaction(&self) -> &Transaction<D, P> {
        self.in_flight.transaction()
    }

    /// Takes an answer to the transaction.
    pub fn answer(self, answer: Answer<D>) -> TakeoverStep<D, P> {
        let Self { server, in_flight } = self;
        match in_flight.settle(answer) {
            Outcome::Applied { revision, transaction } => {
                TakeoverStep::Won(StreamWriter::new(server, revision, transaction.head))
            }
            Outcome::Open(in_flight) => TakeoverStep::Repeat(Self { server, in_flight }),
            Outcome::Foreign { revision, head, .. } => TakeoverStep::Lost { revision, head },
            Outcome::Rejected { .. } => TakeoverStep::Rejected,
        }
    }
}
