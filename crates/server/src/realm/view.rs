//! The realm as this server sees it: other servers, owners, heads.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use forewarn_control::{ClusterId, Stream};
use forewarn_lifecycle::{Name, Steady, Timestamp};
use forewarn_ownership::{ClusterStanding, HeartbeatAnswer, Peers, ServerName, Uptime};
use forewarn_peers::{
    AskedTenants, HeardTenants, Heartbeat, HeartbeatReport, OwnedStream, POLL_QUESTIONS_MAX, ServerDuty,
};
use forewarn_realm::{Engine, OwnerRecord, RestoreEvidence, ServerRecord};

use super::archives::Archives;
use crate::boot;
use crate::clusters::ClusterRegistry;
use crate::driver::DriverContext;
use crate::initial_state::Readers;
use crate::message::ClusterMessage;

/// The realm as this server sees it.
pub(crate) struct RealmView {
    pub(crate) peers: Peers,
    pub(crate) standings: BTreeMap<ClusterId, ClusterStanding>,
    pub(crate) servers: BTreeMap<ServerName, ServerRecord>,
    /// Clusters that this server drives, with its terms.
    pub(crate) driven: BTreeMap<ClusterId, u64>,
    pub(crate) archives: Archives,
    /// Numbers up to which other servers have published each cluster.
    pub(crate) shown: BTreeMap<ServerName, BTreeMap<ClusterId, u64>>,
    /// This server stops, and takes nothing.
    is_leaving: bool,
    /// Last heartbeats of the other servers.
    pub(crate) heard: BTreeMap<ServerName, LastHeartbeat>,
    /// Evidence that the engine was restored from an older backup: nothing is owned.
    pub(crate) restored: Option<RestoreEvidence>,
}

/// The last heartbeat of a server.
pub(crate) struct LastHeartbeat {
    pub(crate) at: Uptime,
    /// Milliseconds by which its wall clock was ahead of the one of this server.
    pub(crate) clock_ahead_millis: i64,
    pub(crate) heartbeat: Heartbeat,
}

impl RealmView {
    /// Takes note of an operator's order to a server, or its end.
    pub(crate) fn set_draining(&mut self, name: ServerName, is_on: bool) {
        self.peers.set_draining(name, is_on);
        self.set_duty();
    }

    /// Takes nothing more: the server stops.
    pub(crate) fn leave(&mut self) {
        self.is_leaving = true;
        self.set_duty();
    }

    /// Returns true if this server gives its clusters away.
    pub(crate) fn is_draining(&self) -> bool {
        self.is_leaving || self.peers.drains(self.peers.own())
    }

    fn set_duty(&mut self) {
        let duty = if self.is_draining() { ServerDuty::Draining } else { ServerDuty::Active };
        self.peers.set_duty(duty_of(duty));
    }
}

/// The view, as heartbeats and the task of the realm share it.
#[derive(Clone)]
pub(crate) struct SharedView {
    view: Arc<Mutex<RealmView>>,
    own: Name,
    engine: Engine,
    context: DriverContext,
    clusters: ClusterRegistry,
    /// Polls before this time are unknown.
    started: Steady,
}

/// Time since the computer started.
pub(crate) fn uptime() -> Uptime {
    Uptime::from_millis(millis(boot::elapsed()))
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

impl SharedView {
    pub(crate) fn new(own: &Name, engine: Engine, context: DriverContext, clusters: ClusterRegistry) -> Self {
        let view = RealmView {
            peers: Peers::new(ServerName::from(own.clone()), uptime()),
            standings: BTreeMap::new(),
            servers: BTreeMap::new(),
            driven: BTreeMap::new(),
            archives: Archives::default(),
            shown: BTreeMap::new(),
            is_leaving: false,
            heard: BTreeMap::new(),
            restored: None,
        };
        let view = Arc::new(Mutex::new(view));
        Self { view, own: own.clone(), engine, started: context.clock.now().steady, context, clusters }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, RealmView> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of the time, and of the last answer of the engine.
    pub(crate) fn tick(&self) {
        let (now, silent) = (uptime(), millis(self.engine.silent_for()));
        let mut view = self.lock();
        view.peers.tick(now);
        view.peers.engine_answered(now.minus(silent));
    }

    /// The owner of a cluster, as the engine said last.
    pub(crate) fn owner(&self, cluster: ClusterId) -> Option<OwnerRecord> {
        self.lock().standings.get(&cluster)?.owner.clone()
    }

    /// The state of this server for another one, with questions for it and answers to its questions.
    pub(crate) fn own_heartbeat(&self, to: &Name, asked: &AskedTenants) -> Heartbeat {
        let (now, wall) = (uptime(), crate::clock::wall());
        let snapshot = self.context.broadcasts.snapshot.load();
        let clusters = snapshot.state.clusters();
        let numbers: BTreeMap<_, _> = clusters.map(|(id, state)| (id, state.log_number())).collect();
        let view = self.lock();
        let answer = view.peers.own_answer(now, wall);
        let owned = view.driven.iter().map(|(id, term)| {
            let published = numbers.get(id).copied().unwrap_or(0);
            (Stream::Cluster(*id), OwnedStream { term: *term, published })
        });
        // A server without listeners for VMs shows nothing.
        let shown = numbers.iter().filter(|_| self.context.readers() == Readers::Present);
        let followed = shown.map(|(id, number)| (Stream::Cluster(*id), *number));
        Heartbeat {
            from: self.own.clone(),
            sent: Steady::from_millis(now.millis()),
            wall,
            present_millis: answer.present_millis,
            duty: if view.is_draining() { ServerDuty::Draining } else { ServerDuty::Active },
            // A server that cannot write its journal commits nothing: another one takes its clusters over.
            engine_age_millis: self.is_writable().then_some(answer.engine_silent_millis),
            silent_millis: answer
                .silences
                .into_iter()
                .filter_map(|(name, silent)| Some((Name::new(name.as_str()).ok()?, silent)))
                .collect(),
            followed: followed.collect(),
            owned: owned.collect(),
            asked: self.context.peer_polls.questions_for(to),
            heard: self.polls_of(asked),
        }
    }

    /// The time since the last poll of tenants at this server.
    fn polls_of(&self, asked: &AskedTenants) -> HeardTenants {
        let (now, directory) = (self.context.clock.now().steady, &self.context.directory);
        let mut heard = HeardTenants::new();
        let tenants =
            asked.iter().flat_map(|(stream, tenants)| tenants.iter().map(|tenant| (*stream, *tenant)));
        for (stream, tenant) in tenants.take(POLL_QUESTIONS_MAX) {
            let Stream::Cluster(cluster) = stream else { continue };
            let polled = directory.known_document(cluster, tenant).map(|slot| slot.last_request());
            let last = polled.unwrap_or(self.started).max(self.started);
            heard.entry(stream).or_default().insert(tenant, millis(now.since(last)));
        }
        heard
    }

    /// Returns false if the journal of this server has failed.
    pub(crate) fn is_writable(&self) -> bool {
        self.context.broadcasts.write_error.borrow().is_none()
    }

    /// Takes note of the result of a heartbeat.
    pub(crate) fn report(&self, report: HeartbeatReport) {
        let Ok(returned) = report.answer else { return };
        let heartbeat = returned.heartbeat;
        self.context.peer_polls.answered(&report.peer, &heartbeat.heard);
        self.follow_publications(&heartbeat);
        let answer = answer_of(&heartbeat);
        let round_trip = millis(returned.round_trip);
        let (now, peer) = (uptime(), ServerName::from(report.peer));
        // The other server has read its clock at about half of the round trip.
        let passed = i64::try_from(round_trip / 2).unwrap_or(i64::MAX);
        let theirs = heartbeat.wall.millis().saturating_add(passed);
        let clock_ahead_millis = theirs.saturating_sub(crate::clock::wall().millis());
        let mut view = self.lock();
        view.peers.heard(now, &peer, round_trip, answer);
        view.heard.insert(peer, LastHeartbeat { at: now, clock_ahead_millis, heartbeat });
    }

    /// Tells the drivers of clusters how far their owner has published them.
    pub(crate) fn follow_publications(&self, heartbeat: &Heartbeat) {
        self.follow_shown(heartbeat);
        for (stream, owned) in &heartbeat.owned {
            let Stream::Cluster(id) = stream else { continue };
            let is_owner = self.owner(*id).is_some_and(|owner| owner.term.0 == owned.term);
            if let Some(link) = self.clusters.get(*id).filter(|_| is_owner) {
                link.post(ClusterMessage::PublishedByOwner(owned.published));
            }
        }
    }
}

impl SharedView {
    /// Takes note of the batches that another server has published.
    fn follow_shown(&self, heartbeat: &Heartbeat) {
        let shown = heartbeat.followed.iter().filter_map(|(stream, number)| match stream {
            Stream::Cluster(id) => Some((*id, *number)),
            Stream::Shared => None,
        });
        let (name, shown) = (ServerName::from(heartbeat.from.clone()), shown.collect());
        self.lock().shown.insert(name, shown);
    }

    /// The numbers up to which every other server that has a key has published each cluster.
    pub(crate) fn shown_by_others(&self) -> Vec<(ClusterId, u64)> {
        let view = self.lock();
        let own = view.peers.own();
        let others = || view.servers.keys().filter(|name| *name != own);
        let shown = |name, id| view.shown.get(name).and_then(|shown| shown.get(id)).copied().unwrap_or(0);
        let all = view.standings.keys();
        all.map(|id| (*id, others().map(|name| shown(name, id)).min().unwrap_or(u64::MAX))).collect()
    }
}

fn duty_of(duty: ServerDuty) -> forewarn_ownership::ServerDuty {
    match duty {
        ServerDuty::Active => forewarn_ownership::ServerDuty::Active,
        ServerDuty::Draining => forewarn_ownership::ServerDuty::Draining,
    }
}

fn answer_of(heartbeat: &Heartbeat) -> HeartbeatAnswer {
    let silences = heartbeat.silent_millis.iter();
    HeartbeatAnswer {
        engine_silent_millis: heartbeat.engine_age_millis.unwrap_or(u64::MAX),
        present_millis: heartbeat.present_millis,
        wall: Timestamp::from_millis(heartbeat.wall.millis()),
        duty: duty_of(heartbeat.duty),
        silences: silences.map(|(name, silent)| (ServerName::from(name.clone()), *silent)).collect(),
    }
}
