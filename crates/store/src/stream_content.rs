//! Records, audit entries and states of a stream as bytes, for journals that are not in a directory. Adds no version and
//! no checksum: the keeper of the bytes does.

use std::sync::Arc;

use forewarn_control::shared::{self, SharedState};
use forewarn_control::{
    AuditEntry, ClusterState, ENTRY_BYTES_MAX, Record, RestoringCluster, StateRow, Stream,
};
use forewarn_lifecycle::BadRows;

use crate::codec::{Malformed, RECORD_BYTES_MAX, Reader, Stored, Writer, from_bytes, to_bytes};
use crate::committer_request::{StreamState, check_stream};
use crate::error::AppendError;
use crate::fold::{CHUNK_BYTES, next_chunk};

/// Maximum bytes of one part of a state: rows of 32 KiB, and a last one of any size.
pub const STATE_CHUNK_BYTES_MAX: usize = CHUNK_BYTES + RECORD_BYTES_MAX;

/// Records of a stream and their audit entries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchContent {
    pub records: Vec<Record>,
    pub entries: Vec<Arc<AuditEntry>>,
}

impl BatchContent {
    /// Records and entries of a stream as bytes.
    ///
    /// # Errors
    /// Fails if one of them belongs to another stream, or is too large.
    pub fn encode(
        stream: Stream,
        records: &[Record],
        entries: &[Arc<AuditEntry>],
    ) -> Result<Vec<u8>, AppendError> {
        check_stream(stream, records, entries)?;
        let mut out = Writer::default();
        out.number(records.len() as u64);
        for record in records {
            write_item(&mut out, &to_bytes(record), RECORD_BYTES_MAX)?;
        }
        out.number(entries.len() as u64);
        for entry in entries {
            write_item(&mut out, entry.to_line().as_bytes(), ENTRY_BYTES_MAX)?;
        }
        Ok(out.into_bytes())
    }

    /// Reads the content of a stream. Takes no more memory than the length of the bytes allows.
    ///
    /// # Errors
    /// Fails if the bytes are not the content of that stream.
    pub fn decode(stream: Stream, bytes: &[u8]) -> Result<Self, Malformed> {
        let mut input = Reader::new(bytes);
        let mut content = Self::default();
        for _ in 0..input.length()? {
            content.records.push(from_bytes(read_item(&mut input)?)?);
        }
        for _ in 0..input.length()? {
            let entry: AuditEntry = serde_json::from_slice(read_item(&mut input)?)
                .map_err(|_| Malformed::Impossible("audit entry"))?;
            content.entries.push(Arc::new(entry));
        }
        input.finish()?;
        let checked = check_stream(stream, &content.records, &content.entries);
        checked.map_err(|_| Malformed::Impossible("stream"))?;
        Ok(content)
    }
}

fn write_item(out: &mut Writer, item: &[u8], limit: usize) -> Result<(), AppendError> {
    if item.len() > limit {
        return Err(AppendError::TooLarge(item.len()));
    }
    out.number(item.len() as u64);
    out.bytes(item);
    Ok(())
}

fn read_item<'a>(input: &mut Reader<'a>) -> Result<&'a [u8], Malformed> {
    let length = input.length()?;
    input.bytes(length)
}

/// The state of a stream as parts of about 32 KiB, in the order in which [`StateReader`] takes them.
pub struct StateChunks {
    rows: std::iter::Peekable<Box<dyn Iterator<Item = StateRow> + Send>>,
    written: u64,
}

impl StateChunks {
    #[must_use]
    pub fn new(state: StreamState) -> Self {
        Self { rows: state.into_rows().peekable(), written: 0 }
    }

    /// Number of rows in the parts so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.written
    }
}

impl Iterator for StateChunks {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        self.rows.peek()?;
        Some(next_chunk(&mut self.rows, &mut self.written))
    }
}

impl std::fmt::Debug for StateChunks {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("StateChunks").field("written", &self.written).finish_non_exhaustive()
    }
}

/// Reason why parts are not a state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error(transparent)]
    Rows(#[from] BadRows),
}

/// The state of a stream that is being built from its parts.
#[derive(Debug)]
pub struct StateReader {
    restoring: RestoringStream,
    rows: u64,
}

#[derive(Debug)]
enum RestoringStream {
    Shared(Box<shared::Restoring>),
    Cluster(Box<RestoringCluster>),
}

impl StateReader {
    #[must_use]
    pub fn new(stream: Stream) -> Self {
        let restoring = match stream {
            Stream::Shared => RestoringStream::Shared(Box::default()),
            Stream::Cluster(id) => RestoringStream::Cluster(Box::new(RestoringCluster::new(id))),
        };
        Self { restoring, rows: 0 }
    }

    /// Number of rows so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Takes the next part.
    ///
    /// # Errors
    /// Fails if it is no part of a state of the stream, or does not fit to those before it.
    pub fn add(&mut self, chunk: &[u8]) -> Result<(), StateError> {
        let mut input = Reader::new(chunk);
        while input.left() > 0 {
            let row = StateRow::read(&mut input)?;
            match &mut self.restoring {
                RestoringStream::Shared(restoring) => restoring.add(shared_row(row)?)?,
                RestoringStream::Cluster(restoring) => restoring.add(row)?,
            }
            self.rows += 1;
        }
        Ok(())
    }

    /// The state, once all parts were taken.
    ///
    /// # Errors
    /// Fails if some are missing.
    pub fn finish(self) -> Result<StreamState, BadRows> {
        match self.restoring {
            RestoringStream::Shared(restoring) => {
                restoring.finish().map(|shared| StreamState::Shared(Arc::new(shared)))
            }
            RestoringStream::Cluster(restoring) => {
                restoring.finish().map(|cluster| StreamState::Cluster(Arc::new(cluster)))
            }
        }
    }
}

/// The row, if it is one of the shared state.
pub(crate) fn shared_row(row: StateRow) -> Result<shared::Row, BadRows> {
    match row {
        StateRow::Shared(row) => Ok(row),
        StateRow::Rules(_)
        | StateRow::Site(_)
        | StateRow::Described(..)
        | StateRow::Failed(..)
        | StateRow::Reminded(..)
        | StateRow::Receipt(_)
        | StateRow::Resource(_)
        | StateRow::Booted(_)
        | StateRow::Positioned(_)
        | StateRow::Webhook(..)
        | StateRow::Closed(..)
        | StateRow::Cluster(_) => Err(BadRows("a row is not of the shared state")),
    }
}

impl From<SharedState> for StreamState {
    fn from(state: SharedState) -> Self {
        Self::Shared(Arc::new(state))
    }
}

impl From<ClusterState> for StreamState {
    fn from(state: ClusterState) -> Self {
        Self::Cluster(Arc::new(state))
    }
}

#[cfg(test)]
mod tests {
    use forewarn_control::{Chain, ClusterId, ControlState, NewAuditEntry};
    use forewarn_lifecycle::{Now, Seed};
    use proptest::prelude::*;

    use super::*;

    fn content(stream: Stream) -> BatchContent {
        let entry =
            Chain::default().seal(NewAuditEntry { by: "socket".to_owned(), ..NewAuditEntry::default() });
        let records =
            vec![Record::clock_in(Now::at_millis(5), stream), Record::clock_in(Now::at_millis(6), stream)];
        BatchContent { records, entries: vec![Arc::new(entry)] }
    }

    fn encoded(stream: Stream, content: &BatchContent) -> Result<Vec<u8>, AppendError> {
        BatchContent::encode(stream, &content.records, &content.entries)
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
            noise in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            drop(BatchContent::decode(Stream::Shared, &noise));
            drop(StateReader::new(Stream::Shared).add(&noise));
            let mut bytes = encoded(Stream::Shared, &content(Stream::Shared)).unwrap();
            for (place, byte) in damage {
                *place.get_mut(&mut bytes) = byte;
            }
            if let Ok(read) = BatchContent::decode(Stream::Shared, &bytes) {
                let again = encoded(Stream::Shared, &read).unwrap();
                prop_assert_eq!(BatchContent::decode(Stream::Shared, &again), Ok(read));
            }
        }
    }

    #[test]
    fn content_is_read_as_it_was_written_and_only_in_its_stream() {
        let (stream, other) = (Stream::Cluster(ClusterId(3)), Stream::Shared);
        let written = content(stream);
        let bytes = encoded(stream, &written).unwrap();
        assert_eq!(BatchContent::decode(stream, &bytes), Ok(written.clone()));
        assert_eq!(BatchContent::decode(other, &bytes), Err(Malformed::Impossible("stream")));
        assert_eq!(encoded(other, &written), Err(AppendError::OtherStream));
        for end in 0..bytes.len() {
            assert!(BatchContent::decode(stream, &bytes[..end]).is_err(), "{end}");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert_eq!(BatchContent::decode(stream, &longer), Err(Malformed::Long));
    }

    #[test]
    fn a_state_is_read_from_its_parts() {
        let state = ControlState::new(Seed([7; 16]));
        let cluster = state.cluster_arc(ClusterId::DEFAULT).unwrap();
        let of_stream = [
            (Stream::Shared, StreamState::Shared(state.shared_arc())),
            (Stream::Cluster(ClusterId::DEFAULT), StreamState::Cluster(cluster)),
        ];
        for (stream, state) in of_stream {
            let mut chunks = StateChunks::new(state.clone());
            let mut reader = StateReader::new(stream);
            chunks.by_ref().for_each(|chunk| reader.add(&chunk).unwrap());
            assert_eq!(reader.rows(), chunks.rows());
            assert_eq!(reader.finish().unwrap(), state);
        }
        let mut reader = StateReader::new(Stream::Shared);
        let cluster = state.cluster_arc(ClusterId::DEFAULT).unwrap();
        let chunk = StateChunks::new(StreamState::Cluster(cluster)).next().unwrap();
        assert_eq!(reader.add(&chunk), Err(StateError::Rows(BadRows("a row is not of the shared state"))));
        assert!(StateReader::new(Stream::Shared).finish().is_err());
    }
}
