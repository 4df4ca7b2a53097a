//! The endpoint without a network: bytes in, bytes out, through the code that serves sockets.
//!
//! For fuzzing and for the tests that share its corpus. All input is available from the beginning, and then the client
//! has closed: nothing waits, so no time passes.

use std::collections::VecDeque;
use std::future::Future;
use std::io::{self, Cursor};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;

use crate::connection::Connection;
use crate::connections::Connections;
use crate::control_plane::ControlPlane;
use crate::endpoint::Endpoint;
use crate::settings::Identity;
use crate::stream::ClientStream;

/// Input of a client in the pieces in which it arrives, and the output so far.
#[derive(Debug)]
pub struct Script {
    pieces: VecDeque<Cursor<Vec<u8>>>,
    responses: Arc<Mutex<Vec<u8>>>,
}

impl Script {
    /// A connection on which these pieces arrive, and nothing follows.
    #[must_use]
    pub fn new(pieces: Vec<Vec<u8>>) -> Self {
        // An empty piece would be taken for the end of the stream.
        let pieces = pieces.into_iter().filter(|piece| !piece.is_empty()).map(Cursor::new).collect();
        Self { pieces, responses: Arc::default() }
    }
}

/// Serves one connection to its end, and returns all bytes of the responses.
///
/// # Panics
/// Panics if the connection does.
pub async fn serve_script<C: ControlPlane>(
    endpoint: &Arc<Endpoint<C>>,
    identity: &Arc<Identity>,
    script: Script,
) -> Vec<u8> {
    let responses = Arc::clone(&script.responses);
    let (endpoint, identity) = (Arc::clone(endpoint), Arc::clone(identity));
    let (done, is_done) = oneshot::channel();
    let connections = Connections::default();
    connections.spawn(|guard| {
        let mut connection = Connection::new(endpoint, identity, script, None, guard);
        async move {
            drop(connection.run().await);
            // The receiver is gone if the caller has dropped the future.
            done.send(()).ok();
        }
    });
    // Fails if the connection panicked.
    is_done.await.expect("a connection ends by itself");
    std::mem::take(&mut *responses.lock().unwrap_or_else(PoisonError::into_inner))
}

fn rest_of(piece: &Cursor<Vec<u8>>) -> &[u8] {
    let at = usize::try_from(piece.position()).unwrap_or(usize::MAX);
    piece.get_ref().get(at..).unwrap_or_default()
}

impl AsyncRead for Script {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(piece) = self.pieces.front_mut() {
            let rest = rest_of(piece);
            let bytes = rest.len().min(buffer.remaining());
            buffer.put_slice(&rest[..bytes]);
            piece.set_position(piece.position() + bytes as u64);
            if rest_of(piece).is_empty() {
                self.pieces.pop_front();
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Script {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(self.try_write(bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl ClientStream for Script {
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.responses.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn peek(&self) -> impl Future<Output = io::Result<usize>> + Send {
        std::future::ready(Ok(self.pieces.len().min(1)))
    }

    fn reset_on_close(&self) {}
}
