//! Commits of the shared stream, which has no owner: any server whose replica is current may commit.
//!
//! A foreign head means that the replica is behind, not that the server is fenced: it reads the missing batches and
//! decides again.

use crate::ids::{Revision, Term};
use crate::in_flight::{InFlight, Outcome, next_head};
use crate::transaction::{Answer, BatchFate, BeginError, Commit, Head, NothingInFlight, Transaction};

/// The write access of a server to the shared stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SharedWriter<D, P> {
    revision: Revision,
    head: Option<Head<D>>,
    /// The revision that the replica must reach before the next commit.
    needed: Revision,
    in_flight: Option<InFlight<D, P>>,
}

/// The result of an answer for a writer of the shared stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SharedStep<D, P> {
    /// The commit is durable.
    Committed {
        /// The number of the last batch in the log: this one, if the commit had a payload.
        number: u64,
        /// The new revision of the head.
        revision: Revision,
        /// The payload of the commit.
        payload: Option<P>,
    },
    /// The outcome is unknown: send the same transaction again.
    Repeat,
    /// Another server has committed: read the missing batches, call [`SharedWriter::follow`], and decide again, unless
    /// the fate says that the missing batches contain this one.
    Behind {
        /// The revision of the head.
        revision: Revision,
        /// The head.
        head: Option<Head<D>>,
        /// The fate of the commit.
        fate: BatchFate,
        /// The payload of the commit.
        payload: Option<P>,
    },
    /// The engine refused the commit. Nothing has changed.
    Rejected {
        /// The payload of the commit.
        payload: Option<P>,
    },
}

impl<D, P> SharedWriter<D, P> {
    /// The writer of a server whose replica has everything up to that head. None: the stream does not exist.
    pub fn new(known: Option<(Revision, Head<D>)>) -> Self {
        let (revision, head) = match known {
            Some((revision, head)) => (revision, Some(head)),
            None => (Revision::ABSENT, None),
        };
        Self { revision, head, needed: revision, in_flight: None }
    }

    /// The head that the replica has reached.
    pub fn head(&self) -> Option<&Head<D>> {
        self.head.as_ref()
    }

    /// The revision of that head.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The transaction to send, and to send again after [`SharedStep::Repeat`].
    pub fn in_flight(&self) -> Option<&Transaction<D, P>> {
        self.in_flight.as_ref().map(InFlight::transaction)
    }

    /// Takes note that the replica has applied everything up to a head. An older head than the known one is ignored.
    ///
    /// # Errors
    /// A transaction is in flight: its outcome is decided first.
    pub fn follow(&mut self, revision: Revision, head: Head<D>) -> Result<(), BeginError> {
        if self.in_flight.is_some() {
            return Err(BeginError::InFlight);
        }
        if revision > self.revision {
            (self.revision, self.head) = (revision, Some(head));
        }
        Ok(())
    }

    /// Begins a commit: a batch, or a change of the head alone.
    ///
    /// # Errors
    /// A transaction is in flight, the replica is behind, or the commit does not follow the head.
    pub fn begin(&mut self, commit: Commit<D, P>) -> Result<&Transaction<D, P>, BeginError> {
        if self.in_flight.is_some() {
            return Err(BeginError::InFlight);
        }
        if self.revision < self.needed {
            return Err(BeginError::Behind);
        }
        let (head, payload) = match &self.head {
            Some(known) => next_head(known, commit)?,
            None => first_head(commit),
        };
        let transaction = Transaction { expected: self.revision, owner: None, head, payload };
        Ok(self.in_flight.insert(InFlight::new(transaction)).transaction())
    }

    /// Takes an answer to the transaction in flight; never one to an earlier transaction.
    ///
    /// # Errors
    /// No transaction is in flight.
    pub fn answer(&mut self, answer: Answer<D>) -> Result<SharedStep<D, P>, NothingInFlight> {
        let in_flight = self.in_flight.take().ok_or(NothingInFlight)?;
        Ok(self.settle(in_flight.settle(answer)))
    }

    fn settle(&mut self, outcome: Outcome<D, P>) -> SharedStep<D, P> {
        match outcome {
            Outcome::Applied { revision, transaction } => {
                let number = transaction.head.number;
                (self.revision, self.head) = (revision, Some(transaction.head));
                SharedStep::Committed { number, revision, payload: transaction.payload }
            }
            Outcome::Open(in_flight) => {
                self.in_flight = Some(in_flight);
                SharedStep::Repeat
            }
            Outcome::Foreign { revision, head, fate, payload } => {
                self.needed = revision;
                SharedStep::Behind { revision, head, fate, payload }
            }
            Outcome::Rejected { payload } => SharedStep::Rejected { payload },
        }
    }
}

fn first_head<D, P>(commit: Commit<D, P>) -> (Head<D>, Option<P>) {
    let Commit { batch, payload, details, clock } = commit;
    let number = u64::from(payload.is_some());
    (Head { number, term: Term::default(), batch, clock, details }, payload)
}
