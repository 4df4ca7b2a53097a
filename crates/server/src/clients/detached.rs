//! A response whose body does not end, such as a stream of audit entries.
//!
//! Such a connection takes no further request. It leaves the HTTP library with its buffers, and moves to the thread of
//! streams, so that thousands of them neither delay requests nor take much memory.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::http::response::Parts;
use axum::http::{HeaderValue, Method, Request, Response, Version, header};
use hyper::body::{Body as HttpBody, Buf};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};

use super::connection_state::ConnectionState;
use super::connection_watch::ConnectionWatch;
use super::listener_shared::ListenerShared;
use super::stream::TrackedStream;
use super::table::TableEntry;

/// Mark of a response whose body does not end. A handler sets it as an extension of the response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndlessBody;

/// A response without an end, on its way from the service of the HTTP library to the task of the connection.
#[derive(Debug, Default)]
pub(super) struct EndlessResponse(Mutex<Option<Response<Body>>>);

impl EndlessResponse {
    pub(super) fn set(&self, response: Response<Body>) {
        *self.slot() = Some(response);
    }

    pub(super) fn is_some(&self) -> bool {
        self.slot().is_some()
    }

    pub(super) fn take(&self) -> Option<Response<Body>> {
        self.slot().take()
    }

    fn slot(&self) -> MutexGuard<'_, Option<Response<Body>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection with such a response, of which nothing was sent.
#[derive(Debug)]
pub(super) struct DetachedStream {
    pub(super) stream: TrackedStream,
    pub(super) response: Response<Body>,
    pub(super) state: Arc<ConnectionState>,
    pub(super) shared: Arc<ListenerShared>,
    pub(super) entry: TableEntry,
}

/// Returns true for requests whose response can leave the HTTP library: others need its framing.
pub(super) fn can_detach<B>(request: &Request<B>) -> bool {
    request.method() == Method::GET && request.version() == Version::HTTP_11
}

/// Returns true if a response does not end.
pub(super) fn is_endless<B>(response: &Response<B>) -> bool {
    response.extensions().get::<EndlessBody>().is_some()
}

impl DetachedStream {
    /// Sends the response to its end, which is also the end of the connection.
    pub(super) async fn run(self) {
        let Self { mut stream, response, state, shared, entry } = self;
        let (parts, mut body) = response.into_parts();
        let mut watch = ConnectionWatch::new(&state, shared.limits(), shared.stop.clone());
        if let Err(interruption) = watch.while_running(send(&mut stream, &parts, &mut body)).await {
            shared.count(interruption);
        }
        drop(entry);
    }
}

async fn send(stream: &mut TrackedStream, parts: &Parts, body: &mut Body) -> io::Result<()> {
    stream.write_all(&head(parts)).await?;
    stream.flush().await?;
    let mut reader = Reader::Open;
    while let Some(bytes) =
        std::future::poll_fn(|context| poll_chunk(stream, body, &mut reader, context)).await?
    {
        let size = format!("{:x}\r\n", bytes.len());
        stream.write_all_buf(&mut size.as_bytes().chain(bytes).chain(&b"\r\n"[..])).await?;
        stream.flush().await?;
    }
    stream.write_all(b"0\r\n\r\n").await?;
    stream.shutdown().await
}

/// The direction from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    Open,
    /// The client has sent more than its request, which is not read.
    Ignored,
}

/// The next bytes of a body. An error if the client disconnects.
fn poll_chunk(
    stream: &mut TrackedStream,
    body: &mut Body,
    reader: &mut Reader,
    context: &mut Context<'_>,
) -> Poll<io::Result<Option<Bytes>>> {
    if *reader == Reader::Open {
        let mut byte = [0];
        let mut buffer = ReadBuf::new(&mut byte);
        if let Poll::Ready(read) = Pin::new(&mut *stream).poll_read(context, &mut buffer) {
            read?;
            if buffer.filled().is_empty() {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
            *reader = Reader::Ignored;
        }
    }
    loop {
        match std::task::ready!(Pin::new(&mut *body).poll_frame(context)) {
            None => return Poll::Ready(Ok(None)),
            Some(Err(error)) => return Poll::Ready(Err(io::Error::other(error))),
            Some(Ok(frame)) => match frame.into_data() {
                Ok(bytes) if !bytes.is_empty() => return Poll::Ready(Ok(Some(bytes))),
                // Trailers.
                Ok(_) | Err(_) => {}
            },
        }
    }
}

/// The header of a response in chunks.
fn head(parts: &Parts) -> Vec<u8> {
    let reason = parts.status.canonical_reason().unwrap_or_default();
    let mut head = format!("HTTP/1.1 {} {reason}\r\n", parts.status.as_str()).into_bytes();
    let own = [
        (header::TRANSFER_ENCODING, HeaderValue::from_static("chunked")),
        (header::CONNECTION, HeaderValue::from_static("close")),
    ];
    let own = own.into_iter().chain(date().map(|date| (header::DATE, date))).collect::<Vec<_>>();
    for (name, value) in parts.headers.iter().chain(own.iter().map(|(name, value)| (name, value))) {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}

/// The time, as HTTP writes it.
fn date() -> Option<HeaderValue> {
    let text = DateTimePrinter::new().timestamp_to_rfc9110_string(&Timestamp::now()).ok()?;
    HeaderValue::try_from(text).ok()
}
