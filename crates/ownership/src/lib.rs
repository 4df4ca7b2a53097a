//! The decisions of a server about the streams of a realm: several servers on one engine.
//!
//! A *realm* is everything that several servers share in one engine. Each cluster is a *stream*: a log, and a *head*
//! that records its position. The *owner* of a stream is the server that drives it; the *term* counts its owners. The
//! *shared stream* has no owner.
//!
//! Safety depends on one comparison for each commit, never on a lease or a clock: see [`Transaction`]. Heartbeats only
//! determine how soon another server tries to take over. This crate decides and does nothing else: answers of the
//! engine, heartbeats and the time are arguments, transactions are results. No I/O, no clock, no randomness.
//!
//! ```
//! use forewarn_ownership::*;
//!
//! let server = ServerName::new("a")?;
//! let clock = StreamClock::new(None, Uptime::from_millis(0));
//! let takeover = Takeover::creation(server, BatchId([1; 16]), "details", clock.head_clock(Uptime::from_millis(5)));
//! // The engine applies `takeover.transaction()`, and answers with the new revision of the head.
//! let TakeoverStep::Won(mut writer) = takeover.answer(Answer::Applied { revision: Revision(7) }) else { panic!() };
//!
//! let clock = clock.head_clock(Uptime::from_millis(9));
//! let commit = Commit { batch: BatchId([2; 16]), payload: Some("records"), details: "details", clock };
//! let transaction = writer.begin(commit)?.clone();
//! assert_eq!(writer.answer(Answer::NoAnswer)?, WriterStep::Repeat);
//! // The transaction was applied, but its answer was lost. The head that comes back carries its batch id.
//! let head = Some(transaction.head);
//! let step = writer.answer(Answer::Conflict { revision: Revision(8), head })?;
//! assert_eq!(step, WriterStep::Committed { number: 1, revision: Revision(8), payload: Some("records") });
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

#![warn(missing_docs)]

mod assignment;
mod clock;
mod ids;
mod in_flight;
mod peers;
mod shared_writer;
mod suspicion;
mod takeover;
mod transaction;
mod wall_clock;
mod writer;

pub use assignment::{
    ATTEMPT_INTERVAL_MILLIS, Attempt, AttemptReason, ClusterMove, ClusterStanding, attempts, balance_moves,
    drain_moves, order, return_moves,
};
pub use clock::{ClockAnchor, HeadClock, REFRESH_MILLIS, StreamClock, StreamTimers, successor_clock};
pub use ids::{BatchId, BootId, Revision, ServerName, Term, Uptime};
pub use peers::{
    ENGINE_SILENCE_MILLIS, HEARTBEAT_MILLIS, HeartbeatAnswer, Peers, SILENCE_MILLIS, ServerDuty,
};
pub use shared_writer::{SharedStep, SharedWriter};
pub use suspicion::{RETURN_MILLIS, Suspicion, SuspicionReason};
pub use takeover::{Takeover, TakeoverStep};
pub use transaction::{
    Answer, BatchFate, BeginError, Commit, Head, NothingInFlight, OwnerRecord, Transaction,
};
pub use wall_clock::{ClockVerdict, WALL_DIFFERENCE_MILLIS, WallReading, verdict};
pub use writer::{NotTheOwner, StreamWriter, WriterStep};
