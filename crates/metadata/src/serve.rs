//! The loop that accepts connections of a listener.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, UnixListener};

use crate::connection::Connection;
use crate::connections::Connections;
use crate::control_plane::ControlPlane;
use crate::front::Front;
use crate::listener::{Listener, Listening};
use crate::settings::Identity;
use crate::stream::{Socket, Stream};

/// Pause after a connection could not be accepted, mostly for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

impl<C: ControlPlane> Front<C> {
    /// Answers clients of a listener until `stop` returns, and then those that have sent a request by that time. Connections
    /// end with it.
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
            Listening::Tcp(socket) => self.take_all(TcpListener::from_std(socket)?, &identity, stop).await,
            Listening::Unix(socket, file) => {
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
                        tracing::warn!(%error, unlogged, "a connection of a machine could not be accepted");
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(socket);
        connections.stop().await;
    }

    /// Gives a connection its place, or closes it if there is none.
    fn take<S: Stream + 'static>(
        self: &Arc<Self>,
        connections: &Connections,
        stream: S,
        peer: Option<IpAddr>,
        identity: &Arc<Identity>,
    ) {
        let Some(taken) = self.place(identity, peer) else { return stream.reject() };
        let (front, identity) = (Arc::clone(self), Arc::clone(identity));
        connections.spawn(|seat| {
            let mut connection = Connection::new(front, identity, stream, peer, seat);
            async move {
                // Whoever hangs up, or is too slow, needs no answer.
                drop(connection.run().await);
                drop(taken);
            }
        });
    }
}
