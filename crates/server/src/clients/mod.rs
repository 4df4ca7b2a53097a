//! Connections of HTTP clients: the listeners of the operator API and of extensions.
//!
//! ```text
//!   accept ─▶ table: a free entry, the entry of a weaker connection, or a 503
//!               │
//!               └─▶ task: TLS handshake ─▶ requests ─▶ router
//!                     state: stage, deadline, token
//!                       └─▶ a response without an end: a task on the thread of streams
//! ```
//!
//! A client that has not authenticated cannot keep others out: it has few connections per address,
//! short deadlines, and is the first to be replaced. The metadata endpoint has its own listeners and limits.

mod bodies;
mod connection;
mod connection_state;
mod connection_watch;
mod counts;
mod detached;
mod holder;
mod limits;
mod listener_shared;
mod origin;
mod refusal;
mod stage;
mod stream;
mod table;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use forewarn_metadata::Throttle;
use rustix::io::Errno;
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinError, JoinSet};

use crate::control_handle::ControlHandle;
use crate::tls::Tls;
use connection_state::ConnectionState;
pub(crate) use counts::ClientCounts;
use detached::DetachedStream;
pub(crate) use detached::EndlessBody;
use forewarn_control::Permit;
pub use holder::{TooManyConnections, authenticate_connection};
pub use limits::ClientLimits;
use listener_shared::ListenerShared;
use origin::Origin;
pub use refusal::{ConnectionRefusal, RefusalFormat};
use stage::Stage;
use stream::Duplex;

/// Limits that may change while a server runs.
pub(crate) type LimitsCell = Arc<ArcSwap<ClientLimits>>;

/// Pause after a connection could not be accepted, usually for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Maximum rejections of a listener that wait until their client has read them.
const REFUSALS_MAX: usize = 64;

/// A socket that listens.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpListener, Option<Arc<Tls>>),
    Unix(UnixListener),
}

/// Dependencies of a listener besides its socket.
#[derive(Clone, Debug)]
pub(crate) struct ListenerContext {
    pub(crate) control: ControlHandle,
    pub(crate) counts: ClientCounts,
    pub(crate) limits: LimitsCell,
    pub(crate) stop: watch::Receiver<bool>,
    /// The thread of streams.
    pub(crate) streams: Handle,
}

/// A listener with its connections.
pub(crate) struct Clients {
    socket: Socket,
    control: ControlHandle,
    shared: Arc<ListenerShared>,
    streams: Handle,
    failures: Throttle,
}

/// Tasks of connections. A task may return a stream, which continues on another thread.
type Connections = JoinSet<Option<DetachedStream>>;

impl Clients {
    /// A listener; `name` is its label in metrics and in the log.
    pub(crate) fn new(
        name: &'static str,
        refusal_format: RefusalFormat,
        socket: Socket,
        router: axum::Router,
        context: ListenerContext,
    ) -> Self {
        let ListenerContext { control, counts, limits, stop, streams } = context;
        let tls = match &socket {
            Socket::Tcp(_, tls) => tls.clone(),
            Socket::Unix(_) => None,
        };
        let shared = ListenerShared {
            router,
            refusal_format,
            tls,
            limits,
            counts: counts.of(name),
            table: Arc::default(),
            refusals: Semaphore::new(REFUSALS_MAX),
            pressure: Throttle::default(),
            stop,
        };
        Self { socket, control, shared: Arc::new(shared), streams, failures: Throttle::default() }
    }

    /// Serves until the server stops; then closes idle connections and waits until the others have their responses.
    pub(crate) async fn run(self) {
        let mut connections = Connections::new();
        let mut stop = self.shared.stop.clone();
        let mut stopped = std::pin::pin!(async move { drop(stop.wait_for(|stop| *stop).await) });
        loop {
            tokio::select! {
                () = &mut stopped => break,
                Some(ended) = connections.join_next() => detach(&mut connections, ended, &self.streams),
                accepted = self.accept() => match accepted {
                    Ok((stream, origin)) => self.take(&mut connections, stream, origin),
                    Err(error) => self.fail(&error).await,
                },
            }
        }
        drop(self.socket);
        while let Some(ended) = connections.join_next().await {
            detach(&mut connections, ended, &self.streams);
        }
    }

    async fn accept(&self) -> io::Result<(Duplex, Origin)> {
        match &self.socket {
            Socket::Tcp(listener, _) => {
                let (stream, peer) = listener.accept().await?;
                Ok((Duplex::Tcp(stream), Origin::of(peer)))
            }
            Socket::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                let user = stream.peer_cred().ok().map(|peer| peer.uid());
                Ok((Duplex::Unix(stream), Origin::User(user)))
            }
        }
    }

    /// Starts the task of a connection, or rejects it.
    fn take(&self, connections: &mut Connections, stream: Duplex, origin: Origin) {
        let shared = Arc::clone(&self.shared);
        shared.counts.accepted();
        let stage = if shared.tls.is_some() { Stage::Handshake } else { Stage::New };
        let state = ConnectionState::new(stage, shared.counts.open());
        match shared.table.admit(&shared.limits(), origin, &state, |permit| self.is_valid(permit)) {
            Ok((entry, dropped)) => {
                for reason in dropped {
                    shared.counts.dropped(reason);
                    shared.warn(reason);
                }
                connections.spawn(shared.serve(stream, state, entry));
            }
            Err(reason) => {
                shared.counts.refused(reason);
                shared.warn(reason);
                connections.spawn(async move {
                    shared.refuse_newcomer(stream, &state).await;
                    None
                });
            }
        }
    }

    /// Returns true if the token of a permit is still valid.
    fn is_valid(&self, permit: &Permit) -> bool {
        self.control.admits(permit)
    }

    /// Closes a connection if there is no file descriptor left, and pauses.
    async fn fail(&self, error: &io::Error) {
        let counts = &self.shared.counts;
        counts.failed();
        if let Some(unlogged) = self.failures.pass() {
            let listener = counts.listener();
            tracing::warn!(listener, %error, unlogged, "cannot accept a client connection");
        }
        if is_shortage(error)
            && let Some(reason) = self.shared.table.relieve(|permit| self.is_valid(permit))
        {
            counts.dropped(reason);
        }
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }
}

/// Continues a connection with a response without an end on the thread of streams.
fn detach(connections: &mut Connections, ended: Result<Option<DetachedStream>, JoinError>, streams: &Handle) {
    if let Ok(Some(detached)) = ended {
        let sending = async move {
            detached.run().await;
            None
        };
        connections.spawn_on(sending, streams);
    }
}

/// Returns true for errors of resources that other connections hold.
fn is_shortage(error: &io::Error) -> bool {
    let shortages = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|errno| shortages.contains(&errno))
}
