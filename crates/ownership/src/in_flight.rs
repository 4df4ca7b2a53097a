//! A transaction in flight: sent at least once, with an outcome that is not known yet.

use crate::ids::Revision;
use crate::transaction::{Answer, BatchFate, BeginError, Commit, Head, Transaction};

/// The answers to a transaction so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Sends {
    /// No earlier send is without an answer.
    First,
    /// A send had no answer: it may have been applied, or may be applied later.
    Unanswered,
}

/// A transaction in flight.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct InFlight<D, P> {
    transaction: Transaction<D, P>,
    sends: Sends,
}

/// The outcome of a transaction after an answer.
pub(crate) enum Outcome<D, P> {
    Applied { revision: Revision, transaction: Transaction<D, P> },
    Open(InFlight<D, P>),
    Foreign { revision: Revision, head: Option<Head<D>>, fate: BatchFate, payload: Option<P> },
    Rejected { payload: Option<P> },
}

impl<D, P> InFlight<D, P> {
    pub(crate) fn new(transaction: Transaction<D, P>) -> Self {
        Self { transaction, sends: Sends::First }
    }

    pub(crate) fn transaction(&self) -> &Transaction<D, P> {
        &self.transaction
    }

    pub(crate) fn settle(self, answer: Answer<D>) -> Outcome<D, P> {
        match answer {
            Answer::Applied { revision } => Outcome::Applied { revision, transaction: self.transaction },
            Answer::Conflict { revision, head } => self.compare(revision, head),
            Answer::NoAnswer => Outcome::Open(Self { sends: Sends::Unanswered, ..self }),
            Answer::Rejected => match self.sends {
                Sends::First => Outcome::Rejected { payload: self.transaction.payload },
                // Only this send was refused. An earlier one may have been applied.
                Sends::Unanswered => Outcome::Open(self),
            },
        }
    }

    /// The head carries the id of the transaction that wrote it: this one, sent before, or a foreign one.
    fn compare(self, revision: Revision, head: Option<Head<D>>) -> Outcome<D, P> {
        let Self { transaction, sends } = self;
        let (batch, number) = (transaction.head.batch, transaction.head.number);
        if head.as_ref().is_some_and(|head| head.batch == batch) {
            return Outcome::Applied { revision, transaction };
        }
        let fate = match sends {
            Sends::First => BatchFate::NotApplied,
            Sends::Unanswered => BatchFate::Unknown { number, batch },
        };
        Outcome::Foreign { revision, head, fate, payload: transaction.payload }
    }
}

/// The head that a commit writes after `known`.
pub(crate) fn next_head<D, P>(
    known: &Head<D>,
    commit: Commit<D, P>,
) -> Result<(Head<D>, Option<P>), BeginError> {
    let Commit { batch, payload, details, clock } = commit;
    if batch == known.batch {
        return Err(BeginError::UsedBatchId);
    }
    if clock.steady < known.clock.steady {
        return Err(BeginError::EarlierClock);
    }
    let number = known.number + u64::from(payload.is_some());
    Ok((Head { number, term: known.term, batch, clock, details }, payload))
}
