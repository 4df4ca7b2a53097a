//! Bodies of messages: read within limits; written whole, or as chunks of lines.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio::task::JoinError;
use tokio::time::timeout;

use crate::handler::{AuditChunks, ChunksBroken};

/// Size from which JSON is read and written on a thread for blocking work: heartbeats must not wait for it.
const LARGE_BYTES_MIN: usize = 256 * 1024;

/// Chunks that wait for the network.
const CHUNKS_WAITING: usize = 2;

/// The reason why a body was not read.
#[derive(Debug)]
pub(crate) enum UnreadBody {
    TooLarge,
    TimedOut,
    BrokenOff(String),
}

/// Reads a whole body within limits.
pub(crate) async fn read_body(
    body: Incoming,
    bytes_max: usize,
    time_max: Duration,
) -> Result<Bytes, UnreadBody> {
    // A body whose announced length exceeds the limit is not read.
    if usize::try_from(body.size_hint().lower()).is_ok_and(|bytes| bytes > bytes_max) {
        return Err(UnreadBody::TooLarge);
    }
    let read = timeout(time_max, Limited::new(body, bytes_max).collect()).await;
    let read = read.map_err(|_| UnreadBody::TimedOut)?.map_err(|error| {
        if error.is::<LengthLimitError>() {
            return UnreadBody::TooLarge;
        }
        UnreadBody::BrokenOff(forewarn_http_client::error_chain(error.as_ref()))
    })?;
    Ok(read.to_bytes())
}

/// Reads JSON. The error is a text.
pub(crate) async fn decode<T: DeserializeOwned + Send + 'static>(bytes: Bytes) -> Result<T, String> {
    let decode = |bytes: &[u8]| serde_json::from_slice(bytes).map_err(|error| error.to_string());
    if bytes.len() < LARGE_BYTES_MIN {
        return decode(&bytes);
    }
    let decoded = tokio::task::spawn_blocking(move || decode(&bytes)).await;
    decoded.unwrap_or_else(|error: JoinError| Err(error.to_string()))
}

/// Writes JSON.
pub(crate) fn encode(value: &impl Serialize) -> Result<Bytes, String> {
    serde_json::to_vec(value).map(Bytes::from).map_err(|error| error.to_string())
}

/// Writes JSON that may be large, on a thread for blocking work.
pub(crate) async fn encode_apart<T: Serialize + Send + 'static>(value: T) -> Result<Bytes, String> {
    let encoding = tokio::task::spawn_blocking(move || encode(&value));
    encoding.await.unwrap_or_else(|error: JoinError| Err(error.to_string()))
}

/// The body of an answer.
#[derive(Debug)]
pub(crate) enum AnswerBody {
    Whole(Full<Bytes>),
    Lines(mpsc::Receiver<LinePiece>),
}

/// A piece of a body of lines. Without its end, a body is incomplete.
#[derive(Debug)]
pub(crate) enum LinePiece {
    Chunk(Bytes),
    End,
}

impl AnswerBody {
    /// A body of chunks. A task sends them until the caller hangs up, or takes none for `time_max`.
    pub(crate) fn lines(mut chunks: impl AuditChunks, time_max: Duration) -> Self {
        let (sender, receiver) = mpsc::channel(CHUNKS_WAITING);
        tokio::spawn(async move {
            while let Ok(next) = chunks.next().await {
                let (piece, is_last) = match next {
                    Some(chunk) => (LinePiece::Chunk(chunk), false),
                    None => (LinePiece::End, true),
                };
                let is_taken = matches!(timeout(time_max, sender.send(piece)).await, Ok(Ok(())));
                if is_last || !is_taken {
                    break;
                }
            }
        });
        Self::Lines(receiver)
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = ChunksBroken;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ChunksBroken>>> {
        match self.get_mut() {
            Self::Whole(body) => Pin::new(body).poll_frame(context).map_err(|never| match never {}),
            Self::Lines(pieces) => pieces.poll_recv(context).map(|piece| match piece {
                Some(LinePiece::Chunk(chunk)) => Some(Ok(Frame::data(chunk))),
                Some(LinePiece::End) => None,
                None => Some(Err(ChunksBroken)),
            }),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) => body.size_hint(),
            Self::Lines(_) => SizeHint::default(),
        }
    }
}
