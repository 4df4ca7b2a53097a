//! The realm as this server sees it: other servers, owners, heads.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use forewarn_control::{ClusterId, Stream};
use forewarn_lifecycle::{Name, Timestamp};
use forewarn_ownership::{ClusterStanding, HeartbeatAnswer, Peers, ServerName, Uptime};
use forewarn_peers::{Heartbeat, HeartbeatReport, OwnedStream, ServerDuty};
use forewarn_realm::{Engine, OwnerRecord, ServerRecord};

use super::archives::Archives;
use crate::boot;
use crate::broadcasts::Broadcasts;
use crate::clusters::ClusterRegistry;
use crate::message::ClusterMessage;

/// The realm as this server sees it.
pub(crate) struct RealmView {
    pub(crate) peers: Peers,
    pub(crate) standings: BTreeMap<ClusterId, ClusterStanding>,
    pub(crate) servers: BTreeMap<ServerName, ServerRecord>,
    /// Clusters that this server drives, with its terms.
    pub(crate) driven: BTreeMap<ClusterId, u64>,
    pub(crate) archives: Archives,
}

/// The view, as heartbeats and the task of the realm share it.
#[derive(Clone)]
pub(crate) struct SharedView {
    view: Arc<Mutex<RealmView>>,
    own: Name,
    engine: Engine,
    broadcasts: Broadcasts,
    clusters: ClusterRegistry,
}

/// Time since the computer started.
pub(crate) fn uptime() -> Uptime {
    Uptime::from_millis(millis(boot::elapsed()))
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

impl SharedView {
    pub(crate) fn new(own: &Name, engine: Engine, broadcasts: Broadcasts, clusters: ClusterRegistry) -> Self {
        let view = RealmView {
            peers: Peers::new(ServerName::from(own.clone()), uptime()),
            standings: BTreeMap::new(),
            servers: BTreeMap::new(),
            driven: BTreeMap::new(),
            archives: Archives::default(),
        };
        Self { view: Arc::new(Mutex::new(view)), own: own.clone(), engine, broadcasts, clusters }
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

    /// The state of this server for others.
    pub(crate) fn own_heartbeat(&self) -> Heartbeat {
        let (now, wall) = (uptime(), crate::clock::wall());
        let snapshot = self.broadcasts.snapshot.load();
        let clusters = snapshot.state.clusters();
        let numbers: BTreeMap<_, _> = clusters.map(|(id, state)| (id, state.log_number())).collect();
        let view = self.lock();
        let answer = view.peers.own_answer(now, wall);
        let owned = view.driven.iter().map(|(id, term)| {
            let published = numbers.get(id).copied().unwrap_or(0);
            (Stream::Cluster(*id), OwnedStream { term: *term, published })
        });
        let followed = numbers.iter().map(|(id, number)| (Stream::Cluster(*id), *number));
        Heartbeat {
            from: self.own.clone(),
            sent: forewarn_lifecycle::Steady::from_millis(now.millis()),
            wall,
            present_millis: answer.present_millis,
            duty: ServerDuty::Active,
            engine_age_millis: Some(answer.engine_silent_millis),
            silent_millis: answer
                .silences
                .into_iter()
                .filter_map(|(name, silent)| Some((Name::new(name.as_str()).ok()?, silent)))
                .collect(),
            followed: followed.collect(),
            owned: owned.collect(),
        }
    }

    /// Takes note of the result of a heartbeat.
    pub(crate) fn report(&self, report: HeartbeatReport) {
        let Ok(returned) = report.answer else { return };
        let heartbeat = returned.heartbeat;
        self.follow_publications(&heartbeat);
        let answer = answer_of(&heartbeat);
        let round_trip = millis(returned.round_trip);
        self.lock().peers.heard(uptime(), &ServerName::from(report.peer), round_trip, answer);
    }

    /// Tells the drivers of clusters how far their owner has published them.
    pub(crate) fn follow_publications(&self, heartbeat: &Heartbeat) {
        for (stream, owned) in &heartbeat.owned {
            let Stream::Cluster(id) = stream else { continue };
            let is_owner = self.owner(*id).is_some_and(|owner| owner.term.0 == owned.term);
            if let Some(link) = self.clusters.get(*id).filter(|_| is_owner) {
                link.post(ClusterMessage::PublishedByOwner(owned.published));
            }
        }
    }
}

fn answer_of(heartbeat: &Heartbeat) -> HeartbeatAnswer {
    let silences = heartbeat.silent_millis.iter();
    HeartbeatAnswer {
        engine_silent_millis: heartbeat.engine_age_millis.unwrap_or(u64::MAX),
        present_millis: heartbeat.present_millis,
        wall: Timestamp::from_millis(heartbeat.wall.millis()),
        duty: match heartbeat.duty {
            ServerDuty::Active => forewarn_ownership::ServerDuty::Active,
            ServerDuty::Draining => forewarn_ownership::ServerDuty::Draining,
        },
        silences: silences.map(|(name, silent)| (ServerName::from(name.clone()), *silent)).collect(),
    }
}
