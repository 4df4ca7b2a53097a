//! The stream of one connection: TCP, a Unix socket or TLS, watched for progress.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::server::TlsStream;

use super::connection_state::ConnectionState;
use super::stage::Stage;

/// A stream of any kind.
#[derive(Debug)]
pub(super) enum Duplex {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// A stream that keeps the state of its connection up to date.
#[derive(Debug)]
pub(super) struct TrackedStream {
    stream: Duplex,
    state: Arc<ConnectionState>,
    /// Bytes of the next request that were received before.
    unread: Bytes,
}

impl TrackedStream {
    pub(super) fn new(stream: Duplex, state: &Arc<ConnectionState>) -> Self {
        Self { stream, state: Arc::clone(state), unread: Bytes::new() }
    }

    /// The stream, with bytes that will be read first.
    pub(super) fn with_unread(self, unread: &[u8]) -> Self {
        // A copy does not keep the buffer that it is a part of.
        Self { unread: Bytes::copy_from_slice(unread), ..self }
    }

    pub(super) fn into_inner(self) -> Duplex {
        self.stream
    }

    /// Waits for the first byte of a request.
    ///
    /// # Errors
    /// Returns an error if the client disconnects.
    pub(super) async fn wait(&mut self) -> io::Result<()> {
        if self.unread.is_empty() {
            let first = self.read_u8().await?;
            self.unread = Bytes::copy_from_slice(&[first]);
        }
        Ok(())
    }
}

impl AsyncRead for Duplex {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Duplex {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp(stream) => stream.is_write_vectored(),
            Self::Unix(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(context),
            Self::Unix(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

impl AsyncRead for TrackedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let Self { stream, state, unread } = self.get_mut();
        let first = unread.split_to(unread.len().min(buffer.remaining()));
        buffer.put_slice(&first);
        let read = if buffer.remaining() == 0 {
            Poll::Ready(Ok(()))
        } else {
            let rest = Pin::new(stream).poll_read(context, buffer);
            // An error or the end of the stream follows with the next read.
            if first.is_empty() { rest } else { Poll::Ready(Ok(())) }
        };
        if buffer.filled().len() > before {
            state.progress();
            state.pass(Stage::New, Stage::Head);
            state.pass(Stage::Idle, Stage::Head);
        }
        read
    }
}

impl AsyncWrite for TrackedStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let Self { stream, state, .. } = self.get_mut();
        let written = Pin::new(stream).poll_write(context, bytes);
        if written.is_ready() {
            state.progress();
        }
        written
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Self { stream, state, .. } = self.get_mut();
        let written = Pin::new(stream).poll_write_vectored(context, slices);
        if written.is_ready() {
            state.progress();
        }
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// The HTTP library flushes after every response, once it has written all of it.
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, state, .. } = self.get_mut();
        let flushed = Pin::new(stream).poll_flush(context);
        if flushed.is_ready() {
            state.pass(Stage::Flush, Stage::Idle);
        }
        flushed
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
