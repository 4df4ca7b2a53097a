//! One HTTP/2 connection to a member, and the examination of it.
//!
//! A member that is stopped, or a network that drops packets, closes nothing. So a connection on which calls or watches
//! wait is examined at an interval: the member has to answer a call for its status in time, or else the connection is
//! closed, and everything that waits on it fails. HTTP/2 pings would do the same with less, but by default etcd closes
//! connections on which they come more often than every 5 seconds.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::client::conn::http2::Builder;
use hyper_util::rt::{TokioExecutor, TokioIo};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tonic::body::Body;

use crate::channel::Channel;
use crate::error::error_chain;

/// Bytes that a member may send ahead of one reader, and of all readers of a connection: a watch that nobody reads does
/// not hold up the others.
const STREAM_WINDOW_BYTES: u32 = 2 * 1024 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 64 * 1024 * 1024;

/// Maximum bytes of the head of a response.
const HEAD_BYTES_MAX: u32 = 64 * 1024;

/// TCP keepalive: idle time, interval, and number of probes.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(5), Duration::from_secs(2), 3);

/// An open connection. Dropping it lets calls and watches on it end, then closes it.
#[derive(Debug)]
pub(crate) struct Connection {
    channel: Channel,
    use_count: Arc<UseCount>,
    examiner: JoinHandle<()>,
    /// The error that has closed the connection.
    failure: Arc<OnceLock<String>>,
}

/// Calls and watches that wait on a connection.
#[derive(Debug, Default)]
struct UseCount {
    number: AtomicUsize,
    /// Wakes the examiner.
    suspicion: Notify,
}

/// A call or a watch on a connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionUse {
    connection: Arc<Connection>,
}

/// Intervals and time limits of examinations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExaminationTimes {
    pub(crate) interval: Duration,
    pub(crate) limit: Duration,
}

impl Connection {
    /// Starts HTTP/2 on a stream. `examine` returns true if a member has answered on the channel.
    pub(crate) async fn start<S, E>(
        stream: S,
        times: ExaminationTimes,
        examine: impl Fn(Channel) -> E + Send + 'static,
    ) -> hyper::Result<Arc<Self>>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        E: Future<Output = bool> + Send + 'static,
    {
        let (close, closing) = oneshot::channel();
        let failure = Arc::new(OnceLock::new());
        let stream = ClosableStream { stream, closing: Some(closing), failure: Arc::clone(&failure) };
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_header_list_size(HEAD_BYTES_MAX);
        let (sender, driver) = builder.handshake::<_, Body>(TokioIo::new(stream)).await?;
        // Errors of the connection surface in every call on it.
        tokio::spawn(async move { drop(driver.await) });
        let channel = Channel::new(sender);
        let use_count = Arc::new(UseCount::default());
        let examiner = Examiner { channel: channel.clone(), use_count: Arc::clone(&use_count), times, close };
        let examiner = tokio::spawn(examiner.run(examine));
        Ok(Arc::new(Self { channel, use_count, examiner, failure }))
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.channel.is_closed()
    }

    /// The error that has closed the connection, as the operating system or TLS has reported it.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// Has the connection examined now: a call has timed out.
    pub(crate) fn suspect(&self) {
        self.use_count.suspicion.notify_one();
    }

    /// Registers a call or a watch.
    pub(crate) fn enter(self: Arc<Self>) -> ConnectionUse {
        self.use_count.number.fetch_add(1, Ordering::Relaxed);
        ConnectionUse { connection: self }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.examiner.abort();
    }
}

impl ConnectionUse {
    pub(crate) fn channel(&self) -> Channel {
        self.connection.channel.clone()
    }
}

impl Drop for ConnectionUse {
    fn drop(&mut self) {
        self.connection.use_count.number.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Sets options of a socket. Best effort: they only reduce latency, of sending and of noticing a lost peer.
pub(crate) fn tune(stream: &TcpStream) {
    stream.set_nodelay(true).ok();
    let (idle, every, times) = KEEPALIVE;
    let keepalive = TcpKeepalive::new().with_time(idle).with_interval(every).with_retries(times);
    SockRef::from(stream).set_tcp_keepalive(&keepalive).ok();
}

/// Examines a connection until it is closed.
struct Examiner {
    channel: Channel,
    use_count: Arc<UseCount>,
    times: ExaminationTimes,
    close: oneshot::Sender<()>,
}

impl Examiner {
    async fn run<E: Future<Output = bool> + Send>(self, examine: impl Fn(Channel) -> E) {
        let mut ticks = interval(self.times.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.reset();
        while !self.channel.is_closed() {
            let is_suspected = tokio::select! {
                _ = ticks.tick() => false,
                () = self.use_count.suspicion.notified() => true,
            };
            if !is_suspected && self.use_count.number.load(Ordering::Relaxed) == 0 {
                continue;
            }
            let examination = timeout(self.times.limit, examine(self.channel.clone()));
            if !examination.await.unwrap_or(false) {
                break;
            }
        }
        // If nobody receives it, the connection is already closed.
        self.close.send(()).ok();
    }
}

/// A stream that can be closed from outside, whatever waits on it. Dropping the sender does not close it.
struct ClosableStream<S> {
    stream: S,
    /// None if it cannot be closed any more.
    closing: Option<oneshot::Receiver<()>>,
    /// The first error, which HTTP/2 does not always pass on.
    failure: Arc<OnceLock<String>>,
}

impl<S: AsyncRead + Unpin> AsyncRead for ClosableStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = self.poll_closing(context).unwrap_or_else(|| {
            let stream = Pin::new(&mut self.stream);
            stream.poll_read(context, buffer)
        });
        self.noted(read)
    }
}

impl<S> ClosableStream<S> {
    /// Notes the error of an operation.
    fn noted<T>(&self, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if let Poll::Ready(Err(error)) = &done {
            self.failure.get_or_init(|| error_chain(error));
        }
        done
    }

    /// The end of the stream, if it is closed from outside.
    fn poll_closing(&mut self, context: &mut Context<'_>) -> Option<Poll<io::Result<()>>> {
        match Pin::new(self.closing.as_mut()?).poll(context) {
            Poll::Ready(Ok(())) => return Some(Poll::Ready(Err(unanswered()))),
            Poll::Ready(Err(_)) => self.closing = None,
            Poll::Pending => {}
        }
        None
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ClosableStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.noted(written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.noted(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.noted(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

fn unanswered() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the member no longer answers")
}
