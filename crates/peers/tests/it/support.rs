//! A realm for tests: servers with listeners, and a handler that notes everything.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use forewarn_control::{ClusterId, ControlError, Stream};
use forewarn_http_client::Bytes;
use forewarn_peers::{
    AskedTenants, AuditChunks, AuditQuery, AuditSearch, ChunksBroken, FoundEntries, HandlerUnavailable,
    HeardTenants, Heartbeat, HeartbeatExchange, HeartbeatReport, HeartbeatTimes, Heartbeats, ListenerLimits,
    MovedStream, OwnedStream, OwnerDecision, Peer, PeerClient, PeerHandler, PeerIdentity, PeerLimits,
    PeerListener, RealmAuthority, ReceivedRequest, RejectedConnection, RequestAnswer, ServerDuty,
};
use forewarn_types::{Name, Steady, Timestamp};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Longer than anything takes on the slowest machine: a test that waits so long has failed.
pub const DEADLINE: Duration = Duration::from_secs(60);

pub fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// Limits for slow machines: only tests of limits have short ones.
pub fn patient() -> PeerLimits {
    PeerLimits {
        connect: DEADLINE,
        handshake: DEADLINE,
        queue: DEADLINE,
        idle: DEADLINE,
        ..PeerLimits::default()
    }
}

/// A list of which every change can be waited for.
pub struct Notes<T>(watch::Sender<Vec<T>>);

impl<T> Default for Notes<T> {
    fn default() -> Self {
        Self(watch::Sender::new(Vec::new()))
    }
}

impl<T: Clone> Notes<T> {
    pub fn add(&self, note: T) {
        self.0.send_modify(|notes| notes.push(note));
    }

    pub fn count(&self, is_meant: impl Fn(&T) -> bool) -> usize {
        self.0.borrow().iter().filter(|note| is_meant(note)).count()
    }

    /// Waits until so many notes are of that kind. Returns the last of them.
    pub async fn wait(&self, number: usize, is_meant: impl Fn(&T) -> bool) -> T {
        let mut receiver = self.0.subscribe();
        let enough = |notes: &Vec<T>| notes.iter().filter(|note| is_meant(note)).count() >= number;
        let waiting = receiver.wait_for(enough);
        let notes = timeout(DEADLINE, waiting).await.expect("waited in vain").expect("the sender lives");
        notes.iter().rev().find(|note| is_meant(note)).expect("there is one").clone()
    }
}

type Decide = dyn Fn(&ReceivedRequest) -> RequestAnswer + Send + Sync;

/// The handler of a server in tests.
pub struct TestHandler {
    name: Name,
    decide: Box<Decide>,
    /// While true, heartbeats are not answered.
    pub holds_heartbeats: watch::Sender<bool>,
    /// While true, requests are not answered.
    pub holds_requests: watch::Sender<bool>,
    pub heartbeats: Notes<(Name, Heartbeat)>,
    pub requests: Notes<(Name, ReceivedRequest)>,
    pub moves: Notes<(Name, MovedStream)>,
    pub rejections: Notes<RejectedConnection>,
    /// Results of heartbeats that this server sends.
    pub reports: Notes<HeartbeatReport>,
    /// While true, queries of the audit log are not answered.
    pub holds_searches: watch::Sender<bool>,
    pub searches: Notes<AuditSearch>,
    /// The answer to queries of the audit log.
    pub found: Mutex<Option<FoundEntries>>,
    /// The chunks of the next query of audit entries.
    pub chunks: Mutex<Option<VecDeque<Result<Bytes, ChunksBroken>>>>,
}

impl TestHandler {
    pub fn new(
        name: Name,
        decide: impl Fn(&ReceivedRequest) -> RequestAnswer + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            decide: Box::new(decide),
            holds_heartbeats: watch::Sender::new(false),
            holds_requests: watch::Sender::new(false),
            heartbeats: Notes::default(),
            requests: Notes::default(),
            moves: Notes::default(),
            rejections: Notes::default(),
            reports: Notes::default(),
            holds_searches: watch::Sender::new(false),
            searches: Notes::default(),
            found: Mutex::default(),
            chunks: Mutex::default(),
        }
    }

    /// A heartbeat of this server.
    pub fn state(&self) -> Heartbeat {
        let stream = Stream::Cluster(ClusterId(3));
        Heartbeat {
            from: self.name.clone(),
            sent: Steady::from_millis(5),
            wall: Timestamp::from_millis(1_767_225_600_000),
            present_millis: 60_000,
            duty: ServerDuty::Active,
            engine_age_millis: Some(40),
            silent_millis: BTreeMap::from([(name("z"), 1_000)]),
            followed: BTreeMap::from([(Stream::Shared, 7), (stream, 9)]),
            owned: BTreeMap::from([(stream, OwnedStream { term: 2, published: 9 })]),
            asked: AskedTenants::new(),
            heard: HeardTenants::new(),
        }
    }

    pub fn answers_of(&self, peer: &str) -> usize {
        self.reports.count(|report| report.peer.as_str() == peer && report.answer.is_ok())
    }
}

async fn released(hold: &watch::Sender<bool>) {
    hold.subscribe().wait_for(|holds| !holds).await.expect("the handler lives");
}

/// The chunks of a list.
pub struct TestChunks(VecDeque<Result<Bytes, ChunksBroken>>);

impl AuditChunks for TestChunks {
    async fn next(&mut self) -> Result<Option<Bytes>, ChunksBroken> {
        self.0.pop_front().transpose()
    }
}

impl PeerHandler for TestHandler {
    type Audit = TestChunks;

    async fn heartbeat(&self, caller: &Name, heartbeat: Heartbeat) -> Heartbeat {
        self.heartbeats.add((caller.clone(), heartbeat));
        released(&self.holds_heartbeats).await;
        self.state()
    }

    async fn request(&self, caller: &Name, request: ReceivedRequest) -> RequestAnswer {
        self.requests.add((caller.clone(), request.clone()));
        released(&self.holds_requests).await;
        (self.decide)(&request)
    }

    async fn moved(&self, caller: &Name, moved: MovedStream) {
        self.moves.add((caller.clone(), moved));
    }

    async fn search(&self, _: &Name, search: AuditSearch) -> Result<FoundEntries, HandlerUnavailable> {
        self.searches.add(search);
        released(&self.holds_searches).await;
        self.found.lock().unwrap().clone().ok_or_else(|| HandlerUnavailable("the log is closed".to_owned()))
    }

    async fn audit(&self, _: &Name, query: AuditQuery) -> Result<TestChunks, HandlerUnavailable> {
        let chunks = self.chunks.lock().unwrap().take();
        chunks.map(TestChunks).ok_or_else(|| HandlerUnavailable(format!("no entries of {}", query.stream)))
    }

    fn rejected(&self, connection: &RejectedConnection) {
        self.rejections.add(connection.clone());
    }
}

impl HeartbeatExchange for TestHandler {
    fn heartbeat(&self, _: &Name) -> Heartbeat {
        self.state()
    }

    fn report(&self, report: HeartbeatReport) {
        self.reports.add(report);
    }
}

/// A realm: an authority.
pub struct Realm(String);

impl Realm {
    pub fn new() -> Self {
        Self(RealmAuthority::create(SystemTime::now()).unwrap())
    }

    pub fn authority(&self) -> RealmAuthority {
        RealmAuthority::from_secret(&self.0).unwrap()
    }

    pub fn identity(&self, server: &str) -> Arc<PeerIdentity> {
        PeerIdentity::of_authority(self.authority(), name(server), vec!["127.0.0.1".to_owned()]).unwrap()
    }

    pub async fn server(&self, server: &str) -> TestServer {
        TestServer::start(self.identity(server), unavailable).await
    }
}

/// The answer of a server that decides nothing.
pub fn unavailable(_: &ReceivedRequest) -> RequestAnswer {
    RequestAnswer::Decided(Box::new(OwnerDecision { result: Err(ControlError::Unavailable), published: 0 }))
}

/// A server with a listener. Dropping it closes everything at once.
pub struct TestServer {
    pub identity: Arc<PeerIdentity>,
    pub handler: Arc<TestHandler>,
    pub address: SocketAddr,
    pub listener: JoinHandle<()>,
    pub stop: watch::Sender<bool>,
}

impl TestServer {
    pub async fn start(
        identity: Arc<PeerIdentity>,
        decide: impl Fn(&ReceivedRequest) -> RequestAnswer + Send + Sync + 'static,
    ) -> Self {
        let limits = ListenerLimits { handshake: DEADLINE, ..ListenerLimits::default() };
        Self::start_with(identity, decide, limits, "127.0.0.1:0".parse().unwrap()).await
    }

    pub async fn start_with(
        identity: Arc<PeerIdentity>,
        decide: impl Fn(&ReceivedRequest) -> RequestAnswer + Send + Sync + 'static,
        limits: ListenerLimits,
        address: SocketAddr,
    ) -> Self {
        let listener = PeerListener::bind(address, Arc::clone(&identity), limits).await.unwrap();
        let address = listener.address().unwrap();
        let handler = Arc::new(TestHandler::new(identity.name().clone(), decide));
        let stop = watch::Sender::new(false);
        let mut stopped = stop.subscribe();
        let serving = listener.serve(Arc::clone(&handler), async move {
            stopped.wait_for(|stopped| *stopped).await.ok();
        });
        Self { identity, handler, address, listener: tokio::spawn(serving), stop }
    }

    /// Closes everything, and waits until the address is free.
    pub async fn end(mut self) {
        self.listener.abort();
        timeout(DEADLINE, &mut self.listener).await.expect("in time").ok();
    }

    pub fn peer(&self) -> Peer {
        Peer { name: self.identity.name().clone(), address: self.address.to_string() }
    }

    /// A client of this server for another one.
    pub fn client(&self, other: &Self) -> PeerClient {
        PeerClient::new(other.peer(), Arc::clone(&self.identity), patient())
    }

    /// Heartbeats of this server to others.
    pub fn heartbeats(&self, peers: impl IntoIterator<Item = Peer>) -> Heartbeats {
        self.heartbeats_within(DEADLINE, peers)
    }

    /// Heartbeats with a time limit, also of handshakes.
    pub fn heartbeats_within(&self, limit: Duration, peers: impl IntoIterator<Item = Peer>) -> Heartbeats {
        let times =
            HeartbeatTimes { interval: Duration::from_millis(10), limit, ..HeartbeatTimes::default() };
        self.heartbeats_at(times, watch::Sender::new(()).subscribe(), peers)
    }

    /// Heartbeats at times, and when they are prompted.
    pub fn heartbeats_at(
        &self,
        times: HeartbeatTimes,
        prompts: watch::Receiver<()>,
        peers: impl IntoIterator<Item = Peer>,
    ) -> Heartbeats {
        let (identity, limits) =
            (Arc::clone(&self.identity), PeerLimits { handshake: times.limit, ..patient() });
        let heartbeats = Heartbeats::new(identity, (self.handler.clone(), prompts), times, limits);
        heartbeats.set_peers(peers);
        heartbeats
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.listener.abort();
    }
}
