//! Audit entries for the archives of other servers.

use std::time::Duration;

use forewarn_control::Stream;
use forewarn_peers::{AuditChunks, ChunksBroken};
use forewarn_store::{AuditQuery, ReadError};
use hyper::body::Bytes;

use crate::broadcasts::Broadcasts;

/// Entries of a chunk.
const ENTRIES_PER_CHUNK: usize = 100;

/// Pause before a busy audit log is read again.
const READ_PAUSE: Duration = Duration::from_millis(20);

/// The audit entries of a stream after one of them, as lines.
pub(crate) struct ArchiveLines {
    pub(crate) broadcasts: Broadcasts,
    pub(crate) stream: Stream,
    /// Number of the last entry that was sent. None after the last one.
    pub(crate) after: Option<u64>,
}

impl AuditChunks for ArchiveLines {
    async fn next(&mut self) -> Result<Option<Bytes>, ChunksBroken> {
        let mut lines = String::new();
        // Without an entry, a page may still have a next one.
        while let Some(after) = self.after.filter(|_| lines.is_empty()) {
            let query = AuditQuery {
                stream: Some(self.stream),
                after: Some(after),
                limit: ENTRIES_PER_CHUNK,
                ..AuditQuery::default()
            };
            match self.broadcasts.read_audit_log(query).await {
                Ok(page) => {
                    self.after = page.next;
                    for one in page.entries {
                        lines.push_str(&one.entry.to_line());
                        lines.push('\n');
                    }
                }
                Err(ReadError::Busy) => tokio::time::sleep(READ_PAUSE).await,
                Err(error) => {
                    tracing::debug!(%error, "cannot read audit entries for another server");
                    return Err(ChunksBroken);
                }
            }
        }
        Ok((!lines.is_empty()).then(|| Bytes::from(lines)))
    }
}
