//! The front: what all connections share, and the loop that takes new ones.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use forewarn_wire::Problem;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::answer::Shown;
use super::connection::Connection;
use super::rate::Limiter;
use super::request::{self, After, Body, Head, Method};
use super::route::{Asked, route};
use super::settings::{Identity, Recognised, Settings};
use crate::directory::Caller;
use crate::engine::Engine;

/// Connections of one front at once.
const CONNECTIONS_MAX: usize = 16_384;

/// How long to wait after a connection could not be taken, for want of file descriptors mostly.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The metadata endpoint: what all of its listeners and connections share.
#[derive(Debug)]
pub struct Front {
    pub(super) engine: Engine,
    pub(super) settings: Settings,
    pub(super) limiter: Option<Limiter>,
    places: Arc<Semaphore>,
}

/// What a buffer has at its start.
pub(super) enum Reading {
    /// A part of a head.
    Partial,
    /// Nothing that could be a request; what comes after it cannot be known.
    Broken { problem: Problem, shown: Shown },
    /// A request.
    Request(Ticket),
}

/// A request that was understood, up to its body.
pub(super) struct Ticket {
    pub asked: Result<(Arc<Caller>, Asked), Problem>,
    pub terms: Terms,
    pub head_bytes: usize,
}

/// How a request wants to be treated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub after: After,
    pub shown: Shown,
    pub body: Body,
    /// Whether the body comes only when asked for.
    pub expects_continue: bool,
}

impl Front {
    /// A front for the machines of that engine.
    #[must_use]
    pub fn new(engine: Engine, settings: Settings) -> Arc<Self> {
        let limiter = settings.rate.map(Limiter::new);
        Arc::new(Self { engine, settings, limiter, places: Arc::new(Semaphore::new(CONNECTIONS_MAX)) })
    }

    /// Answers whoever connects there, for as long as it is polled. Connections end with it.
    pub async fn serve(self: Arc<Self>, listener: TcpListener, identity: Identity) {
        let identity = Arc::new(identity);
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, peer)) => self.take(&mut connections, stream, peer.ip(), &identity),
                    Err(error) => {
                        tracing::warn!(%error, "no connection could be taken");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
            }
        }
    }

    /// Gives a connection its place, or closes it if there is none.
    fn take(
        self: &Arc<Self>,
        connections: &mut JoinSet<()>,
        stream: TcpStream,
        peer: IpAddr,
        identity: &Arc<Identity>,
    ) {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else { return };
        let connection = Connection::new(Arc::clone(self), Arc::clone(identity), stream, peer);
        connections.spawn(async move {
            // Whoever hangs up, or is too slow, needs no answer.
            drop(connection.run().await);
            drop(place);
        });
    }

    /// Understands what is at the start of a buffer, checks in their order.
    pub(super) fn understand(&self, input: &[u8], identity: &Identity, peer: IpAddr) -> Reading {
        let recognised = identity.by_network(self.engine.directory(), peer);
        match request::read(input, &self.settings.host_names) {
            Ok(None) => Reading::Partial,
            Ok(Some(head)) => Reading::Request(self.ticket(&head, recognised, identity)),
            Err(problem) => {
                let is_head = input.trim_ascii_start().starts_with(b"HEAD ");
                let shown = if is_head { Shown::HeadOnly } else { Shown::Whole };
                let problem = match recognised {
                    Recognised::Stranger => Problem::UnknownCaller,
                    Recognised::Caller(_) | Recognised::NotYet => problem,
                };
                Reading::Broken { problem, shown }
            }
        }
    }

    fn ticket(&self, head: &Head<'_>, recognised: Recognised, identity: &Identity) -> Ticket {
        let path = head.target.path.as_ref();
        let caller = match recognised {
            Recognised::Caller(caller) => Some((caller, path)),
            Recognised::Stranger => None,
            Recognised::NotYet => identity.by_path(self.engine.directory(), path),
        };
        let asked = match caller {
            Some((caller, path)) => {
                let has = |version, path: &str| caller.instance.has(version, path);
                route(head, path, &self.settings, has).map(|asked| (caller, asked))
            }
            None => Err(Problem::UnknownCaller),
        };
        let terms = Terms {
            after: head.after,
            shown: if head.method == Method::Head { Shown::HeadOnly } else { Shown::Whole },
            body: head.body,
            expects_continue: head.expects_continue && head.body != Body::NONE,
        };
        Ticket { asked, terms, head_bytes: head.bytes }
    }
}
