//! Heartbeats to other servers: one task and one connection for each, so that none delays another.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use forewarn_types::Name;
use hyper::StatusCode;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::bodies::{decode, encode};
use crate::connection::{OutgoingMessage, PeerConnection, SendFailure};
use crate::error::PeerError;
use crate::identity::PeerIdentity;
use crate::limits::{HEARTBEAT_BYTES_MAX, PeerLimits};
use crate::message::{HEARTBEAT, Heartbeat};
use crate::peer::Peer;

/// Writes heartbeats, and gets their results. Neither function may block.
pub trait HeartbeatExchange: Send + Sync + 'static {
    /// The next heartbeat to a server.
    fn heartbeat(&self, to: &Name) -> Heartbeat;

    /// Takes the result of a heartbeat. A server that is silent gives an error each time: after an interval, or after a
    /// limit if it does not even refuse connections.
    fn report(&self, report: HeartbeatReport);
}

/// The result of one heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeartbeatReport {
    /// The other server.
    pub peer: Name,
    /// Its answer.
    pub answer: Result<HeartbeatReturn, PeerError>,
}

/// The answer to a heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeartbeatReturn {
    /// The state of the other server.
    pub heartbeat: Heartbeat,
    /// Time from writing the heartbeat to its answer, without the time to connect.
    pub round_trip: Duration,
}

/// Times of heartbeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeartbeatTimes {
    /// Time from one heartbeat to the next.
    pub interval: Duration,
    /// Minimum time from one heartbeat to another that a prompt asks for.
    pub pause: Duration,
    /// Maximum time until an answer, on an open connection. Opening one has the limits of a client.
    pub limit: Duration,
}

impl Default for HeartbeatTimes {
    fn default() -> Self {
        Self {
            interval: Duration::from_millis(250),
            pause: Duration::from_millis(10),
            limit: Duration::from_millis(500),
        }
    }
}

/// Heartbeats to a set of servers, which may change. Dropping it ends them.
pub struct Heartbeats {
    shared: Arc<HeartbeatContext>,
    tasks: Mutex<BTreeMap<Name, PeerTask>>,
}

struct HeartbeatContext {
    identity: Arc<PeerIdentity>,
    exchange: Arc<dyn HeartbeatExchange>,
    prompts: watch::Receiver<()>,
    times: HeartbeatTimes,
    limits: PeerLimits,
}

/// The task of one server.
struct PeerTask {
    address: String,
    handle: JoinHandle<()>,
}

impl Heartbeats {
    /// Heartbeats to no server yet. A change of `prompts` asks for heartbeats before the interval is over.
    #[must_use]
    pub fn new(
        identity: Arc<PeerIdentity>,
        (exchange, prompts): (Arc<dyn HeartbeatExchange>, watch::Receiver<()>),
        times: HeartbeatTimes,
        limits: PeerLimits,
    ) -> Self {
        let shared = Arc::new(HeartbeatContext { identity, exchange, prompts, times, limits });
        Self { shared, tasks: Mutex::default() }
    }

    /// Sends heartbeats to these servers and no others. Those that stay keep their connections, unless their address
    /// has changed. Must be called in a runtime, which runs the tasks.
    pub fn set_peers(&self, peers: impl IntoIterator<Item = Peer>) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let mut before = std::mem::take(&mut *tasks);
        for peer in peers {
            let kept = before.remove(&peer.name).filter(|task| task.address == peer.address);
            let task = kept.unwrap_or_else(|| self.start(peer.clone()));
            tasks.insert(peer.name, task);
        }
    }

    fn start(&self, peer: Peer) -> PeerTask {
        let address = peer.address.clone();
        let shared = Arc::clone(&self.shared);
        PeerTask { address, handle: tokio::spawn(async move { shared.beat(&peer).await }) }
    }
}

impl Drop for PeerTask {
    fn drop(&mut self) {
        self.handle.abort();
    }
}

impl HeartbeatContext {
    async fn beat(&self, peer: &Peer) {
        let mut ticks = interval(self.times.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut prompts, mut connection) = (self.prompts.clone(), None);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                // A server that is silent is not asked more often.
                () = self.prompted(&mut prompts), if connection.is_some() => {}
            }
            prompts.mark_unchanged();
            let answer = self.once(peer, connection.take()).await.map(|(answer, kept)| {
                connection = Some(kept);
                answer
            });
            self.exchange.report(HeartbeatReport { peer: peer.name.clone(), answer });
        }
    }

    /// Waits for a prompt.
    async fn prompted(&self, prompts: &mut watch::Receiver<()>) {
        sleep(self.times.pause).await;
        if prompts.changed().await.is_err() {
            // There will be none.
            std::future::pending::<()>().await;
        }
    }

    /// Sends one heartbeat. Returns its answer, and the connection for the next one.
    async fn once(
        &self,
        peer: &Peer,
        connection: Option<PeerConnection>,
    ) -> Result<(HeartbeatReturn, PeerConnection), PeerError> {
        let usable = connection.filter(|connection| connection.is_usable(self.limits.idle));
        let mut connection = match usable {
            Some(connection) => connection,
            None => PeerConnection::open(peer, &self.identity, &self.limits).await?,
        };
        let begun = Instant::now();
        let body = encode(&self.exchange.heartbeat(&peer.name)).map_err(PeerError::InvalidAnswer)?;
        let message = OutgoingMessage::post(HEARTBEAT, body);
        let answer = connection.exchange(&message, HEARTBEAT_BYTES_MAX, self.times.limit).await;
        let (answer, round_trip) = (answer.map_err(SendFailure::into_error)?, begun.elapsed());
        if answer.status != StatusCode::OK.as_u16() {
            let reason = String::from_utf8_lossy(&answer.body).into_owned();
            return Err(PeerError::Rejected { status: answer.status, reason });
        }
        let heartbeat: Heartbeat = decode(answer.body).await.map_err(PeerError::InvalidAnswer)?;
        if heartbeat.from != peer.name {
            return Err(PeerError::InvalidAnswer(format!("a heartbeat of {}", heartbeat.from)));
        }
        Ok((HeartbeatReturn { heartbeat, round_trip }, connection))
    }
}

impl std::fmt::Debug for Heartbeats {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        write!(out, "Heartbeats({:?})", tasks.keys().collect::<Vec<_>>())
    }
}
