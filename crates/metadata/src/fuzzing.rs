//! The front without a network: bytes in, bytes out, by the very code that answers a socket.
//!
//! For fuzzing and for the tests that share its corpus. Everything that will ever come is there from the beginning, and then
//! the other side has closed: nothing is waited for, so no time passes.

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
use crate::front::Front;
use crate::settings::Identity;
use crate::stream::Stream;

/// What a caller sends, in the pieces in which it arrives, and what it has been answered.
#[derive(Debug)]
pub struct Script {
    pieces: VecDeque<Cursor<Vec<u8>>>,
    answers: Arc<Mutex<Vec<u8>>>,
}

impl Script {
    /// A connection on which these pieces arrive, and nothing follows.
    #[must_use]
    pub fn new(pieces: Vec<Vec<u8>>) -> Self {
        // A piece of nothing would be taken for the end.
        let pieces = pieces.into_iter().filter(|piece| !piece.is_empty()).map(Cursor::new).collect();
        Self { pieces, answers: Arc::default() }
    }
}

/// Answers one connection to its end, and gives all bytes of the answers.
///
/// # Panics
/// When the connection does.
pub async fn converse<C: ControlPlane>(
    front: &Arc<Front<C>>,
    identity: &Arc<Identity>,
    script: Script,
) -> Vec<u8> {
    let answers = Arc::clone(&script.answers);
    let (front, identity) = (Arc::clone(front), Arc::clone(identity));
    let (done, is_done) = oneshot::channel();
    let connections = Connections::default();
    connections.spawn(|seat| {
        let mut connection = Connection::new(front, identity, script, None, seat);
        async move {
            drop(connection.run().await);
            // Nobody waits for the end of a conversation that was given up.
            done.send(()).ok();
        }
    });
    // It is an error if the connection panicked: then there is no answer to speak of.
    is_done.await.expect("a connection ends by itself");
    std::mem::take(&mut *answers.lock().unwrap_or_else(PoisonError::into_inner))
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

impl Stream for Script {
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn peek(&self) -> impl Future<Output = io::Result<usize>> + Send {
        std::future::ready(Ok(self.pieces.len().min(1)))
    }

    fn reject(self) {}
}
