//! Follows a realm: batches of every stream in order and without gaps, and changes of heads, owners and servers.
//!
//! ```text
//!   watch ──events──▶ the next batch ──▶ queue ──▶ next()
//!                 ├─▶ a gap, or a batch in parts: repair by a read of the log
//!   compaction, every 30 s ──▶ comparison: a read of all heads, owners, servers
//! ```
//!
//! A watch is only the fast way: whatever it misses, the next comparison finds.

mod listing;
mod streams;
mod watching;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use forewarn_control::Stream;
use forewarn_ownership::{OwnerRecord, Revision, ServerName};
use tokio::time::{Instant, sleep_until};

use crate::batch::Batch;
use crate::engine::{EngineError, KeyEvent};
use crate::error::RealmError;
use crate::head::{KnownHead, StreamPosition};
use crate::keys::RealmKey;
use crate::read::ReadFailure;
use crate::realm::Realm;
use crate::records::{ArchivedNumbers, ServerRecord};

use listing::Listing;
use streams::FollowedStreams;
use watching::RealmWatches;

/// Interval between two comparisons.
pub const COMPARISON_INTERVAL: Duration = Duration::from_secs(30);

/// Follows all streams of a realm.
#[derive(Debug)]
pub struct Follower {
    realm: Realm,
    streams: FollowedStreams,
    listing: Listing,
    /// Changes that were found and not given out.
    queue: VecDeque<RealmChange>,
    /// None: a comparison comes first.
    watches: Option<RealmWatches>,
    compare_at: Instant,
    interval: Duration,
}

/// A change of a realm.
#[derive(Clone, Debug, PartialEq)]
pub enum RealmChange {
    /// The next batch of a stream.
    Batch(Box<Batch>),
    /// The head of a stream, after all batches up to it.
    Head { stream: Stream, head: KnownHead },
    /// The log no longer has the batches that are missing here: read the stream, then call [`Follower::resume`].
    Behind { stream: Stream, head: KnownHead },
    /// The stream was removed.
    Removed(Stream),
    /// The owner of a stream. None: it has none.
    Owner { stream: Stream, owner: Option<OwnerRecord> },
    /// The preferred owner of a stream.
    Preferred { stream: Stream, server: Option<ServerName> },
    /// A live server. None: it is gone.
    Server { name: ServerName, record: Option<ServerRecord> },
    /// Numbers of batches on the disk of a server. None: it was removed.
    Archived { name: ServerName, numbers: Option<ArchivedNumbers> },
    /// An operator's order to a server to give its streams away, or its end.
    Draining { name: ServerName, is_on: bool },
    /// Everything that the engine had at this revision was given out.
    Current(Revision),
}

impl Follower {
    /// Follows from these positions on. A stream without a position is followed from its first batch, if it was created
    /// without a state, and must be read otherwise ([`RealmChange::Behind`]).
    #[must_use]
    pub fn new(realm: &Realm, positions: BTreeMap<Stream, StreamPosition>) -> Self {
        Self {
            realm: realm.clone(),
            streams: FollowedStreams::new(positions),
            listing: Listing::default(),
            queue: VecDeque::new(),
            watches: None,
            compare_at: Instant::now(),
            interval: COMPARISON_INTERVAL,
        }
    }

    /// The same with another interval between comparisons.
    #[must_use]
    pub fn comparing_every(self, interval: Duration) -> Self {
        Self { interval, ..self }
    }

    /// Goes on with a stream after [`RealmChange::Behind`], from the position that was read.
    pub fn resume(&mut self, stream: Stream, position: StreamPosition) {
        self.streams.resume(stream, position);
    }

    /// Waits for the next change. May be dropped at any time without losing any; but if that happens often, it makes no
    /// progress.
    ///
    /// # Errors
    /// Fails if the engine is unavailable, or a value is damaged. It may be called again, and goes on where it was.
    pub async fn next(&mut self) -> Result<RealmChange, RealmError> {
        loop {
            if let Some(change) = self.queue.pop_front() {
                return Ok(change);
            }
            if self.watches.is_none() || Instant::now() >= self.compare_at {
                self.compare().await?;
            } else if let Some(stream) = self.streams.next_repair() {
                self.repair(stream).await?;
            } else {
                self.wait_for_events().await?;
            }
        }
    }

    /// Waits for events, or for the next comparison.
    async fn wait_for_events(&mut self) -> Result<(), RealmError> {
        let Some(watches) = &mut self.watches else { return Ok(()) };
        let events = tokio::select! {
            events = watches.next(&self.realm) => events,
            () = sleep_until(self.compare_at) => return Ok(()),
        };
        match events {
            Ok(events) => {
                // An error must not hide the other events.
                let taken: Vec<_> = events.iter().map(|event| self.take(event)).collect();
                taken.into_iter().collect()
            }
            Err(EngineError::Compacted(_)) => {
                self.watches = None;
                Ok(())
            }
            Err(
                error @ (EngineError::NotReached(_) | EngineError::Unknown(_) | EngineError::Refused { .. }),
            ) => Err(error.into()),
        }
    }

    fn take(&mut self, event: &KeyEvent) -> Result<(), RealmError> {
        let Some(key) = self.realm.keys().parse(event.key()) else { return Ok(()) };
        match key {
            RealmKey::Log(stream, number) => {
                if let KeyEvent::Put(entry) = event {
                    self.streams.take_log(stream, number, &entry.value, &mut self.queue)?;
                }
                Ok(())
            }
            RealmKey::Head(stream) => self.streams.take_head(stream, event, &mut self.queue),
            key @ (RealmKey::Owner(_)
            | RealmKey::Preferred(_)
            | RealmKey::Server(_)
            | RealmKey::Archived(_)
            | RealmKey::Draining(_)) => {
                self.listing.take(key, event, &mut self.queue);
                Ok(())
            }
            RealmKey::Realm | RealmKey::Secret(_) | RealmKey::Part(_) | RealmKey::Snapshot(..) => Ok(()),
        }
    }

    /// Reads the missing batches of a stream.
    async fn repair(&mut self, stream: Stream) -> Result<(), RealmError> {
        match streams::read_missing(&self.realm, stream, self.streams.position(stream)).await {
            Ok(found) => self.streams.repaired(stream, found, &mut self.queue),
            // The next attempt reads a newer revision.
            Err(ReadFailure::Compacted) => Ok(()),
            Err(ReadFailure::Realm(error)) => Err(error),
        }
    }

    /// Reads all heads, owners, servers and archives, and queues the differences.
    async fn compare(&mut self) -> Result<(), RealmError> {
        let found = listing::read(&self.realm).await?;
        let revision = found.revision;
        self.streams.compare(found.heads, revision, &mut self.queue)?;
        self.listing.compare(found.others, revision, &mut self.queue);
        let watches = || RealmWatches::new(&self.realm, Revision(revision.0 + 1));
        self.watches.get_or_insert_with(watches);
        self.streams.current_at(revision, &mut self.queue);
        self.compare_at = Instant::now() + self.interval;
        Ok(())
    }
}
