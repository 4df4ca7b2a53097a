//! Reads of streams at one revision, checked to be complete.

use bytes::Bytes;
use forewarn_control::Stream;
use forewarn_ownership::Revision;
use forewarn_store::{StateReader, StreamState};
use forewarn_types::Now;

use crate::batch::{BATCH_BYTES_MAX, Batch, BatchHeading, LogValue};
use crate::engine::{EngineError, KeySpan, ReadRequest};
use crate::error::RealmError;
use crate::head::{KnownHead, SnapshotRef, StreamPosition, position_of};
use crate::heads::known_head;
use crate::keys::RealmKey;
use crate::links::BatchLinks;
use crate::pages::Pages;
use crate::realm::Realm;
use crate::seal;

/// Maximum bytes of the batches that one read returns.
pub const CONTENT_BYTES_MAX: usize = 32 * BATCH_BYTES_MAX;

/// Reads that are begun again because the engine was compacted meanwhile.
pub(crate) const READS_MAX: usize = 4;

/// The beginning of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadFrom {
    /// The stored state, and all batches after it.
    Beginning,
    /// Batches after a position, if the log still has all of them; otherwise as from the beginning.
    After(StreamPosition),
}

/// The content of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamContent {
    pub stream: Stream,
    pub head: KnownHead,
    /// The revision of the store at which everything was read.
    pub revision: Revision,
    pub start: StreamStart,
    /// Batches after the start, up to the head.
    pub batches: Vec<Batch>,
}

impl StreamContent {
    /// The clocks of the head.
    #[must_use]
    pub fn clock(&self) -> Now {
        Now { wall: self.head.head.details.wall, steady: self.head.head.clock.steady }
    }
}

/// The state before the batches of a [`StreamContent`].
#[derive(Clone, Debug, PartialEq)]
pub enum StreamStart {
    /// The state with which the stream was created: the log has every batch.
    Initial,
    /// A stored state, and its position.
    State(StreamState, StreamPosition),
    /// The state after that position, which the caller has.
    After(StreamPosition),
}

/// Batches of a log, or the first number that it lacks.
pub(crate) enum LogRead {
    Batches(Vec<Batch>),
    Lacks(u64),
}

/// A read that has failed.
pub(crate) enum ReadFailure {
    Compacted,
    Realm(RealmError),
}

impl From<EngineError> for ReadFailure {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Compacted(_) => Self::Compacted,
            EngineError::NotReached(_) | EngineError::Unknown(_) | EngineError::Refused { .. } => {
                Self::Realm(error.into())
            }
        }
    }
}

impl From<RealmError> for ReadFailure {
    fn from(error: RealmError) -> Self {
        Self::Realm(error)
    }
}

impl Realm {
    /// Reads a stream at one revision.
    ///
    /// # Errors
    /// Fails if the engine is unavailable, the stream does not exist, or something in it is missing or damaged.
    pub async fn read_stream(&self, stream: Stream, from: ReadFrom) -> Result<StreamContent, RealmError> {
        for _ in 0..READS_MAX {
            match self.try_read_stream(stream, from).await {
                Ok(content) => return Ok(content),
                Err(ReadFailure::Realm(error)) => return Err(error),
                Err(ReadFailure::Compacted) => {}
            }
        }
        Err(RealmError::Unavailable(EngineError::Compacted(None)))
    }

    async fn try_read_stream(&self, stream: Stream, from: ReadFrom) -> Result<StreamContent, ReadFailure> {
        let key = RealmKey::Head(stream);
        let page = self.read(&ReadRequest::new(KeySpan::one(self.key(&key)))).await?;
        let entry = page.entries.first().ok_or(RealmError::NoStream(stream))?;
        self.read_content((stream, known_head(stream, entry)?), from, page.revision).await
    }

    /// Reads everything up to a head, at a revision at which the stream had this head.
    pub(crate) async fn read_content(
        &self,
        (stream, head): (Stream, KnownHead),
        from: ReadFrom,
        revision: Revision,
    ) -> Result<StreamContent, ReadFailure> {
        if let ReadFrom::After(position) = from
            && position.number > head.head.number
        {
            let (known, found) = (position.number, head.head.number);
            return Err(RealmError::Older { stream, known, found }.into());
        }
        if let ReadFrom::After(position) = from
            && let LogRead::Batches(batches) =
                self.read_log(stream, (position.number + 1, head.head.number), revision).await?
        {
            check_links(stream, position, &batches, &head)?;
            return Ok(StreamContent {
                stream,
                head,
                revision,
                start: StreamStart::After(position),
                batches,
            });
        }
        let start = match &head.head.details.snapshot {
            Some(snapshot) => {
                let state = self.read_snapshot(stream, snapshot, revision).await?;
                StreamStart::State(state, snapshot.position())
            }
            None => StreamStart::Initial,
        };
        let position = head.head.details.snapshot.map(|snapshot| snapshot.position()).unwrap_or_default();
        let numbers = (position.number + 1, head.head.number);
        match self.read_log(stream, numbers, revision).await? {
            LogRead::Batches(batches) => {
                check_links(stream, position, &batches, &head)?;
                Ok(StreamContent { stream, head, revision, start, batches })
            }
            LogRead::Lacks(number) => {
                let key = RealmKey::Log(stream, number);
                Err(RealmError::missing(&key, "the log has a gap before its head").into())
            }
        }
    }

    /// Reads batches with these numbers, both included.
    async fn read_log(
        &self,
        stream: Stream,
        numbers: (u64, u64),
        revision: Revision,
    ) -> Result<LogRead, ReadFailure> {
        match self.read_some(stream, numbers, revision, CONTENT_BYTES_MAX).await? {
            LogRead::Batches(batches)
                if (batches.len() as u64) < (numbers.1 + 1).saturating_sub(numbers.0) =>
            {
                Err(RealmError::Limit("bytes of batches in one read").into())
            }
            read @ (LogRead::Batches(_) | LogRead::Lacks(_)) => Ok(read),
        }
    }

    /// Reads batches with these numbers, both included; only the first ones if they have more bytes.
    pub(crate) async fn read_some(
        &self,
        stream: Stream,
        (first, last): (u64, u64),
        revision: Revision,
        bytes_max: usize,
    ) -> Result<LogRead, ReadFailure> {
        let mut batches = Vec::new();
        if first > last {
            return Ok(LogRead::Batches(batches));
        }
        let mut pages = Pages::new(self.keys().log_between(stream, first, last), revision);
        let (mut expected, mut bytes) = (first, 0);
        while let Some(page) = pages.next(self).await? {
            for entry in page {
                if self.keys().parse(&entry.key) != Some(RealmKey::Log(stream, expected)) {
                    return Ok(LogRead::Lacks(expected));
                }
                let batch =
                    self.read_batch(stream, expected, &entry.value, Some(revision), &mut bytes).await?;
                batches.push(batch);
                expected += 1;
                if bytes > bytes_max {
                    return Ok(LogRead::Batches(batches));
                }
            }
        }
        if expected > last { Ok(LogRead::Batches(batches)) } else { Ok(LogRead::Lacks(expected)) }
    }

    /// The batch of a value in the log; reads its parts. Adds its bytes.
    pub(crate) async fn read_batch(
        &self,
        stream: Stream,
        number: u64,
        value: &Bytes,
        revision: Option<Revision>,
        bytes: &mut usize,
    ) -> Result<Batch, ReadFailure> {
        let key = RealmKey::Log(stream, number);
        let value = LogValue::read(stream, number, value).map_err(RealmError::malformed(&key))?;
        let parts = self.read_parts(&value.heading, revision).await?;
        *bytes += value.content_length();
        Ok(value.into_batch(&parts).map_err(RealmError::malformed(&key))?)
    }

    async fn read_parts(
        &self,
        heading: &BatchHeading,
        revision: Option<Revision>,
    ) -> Result<Vec<Bytes>, ReadFailure> {
        let mut parts = Vec::new();
        if heading.parts == 0 {
            return Ok(parts);
        }
        let mut pages = Pages::values(self.keys().parts_of(heading.part(0)), revision);
        while let Some(page) = pages.next(self).await? {
            for entry in page {
                let expected = u32::try_from(parts.len()).ok().map(|part| RealmKey::Part(heading.part(part)));
                if self.keys().parse(&entry.key) == expected && parts.len() < heading.parts {
                    parts.push(entry.value);
                }
            }
        }
        if parts.len() == heading.parts {
            return Ok(parts);
        }
        let missing = RealmKey::Part(heading.part(u32::try_from(parts.len()).unwrap_or(u32::MAX)));
        Err(RealmError::missing(&missing, "a part of a batch").into())
    }

    async fn read_snapshot(
        &self,
        stream: Stream,
        snapshot: &SnapshotRef,
        revision: Revision,
    ) -> Result<StreamState, ReadFailure> {
        let mut pages = Pages::new(self.keys().snapshot(stream, snapshot.id), revision);
        let mut reader = StateReader::new(stream);
        let mut chunks = 0;
        let key_of = |chunk| RealmKey::Snapshot(stream, snapshot.id, chunk);
        while let Some(page) = pages.next(self).await? {
            for entry in page {
                let key = key_of(chunks);
                if chunks == snapshot.chunks {
                    break;
                }
                if self.keys().parse(&entry.key).as_ref() != Some(&key) {
                    return Err(RealmError::missing(&key, "a part of a state").into());
                }
                let content = seal::open(&key, &entry.value).map_err(RealmError::malformed(&key))?;
                reader.add(content).map_err(|error| RealmError::damaged(&key, &error))?;
                chunks += 1;
            }
        }
        if chunks != snapshot.chunks {
            return Err(RealmError::missing(&key_of(chunks), "a part of a state").into());
        }
        let head = RealmKey::Head(stream);
        if reader.rows() != snapshot.rows {
            return Err(RealmError::damaged(&head, &"the state has another number of rows").into());
        }
        Ok(reader.finish().map_err(|error| RealmError::damaged(&head, &error))?)
    }
}

/// Checks that batches lead from a position to a head.
fn check_links(
    stream: Stream,
    position: StreamPosition,
    batches: &[Batch],
    head: &KnownHead,
) -> Result<(), RealmError> {
    let mut links = BatchLinks::new(position);
    for batch in batches {
        let key = RealmKey::Log(batch.stream, batch.number);
        links.add(batch).map_err(|error| RealmError::damaged(&key, &error))?;
    }
    if links.position() == position_of(&head.head) {
        return Ok(());
    }
    Err(RealmError::damaged(&RealmKey::Head(stream), &"it does not continue the batches before it"))
}
