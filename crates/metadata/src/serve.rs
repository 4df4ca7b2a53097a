//! The loop that accepts connections of a listener.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, UnixListener};

use crate::connection::Connection;
use crate::connections::Connections;
use crate::control_plane::ControlPlane;
use crate::endpoint::Endpoint;
use crate::listener::{BoundSocket, Listener};
use crate::settings::Identity;
use crate::stream::{ClientStream, Socket};

/// Pause after a failed accept, mostly for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

impl<C: ControlPlane> Endpoint<C> {
    /// Serves clients of a listener until `stop` returns, and then finishes the requests in progress. Connections end
    /// with it.
    ///
    /// # Errors
    /// Fails if the runtime cannot watch the listener.
    pub async fn serve(
        self: Arc<Self>,
        listener: Listener,
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let Listener { socket, identity } = listener;
        match socket {
            BoundSocket::Tcp(socket) => self.take_all(TcpListener::from_std(socket)?, &identity, stop).await,
            BoundSocket::Unix(socket, file) => {
                self.take_all(UnixListener::from_std(socket)?, &identity, stop).await;
                drop(file);
            }
        }
        Ok(())
    }

    async fn take_all(
        self: Arc<Self>,
        socket: impl Socket,
        identity: &Arc<Identity>,
        stop: impl Future<Output = ()>,
    ) {
        let connections = Connections::default();
        tokio::pin!(stop);
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut stop => break,
                accepted = socket.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => self.current().take(&connections, stream, peer, identity),
                Err(error) => {
                    self.counts.accept_failures.inc();
                    if let Some(unlogged) = self.accept_failures.pass() {
                        tracing::warn!(%error, unlogged, "cannot accept machine connection");
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(socket);
        connections.stop().await;
    }

    /// Admits a connection, or rejects it if a limit is reached.
    fn take<S: ClientStream + 'static>(
        self: &Arc<Self>,
        connections: &Connections,
        stream: S,
        peer: Option<IpAddr>,
        identity: &Arc<Identity>,
    ) {
        let Some(taken) = self.admit_connection(identity, peer) else { return stream.reject() };
        let (endpoint, identity) = (Arc::clone(self), Arc::clone(identity));
        connections.spawn(|guard| {
            let mut connection = Connection::new(endpoint, identity, stream, peer, guard);
            async move {
                // A client that disconnects or is too slow gets no response.
                drop(connection.run().await);
                drop(taken);
            }
        });
    }
}
