//! Operations that a connection needs of its stream, and a listener of its socket, for TCP and Unix sockets.
//!
//! Connections are generic over the stream, so that TCP pays nothing for Unix sockets.

use std::future::Future;
use std::io;
use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, Interest};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// A socket that accepts connections.
pub(crate) trait Socket {
    type Stream: ClientStream + 'static;

    /// Accepts a connection. The address is `None` for a Unix socket.
    fn accept(&self) -> impl Future<Output = io::Result<(Self::Stream, Option<IpAddr>)>> + Send;
}

/// The stream of a connection.
pub(crate) trait ClientStream: AsyncRead + AsyncWrite + Send + Sync + Unpin {
    /// Writes as much as possible without waiting.
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Peeks at received bytes; 0 at the end of the stream.
    fn peek(&self) -> impl Future<Output = io::Result<usize>> + Send;

    /// Makes the client see a reset when the stream is closed. A Unix socket has none.
    fn reset_on_close(&self);

    /// Closes the stream so that the client sees a reset.
    fn reject(self)
    where
        Self: Sized,
    {
        self.reset_on_close();
    }
}

impl Socket for TcpListener {
    type Stream = TcpStream;

    async fn accept(&self) -> io::Result<(TcpStream, Option<IpAddr>)> {
        let (stream, peer) = self.accept().await?;
        Ok((stream, Some(peer.ip())))
    }
}

impl Socket for UnixListener {
    type Stream = UnixStream;

    async fn accept(&self) -> io::Result<(UnixStream, Option<IpAddr>)> {
        let (stream, _) = self.accept().await?;
        Ok((stream, None))
    }
}

impl ClientStream for TcpStream {
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.try_write(bytes)
    }

    async fn peek(&self) -> io::Result<usize> {
        self.peek(&mut [0]).await
    }

    fn reset_on_close(&self) {
        // Closing without lingering resets the connection. If the option cannot be set, it is closed normally.
        SockRef::from(self).set_linger(Some(Duration::ZERO)).ok();
    }
}

impl ClientStream for UnixStream {
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.try_write(bytes)
    }

    async fn peek(&self) -> io::Result<usize> {
        let peek = || SockRef::from(self).peek(&mut [MaybeUninit::uninit()]);
        self.async_io(Interest::READABLE, peek).await
    }

    fn reset_on_close(&self) {}
}
