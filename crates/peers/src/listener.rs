//! The listener for other servers. It accepts only certificates of servers of the realm.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use forewarn_types::Name;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::caller_verifier::handshake_reason;
use crate::certified_name::certified_name;
use crate::handler::{PeerHandler, RejectedConnection};
use crate::identity::PeerIdentity;
use crate::limits::{CONNECTION_AGE_MAX, HEAD_BYTES_MAX, ListenerLimits};
use crate::routes::Routes;
use crate::socket::tune;

/// Pause after a connection could not be accepted, usually for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Bytes and time that are read of a rejected connection before it is closed: closing with unread bytes would lose the
/// alert that tells the caller why.
const DRAINED_BYTES_MAX: u64 = 64 * 1024;
const DRAINED_TIME_MAX: Duration = Duration::from_millis(500);

/// A socket that listens for other servers.
#[derive(Debug)]
pub struct PeerListener {
    socket: TcpListener,
    identity: Arc<PeerIdentity>,
    limits: ListenerLimits,
}

impl PeerListener {
    /// Listens at an address.
    ///
    /// # Errors
    /// Fails if the address cannot be used.
    pub async fn bind(
        address: SocketAddr,
        identity: Arc<PeerIdentity>,
        limits: ListenerLimits,
    ) -> io::Result<Self> {
        Ok(Self { socket: TcpListener::bind(address).await?, identity, limits })
    }

    /// The address, with the port that was chosen.
    ///
    /// # Errors
    /// Fails if the system does not know it.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Serves until `stop` completes; then answers requests in flight, within the limit. Dropping the future closes all
    /// connections at once.
    pub async fn serve<H: PeerHandler>(self, handler: Arc<H>, stop: impl Future<Output = ()> + Send) {
        let (stopping, stopped) = watch::channel(false);
        let mut connections = JoinSet::new();
        let mut stop = pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                Some(_) = connections.join_next() => {}
                accepted = self.socket.accept() => match accepted {
                    Ok((stream, from)) if connections.len() < self.limits.connections => {
                        let connection = self.connection(&handler, from, stopped.clone());
                        connections.spawn(connection.serve(stream));
                    }
                    Ok((_, from)) => {
                        handler.rejected(&RejectedConnection { from, reason: "too many connections".to_owned() });
                    }
                    Err(_) => sleep(ACCEPT_PAUSE).await,
                },
            }
        }
        let limit = self.limits.stop;
        drop(self.socket);
        stopping.send_replace(true);
        // Connections that take longer are aborted.
        timeout(limit, async { while connections.join_next().await.is_some() {} }).await.ok();
    }

    fn connection<H: PeerHandler>(
        &self,
        handler: &Arc<H>,
        from: SocketAddr,
        stopped: watch::Receiver<bool>,
    ) -> AcceptedConnection<H> {
        AcceptedConnection {
            handler: Arc::clone(handler),
            acceptor: TlsAcceptor::from(self.identity.server_config()),
            server: self.identity.name().clone(),
            limits: self.limits,
            from,
            stopped,
        }
    }
}

/// A connection of another server, from its handshake on.
struct AcceptedConnection<H> {
    handler: Arc<H>,
    acceptor: TlsAcceptor,
    server: Name,
    limits: ListenerLimits,
    from: SocketAddr,
    stopped: watch::Receiver<bool>,
}

impl<H: PeerHandler> AcceptedConnection<H> {
    async fn serve(self, stream: TcpStream) {
        tune(&stream);
        match self.shake_hands(stream).await {
            Ok((stream, caller)) => self.answer(stream, caller).await,
            Err((reason, stream)) => {
                self.handler.rejected(&RejectedConnection { from: self.from, reason });
                if let Some(stream) = stream {
                    drain(stream).await;
                }
            }
        }
    }

    async fn shake_hands(
        &self,
        stream: TcpStream,
    ) -> Result<(TlsStream<TcpStream>, Name), (String, Option<TcpStream>)> {
        let accepting = self.acceptor.accept(stream).into_fallible();
        let accepted = timeout(self.limits.handshake, accepting).await;
        let accepted = accepted.map_err(|_| ("the TLS handshake takes too long".to_owned(), None))?;
        let stream = accepted.map_err(|(error, stream)| (handshake_reason(&error), Some(stream)))?;
        let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let caller = certificates.first().and_then(certified_name);
        let caller = caller.ok_or_else(|| ("no certificate of a server".to_owned(), None))?;
        Ok((stream, caller))
    }

    /// Answers messages until the caller closes the connection, it is too old, or the listener stops.
    async fn answer(self, stream: TlsStream<TcpStream>, caller: Name) {
        let Self { handler, server, limits, mut stopped, .. } = self;
        let routes = Arc::new(Routes { handler, limits, server, caller });
        let service = service_fn(move |message| {
            let routes = Arc::clone(&routes);
            async move { Ok::<_, Infallible>(routes.answer(message).await) }
        });
        let mut builder = Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(limits.head).max_buf_size(HEAD_BYTES_MAX);
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
        let ending = async {
            tokio::select! {
                // The listener is gone if this fails.
                _ = stopped.wait_for(|stopped| *stopped) => {}
                () = sleep(2 * CONNECTION_AGE_MAX) => {}
            }
        };
        tokio::select! {
            // Errors concern the caller, which sees them too.
            _ = connection.as_mut() => return,
            () = ending => connection.as_mut().graceful_shutdown(),
        }
        connection.await.ok();
    }
}

async fn drain(mut stream: TcpStream) {
    let draining = async {
        stream.shutdown().await?;
        tokio::io::copy(&mut stream.take(DRAINED_BYTES_MAX), &mut tokio::io::sink()).await
    };
    // The connection is closed in any case.
    timeout(DRAINED_TIME_MAX, draining).await.ok();
}
