//! Lines of audit entries, as they arrive from another server.

use std::time::Duration;

use forewarn_http_client::error_chain;
use http_body_util::BodyExt as _;
use hyper::body::{Bytes, Incoming};
use tokio::time::timeout;

use crate::connection::PeerConnection;
use crate::error::PeerError;
use crate::limits::AUDIT_LINE_BYTES_MAX;

/// Lines of audit entries, as they arrive. Dropping them closes their connection.
#[derive(Debug)]
pub struct AuditLines {
    /// Kept open until the last line.
    _connection: PeerConnection,
    body: Incoming,
    piece: Duration,
    /// Bytes that have arrived: the beginning of a line, or several lines.
    buffer: Vec<u8>,
    /// Beginning of the next line in the buffer.
    next: usize,
}

impl AuditLines {
    pub(crate) fn new(connection: PeerConnection, body: Incoming, piece: Duration) -> Self {
        Self { _connection: connection, body, piece, buffer: Vec::new(), next: 0 }
    }

    /// The next line, without its line feed. `None` after the last one: the copy is complete.
    ///
    /// # Errors
    /// Fails if the connection breaks off, takes too long, or a line is too long or has no end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, PeerError> {
        // Bytes before this were searched already.
        let mut searched = self.next;
        loop {
            let unsearched = &self.buffer[searched..];
            if let Some(length) = unsearched.iter().position(|byte| *byte == b'\n') {
                let end = searched + length;
                let line = Bytes::copy_from_slice(&self.buffer[self.next..end]);
                self.next = end + 1;
                return Ok(Some(line));
            }
            self.buffer.drain(..self.next);
            self.next = 0;
            searched = self.buffer.len();
            if searched > AUDIT_LINE_BYTES_MAX {
                return Err(PeerError::InvalidAnswer("a line is too long".to_owned()));
            }
            let Some(piece) = self.piece().await? else { break };
            self.buffer.extend_from_slice(&piece);
        }
        if self.buffer.is_empty() {
            return Ok(None);
        }
        Err(PeerError::InvalidAnswer("the last line has no end".to_owned()))
    }

    async fn piece(&mut self) -> Result<Option<Bytes>, PeerError> {
        let frame = timeout(self.piece, self.body.frame()).await;
        let frame = frame.map_err(|_| PeerError::TimedOut(self.piece))?.transpose();
        let frame = frame.map_err(|error| PeerError::BrokenOff(error_chain(&error)))?;
        Ok(frame.map(|frame| frame.into_data().unwrap_or_default()))
    }
}
