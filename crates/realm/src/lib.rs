//! The streams of a realm on an engine that several servers share.
//!
//! Each server keeps an ordinary journal in a directory as a replica; the engine is the authority. The owner of a
//! stream commits a batch to the engine first ([`OwnedStream`]), then appends it to its journal and publishes. Every
//! other server follows all streams ([`Follower`]) and appends each batch to its own journal, in order. The shared
//! stream has no owner ([`SharedStream`]).
//!
//! ```text
//!   OwnedStream::commit ──▶ if head is unchanged then put log, put head ──▶ engine ──watch──▶ Follower::next
//! ```
//!
//! ```
//! use forewarn_control::{ClusterId, Record, Stream};
//! use forewarn_realm::*;
//! use forewarn_types::{Now, Timestamp};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let engine = Engine::Simulated(SimulatedEngine::new());
//! let realm = Realm::new(engine, Keyspace::new("/forewarn/1/")?, CallTimes::default());
//! let (stream, server) = (Stream::Cluster(ClusterId(3)), ServerName::new("a")?);
//! let time = StreamTime { clock: HeadClock::default(), wall: Timestamp::from_millis(0) };
//! let new = NewStream { state: None, position: StreamPosition::default(), time, format: 1 };
//! let TakeoverOutcome::Owned(mut owned) = OwnedStream::create(&realm, stream, &server, new).await? else {
//!     panic!("it exists");
//! };
//! let records = vec![Record::clock_in(Now::at_millis(5), stream)];
//! let batch = NewBatch { records, entries: Vec::new(), mode: AuditMode::Append, time };
//! assert!(matches!(owned.commit(&batch).await?, CommitOutcome::Committed { number: 1, .. }));
//! # Ok(())
//! # }
//! ```
//!
//! Safety depends on one comparison for each commit (see `forewarn_ownership`), never on a lease or a clock. No HTTP, no
//! policy of membership, no timers of takeover: these are the server's.

mod acceptance;
mod batch;
mod commit;
mod engine;
mod entry_tail;
mod error;
mod follow;
mod head;
mod heads;
mod keys;
mod links;
mod locate;
mod owned_stream;
mod pages;
mod read;
mod realm;
mod realm_key;
mod records;
mod seal;
mod server_name;
mod shared_stream;
mod snapshot;
mod takeover;
mod transfer;
mod trim;

pub use forewarn_ownership::{
    BatchId, BootId, ClockAnchor, HeadClock, OwnerRecord, Revision, ServerName, Term,
};

pub use acceptance::{BATCH_NUMBER_STEP, RestoreAcceptance, TERM_STEP};
pub use batch::{AuditMode, BATCH_BYTES_MAX, Batch, BatchError, PART_BYTES_MAX};
pub use commit::{CommitFate, NewBatch};
pub use engine::*;
pub use error::{CommitError, RealmError};
pub use follow::{COMPARISON_INTERVAL, Follower, RealmChange};
pub use head::{HeadDetails, KnownHead, SnapshotRef, StreamHead, StreamPosition, StreamTime, position_of};
pub use heads::RealmHeads;
pub use keys::{BadPrefix, Keyspace, PartKey, RealmKey, SnapshotId};
pub use owned_stream::{CommitOutcome, MoveOutcome, OwnedStream};
pub use read::{CONTENT_BYTES_MAX, ReadFrom, StreamContent, StreamStart};
pub use realm::{CallTimes, Realm, SERVER_LEASE_SECONDS, STREAMS_MAX};
pub use realm_key::{EngineMemory, Joined, RestoreEvidence, SECRET_BYTES_MAX};
pub use records::{
    ArchivedNumbers, REALM_SPEED_MAX, RealmClock, RealmCompleteness, RealmHistory, RealmRecord, ServerRecord,
};
pub use server_name::AnnouncementOutcome;
pub use shared_stream::{SharedCreation, SharedOutcome, SharedStream};
pub use snapshot::{SnapshotProgress, SnapshotWriting};
pub use takeover::{NewStream, TakeoverOutcome};
pub use transfer::{CancelOutcome, ImportOutcome, RealmContent};
pub use trim::TrimProgress;
