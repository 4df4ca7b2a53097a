//! Commits of the owner of a stream.
//!
//! ```text
//!   begin ──▶ in flight ──Applied, or Conflict with this batch id──▶ Committed
//!                │  ▲─────NoAnswer: the same transaction again
//!                ├────────Conflict with a foreign batch id────────▶ Fenced, for good
//!                └────────Rejected, if no send was left unanswered─▶ Rejected: nothing has changed
//! ```
//!
//! One transaction is in flight at a time. The owner publishes, answers and orders only what is `Committed`.

use crate::clock::HeadClock;
use crate::ids::{BatchId, Revision, ServerName};
use crate::in_flight::{InFlight, Outcome, next_head};
use crate::transaction::{
    Answer, BatchFate, BeginError, Commit, Head, NothingInFlight, OwnerRecord, Transaction,
};

/// The write access of a server to a stream that it owns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StreamWriter<D, P> {
    server: ServerName,
    revision: Revision,
    head: Head<D>,
    tenure: Tenure,
    in_flight: Option<InFlight<D, P>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Tenure {
    Current,
    Fenced,
}

/// The result of an answer for the owner of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriterStep<D, P> {
    /// The commit is durable. Only now it may be published and answered.
    Committed {
        /// The number of the last batch in the log: this one, if the commit had a payload.
        number: u64,
        /// The new revision of the head.
        revision: Revision,
        /// The payload of the commit.
        payload: Option<P>,
    },
    /// The stream belongs to the server of a move. This writer is fenced.
    Moved {
        /// The new owner.
        to: OwnerRecord,
        /// The new revision of the head.
        revision: Revision,
    },
    /// The outcome is unknown: send the same transaction again.
    Repeat,
    /// Another server has taken the stream over: drop its state and do nothing more. This writer is fenced.
    Fenced {
        /// The revision of the head.
        revision: Revision,
        /// The head that the other server wrote.
        head: Option<Head<D>>,
        /// The fate of the commit.
        fate: BatchFate,
        /// The payload of the commit.
        payload: Option<P>,
    },
    /// The engine refused the commit. Nothing has changed, and the writer is ready.
    Rejected {
        /// The payload of the commit.
        payload: Option<P>,
    },
}

/// The reason why a server does not continue a stream as its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the owner key does not name this server with the term of the head")]
pub struct NotTheOwner;

impl<D, P> StreamWriter<D, P> {
    /// The writer of a server that has just written the head.
    pub(crate) fn new(server: ServerName, revision: Revision, head: Head<D>) -> Self {
        Self { server, revision, head, tenure: Tenure::Current, in_flight: None }
    }

    /// The writer of the server to which the former owner has moved the stream, from keys read at one revision. A
    /// process that has just started must take over instead: a former process of the same name may have this term.
    ///
    /// # Errors
    /// The owner key names another server or another term than the head.
    pub fn after_move(
        server: ServerName,
        owner: Option<&OwnerRecord>,
        revision: Revision,
        head: Head<D>,
    ) -> Result<Self, NotTheOwner> {
        match owner {
            Some(owner) if owner.server == server && owner.term == head.term => {
                Ok(Self::new(server, revision, head))
            }
            Some(_) | None => Err(NotTheOwner),
        }
    }

    /// The last head that this server wrote as the owner, or began with.
    pub fn head(&self) -> &Head<D> {
        &self.head
    }

    /// The revision of that head.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The owner record of this server, also after it was fenced.
    pub fn owner(&self) -> OwnerRecord {
        OwnerRecord { server: self.server.clone(), term: self.head.term }
    }

    /// The transaction to send, and to send again after [`WriterStep::Repeat`].
    pub fn in_flight(&self) -> Option<&Transaction<D, P>> {
        self.in_flight.as_ref().map(InFlight::transaction)
    }

    /// Begins a commit: a batch, or a change of the head alone.
    ///
    /// # Errors
    /// A transaction is in flight, the server is fenced, or the commit does not follow the head.
    pub fn begin(&mut self, commit: Commit<D, P>) -> Result<&Transaction<D, P>, BeginError> {
        self.check_ready()?;
        let (head, payload) = next_head(&self.head, commit)?;
        Ok(self.send(Transaction { expected: self.revision, owner: None, head, payload }))
    }

    fn check_ready(&self) -> Result<(), BeginError> {
        match self.tenure {
            Tenure::Fenced => Err(BeginError::Fenced),
            Tenure::Current if self.in_flight.is_some() => Err(BeginError::InFlight),
            Tenure::Current => Ok(()),
        }
    }

    fn send(&mut self, transaction: Transaction<D, P>) -> &Transaction<D, P> {
        self.in_flight.insert(InFlight::new(transaction)).transaction()
    }

    /// Takes an answer to the transaction in flight; never one to an earlier transaction.
    ///
    /// # Errors
    /// No transaction is in flight.
    pub fn answer(&mut self, answer: Answer<D>) -> Result<WriterStep<D, P>, NothingInFlight> {
        let in_flight = self.in_flight.take().ok_or(NothingInFlight)?;
        Ok(self.settle(in_flight.settle(answer)))
    }

    fn settle(&mut self, outcome: Outcome<D, P>) -> WriterStep<D, P> {
        match outcome {
            Outcome::Applied { revision, transaction } => self.apply(revision, transaction),
            Outcome::Open(in_flight) => {
                self.in_flight = Some(in_flight);
                WriterStep::Repeat
            }
            Outcome::Foreign { revision, head, fate, payload } => {
                self.tenure = Tenure::Fenced;
                WriterStep::Fenced { revision, head, fate, payload }
            }
            Outcome::Rejected { payload } => WriterStep::Rejected { payload },
        }
    }

    fn apply(&mut self, revision: Revision, transaction: Transaction<D, P>) -> WriterStep<D, P> {
        let Transaction { owner, head, payload, .. } = transaction;
        let Some(to) = owner else {
            let number = head.number;
            (self.revision, self.head) = (revision, head);
            return WriterStep::Committed { number, revision, payload };
        };
        self.tenure = Tenure::Fenced;
        WriterStep::Moved { to, revision }
    }
}

impl<D: Clone, P> StreamWriter<D, P> {
    /// Begins a move of the stream to another server. Once it is applied, this writer is fenced by its own act.
    ///
    /// # Errors
    /// A transaction is in flight, the server is fenced, or the clock or the id does not follow the head.
    pub fn begin_move(
        &mut self,
        to: ServerName,
        batch: BatchId,
        clock: HeadClock,
    ) -> Result<&Transaction<D, P>, BeginError> {
        self.check_ready()?;
        let commit = Commit { batch, payload: None, details: self.head.details.clone(), clock };
        let (mut head, payload) = next_head(&self.head, commit)?;
        head.term = head.term.next();
        let owner = Some(OwnerRecord { server: to, term: head.term });
        Ok(self.send(Transaction { expected: self.revision, owner, head, payload }))
    }
}
