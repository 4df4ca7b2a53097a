//! What a connection needs of its stream, and a listener of its socket: TCP and Unix, nothing else.
//!
//! Connections are compiled for each kind of stream, so that the one that matters pays nothing for the other.

use std::future::Future;
use std::io;
use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, Interest};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// Something that takes connections.
pub(crate) trait Socket {
    type Stream: Stream + 'static;

    /// The next connection, and the address from which it comes, if it has one.
    fn accept(&self) -> impl Future<Output = io::Result<(Self::Stream, Option<IpAddr>)>> + Send;
}

/// A connection as the network has it.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Sync + Unpin {
    /// Writes what can be written at once.
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Looks for bytes that came and leaves them there; none, when nothing will come any more.
    fn peek(&self) -> impl Future<Output = io::Result<usize>> + Send;

    /// Closes it so that the other side sees that it was not wanted.
    fn reject(self);
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

impl Stream for TcpStream {
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.try_write(bytes)
    }

    async fn peek(&self) -> io::Result<usize> {
        self.peek(&mut [0]).await
    }

    fn reject(self) {
        // Closed without lingering, it is reset. If that cannot be had, it is closed all the same.
        SockRef::from(&self).set_linger(Some(Duration::ZERO)).ok();
    }
}

impl Stream for UnixStream {
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.try_write(bytes)
    }

    async fn peek(&self) -> io::Result<usize> {
        let peek = || SockRef::from(self).peek(&mut [MaybeUninit::uninit()]);
        self.async_io(Interest::READABLE, peek).await
    }

    fn reject(self) {}
}
