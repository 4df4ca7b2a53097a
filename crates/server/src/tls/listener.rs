//! Listening with TLS: handshakes in tasks of their own, and a bound on everything that strangers can make.
//!
//! ```text
//!   accept ──▶ handshake (its own task, HANDSHAKE_MAX) ──▶ a connection
//!                 too many unfinished: the oldest makes room for the newest
//! ```
//!
//! A client that connects and says nothing costs one task for a few seconds, and blocks nobody. One that speaks plain HTTP
//! is told so, in plain HTTP.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, Sleep};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::Tls;

/// How long a handshake may take.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// Handshakes that are not finished.
const HANDSHAKES_MAX: usize = 256;

/// How long the first byte of a connection may take.
const FIRST_WORD_MAX: Duration = Duration::from_secs(30);

/// How long neither side may say anything. Streams say that they are alive more often than this.
const SILENCE_MAX: Duration = Duration::from_mins(5);

/// What the first byte of TLS is: a record that is a handshake.
const HANDSHAKE_RECORD: u8 = 22;

/// What somebody is told who does not speak TLS.
const SPEAK_TLS: &str = r#"{"title":"Bad Request","status":400,"detail":"this port speaks TLS\n  hint: https:// instead of http://"}"#;

/// How long to wait after a connection could not be taken, for want of file descriptors mostly.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

type Handshake = io::Result<(TlsStream<TcpStream>, SocketAddr)>;

/// A listener that gives connections whose handshake is done.
#[derive(Debug)]
pub struct TlsListener {
    socket: TcpListener,
    tls: Arc<Tls>,
    handshakes: JoinSet<Handshake>,
    /// The oldest first; some of them may be over.
    unfinished: VecDeque<AbortHandle>,
}

impl TlsListener {
    /// Listens with those certificates.
    #[must_use]
    pub fn new(socket: TcpListener, tls: Arc<Tls>) -> Self {
        Self { socket, tls, handshakes: JoinSet::new(), unfinished: VecDeque::new() }
    }

    fn begin(&mut self, stream: TcpStream, peer: SocketAddr) {
        self.unfinished.retain(|one| !one.is_finished());
        if self.unfinished.len() >= HANDSHAKES_MAX
            && let Some(oldest) = self.unfinished.pop_front()
        {
            oldest.abort();
        }
        let acceptor = TlsAcceptor::from(self.tls.current());
        let handshake = async move {
            let done = tokio::time::timeout(HANDSHAKE_MAX, shake_hands(stream, acceptor)).await;
            Ok((done.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??, peer))
        };
        self.unfinished.push_back(self.handshakes.spawn(handshake));
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            tokio::select! {
                Some(done) = self.handshakes.join_next() => match done {
                    Ok(Ok(connection)) => return connection,
                    Ok(Err(error)) => tracing::debug!(%error, "a handshake failed"),
                    // It has made room for others.
                    Err(_) => {}
                },
                taken = self.socket.accept() => match taken {
                    Ok((stream, peer)) => self.begin(stream, peer),
                    Err(error) => {
                        tracing::warn!(%error, "no connection of an operator could be taken");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.socket.local_addr()
    }
}

async fn shake_hands(mut stream: TcpStream, acceptor: TlsAcceptor) -> io::Result<TlsStream<TcpStream>> {
    let mut first = [0; 1];
    if stream.peek(&mut first).await? == 1 && first[0] != HANDSHAKE_RECORD {
        refuse(&mut stream).await?;
        return Err(io::ErrorKind::InvalidData.into());
    }
    acceptor.accept(stream).await
}

/// Answers in the language of the caller, and reads what it has sent: closing over unread bytes would lose the answer.
async fn refuse(stream: &mut TcpStream) -> io::Result<()> {
    let answer = format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: application/problem+json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{SPEAK_TLS}",
        SPEAK_TLS.len(),
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    tokio::io::copy(stream, &mut tokio::io::sink()).await?;
    Ok(())
}

/// A listener with so many connections at once, each of which ends when nothing is said on it for long.
///
/// One more waits until another ends.
#[derive(Debug)]
pub struct Counted<L> {
    listener: L,
    places: Arc<Semaphore>,
}

impl<L> Counted<L> {
    /// At most that many connections.
    #[must_use]
    pub fn new(listener: L, connections_max: usize) -> Self {
        Self { listener, places: Arc::new(Semaphore::new(connections_max)) }
    }
}

impl<L: Listener> Listener for Counted<L> {
    type Io = Held<L::Io>;
    type Addr = L::Addr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let place = Arc::clone(&self.places).acquire_owned().await.expect("nobody closes the places");
        let (stream, address) = self.listener.accept().await;
        (Held { stream, silence: Box::pin(tokio::time::sleep(FIRST_WORD_MAX)), _place: place }, address)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// A connection and its place.
#[derive(Debug)]
pub struct Held<S> {
    stream: S,
    silence: Pin<Box<Sleep>>,
    _place: OwnedSemaphorePermit,
}

impl<S> Held<S> {
    /// What came of reading or writing; while it is nothing, patience runs out.
    fn patiently<T>(&mut self, context: &mut Context<'_>, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if done.is_ready() {
            self.silence.as_mut().reset(Instant::now() + SILENCE_MAX);
            return done;
        }
        ready!(self.silence.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Held<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.patiently(context, read)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Held<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.patiently(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.patiently(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, DuplexStream, duplex};

    /// Connections without a network; whoever has the other ends keeps them.
    struct Pipes(tokio::sync::mpsc::UnboundedSender<DuplexStream>);

    impl Listener for Pipes {
        type Io = DuplexStream;
        type Addr = ();

        async fn accept(&mut self) -> (Self::Io, ()) {
            let (ours, theirs) = duplex(64);
            self.0.send(theirs).expect("the test listens");
            (ours, ())
        }

        fn local_addr(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_connection_too_many_waits_for_another_to_end() {
        let (sender, _others) = tokio::sync::mpsc::unbounded_channel();
        let mut listener = Counted::new(Pipes(sender), 2);
        let (first, ()) = listener.accept().await;
        let (_second, ()) = listener.accept().await;
        let third = tokio::time::timeout(Duration::from_secs(1), listener.accept()).await;
        assert!(third.is_err(), "there is no room");
        drop(first);
        let third = tokio::time::timeout(Duration::from_secs(1), listener.accept()).await;
        assert!(third.is_ok(), "there is room again");
    }

    #[tokio::test(start_paused = true)]
    async fn silence_ends_a_connection_and_a_word_prolongs_it() {
        let (sender, mut others) = tokio::sync::mpsc::unbounded_channel();
        let mut listener = Counted::new(Pipes(sender), 1);
        let (mut ours, ()) = listener.accept().await;
        let mut theirs = others.recv().await.expect("the other end");
        let begin = Instant::now();
        let mut byte = [0; 1];
        assert_eq!(ours.read(&mut byte).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(begin.elapsed(), FIRST_WORD_MAX);
        theirs.write_all(b"x").await.unwrap();
        assert_eq!(ours.read(&mut byte).await.unwrap(), 1);
        let begin = Instant::now();
        assert_eq!(ours.read(&mut byte).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(begin.elapsed(), SILENCE_MAX);
        // Whoever does not read what is written is silent, too.
        drop(theirs.write_all(b"x").await);
        ours.read_exact(&mut byte).await.unwrap();
        let stuck = ours.write_all(&[0; 1_000]).await;
        assert_eq!(stuck.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
