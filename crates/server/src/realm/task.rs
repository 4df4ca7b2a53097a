//! The task of a server in a realm: follows the log and the owners, and takes over clusters whose owner is lost.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use forewarn_control::{ClusterId, ClusterState, Stream};
use forewarn_lifecycle::Name;
use forewarn_ownership::{ClockVerdict, ClusterStanding, ServerName, attempts};
use forewarn_peers::{Heartbeats, Peer, PeerClient, PeerIdentity, PeerLimits};
use forewarn_realm::{
    Batch, Follower, LeaseId, OwnerRecord, Realm, RealmChange, ServerRecord, StreamContent, Term,
};
use tokio::sync::{mpsc, oneshot, watch};

use super::content::{FollowedChange, follow, send_content};
use super::copies::{Copies, complete_cluster, complete_shared};
use super::handle::PeerClients;
use super::own_name::keep_name;
use super::owners::{ClusterOwner, Owners};
use super::pending_moves::Moves;
use super::takeover::{Takeover, TakeoverPauses, take_over};
use super::view::{SharedView, uptime};
use crate::clusters::ClusterRegistry;
use crate::driver::DriverContext;
use crate::message::{ClusterMessage, SharedMessage};
use crate::role::Role;

/// Interval of checks for lost owners.
const TICK: Duration = Duration::from_millis(50);

/// Interval of the renewal of the lease.
const LEASE_RENEWAL: Duration = Duration::from_secs(1);

/// Longest wait for a driver that is to read everything that the log has of its stream.
const CONTENT_WAIT: Duration = Duration::from_secs(1);

/// Changes that wait for the task.
const CHANGES_WAITING_MAX: usize = 1_024;

/// A cluster, and the result of its takeover: the term, none if another server was first, or a failure.
type TakeoverEnd = (ClusterId, Result<Option<u64>, ()>);

/// The parts of a realm that its task uses.
pub(crate) struct RealmTask {
    pub(crate) realm: Realm,
    pub(crate) own: ServerName,
    pub(crate) view: SharedView,
    pub(crate) owners: watch::Sender<Arc<Owners>>,
    pub(crate) clients: PeerClients,
    pub(crate) identity: Arc<PeerIdentity>,
    pub(crate) heartbeats: Heartbeats,
    pub(crate) context: DriverContext,
    pub(crate) clusters: ClusterRegistry,
    pub(crate) moves: Moves,
    /// Takeovers under way.
    pub(crate) taking: BTreeSet<ClusterId>,
    pub(crate) pauses: TakeoverPauses,
    /// The follower has given out everything that the engine had when it began: owners and servers are known.
    pub(crate) is_current: bool,
    /// Batches of clusters that the shared state does not have yet.
    pub(crate) early: BTreeMap<ClusterId, VecDeque<Box<Batch>>>,
    pub(crate) copies: Copies,
    /// Numbers up to which every other server has published each cluster, as its driver knows them.
    pub(crate) shown: BTreeMap<ClusterId, u64>,
}

impl RealmTask {
    /// Runs until the server stops.
    pub(crate) async fn run(mut self, follower: Follower, mut stop: watch::Receiver<bool>) {
        let (changes, mut changed) = mpsc::channel(CHANGES_WAITING_MAX);
        let following = tokio::spawn(follow(self.realm.clone(), follower, changes));
        let (done, mut taken) = mpsc::channel::<TakeoverEnd>(CHANGES_WAITING_MAX);
        let mut tick = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                change = changed.recv() => match change {
                    Some(FollowedChange::Changed(change)) => {
                        let is_given = self.is_own(&change);
                        self.handle_change(change);
                        if is_given {
                            self.begin_takeovers(&done);
                        }
                    }
                    Some(FollowedChange::Read(content)) => self.pass_content(content).await,
                    None => break,
                },
                Some(end) = taken.recv() => self.handle_taken(end),
                event = self.moves.next() => {
                    if self.handle_move(event) {
                        self.begin_takeovers(&done);
                    }
                }
                _ = tick.tick() => {
                    self.view.tick();
                    self.check_clock();
                    self.forget_lost();
                    self.send_early();
                    self.complete_copies();
                    self.send_shown();
                    self.begin_takeovers(&done);
                    self.begin_moves();
                }
                () = stopped(&mut stop) => break,
            }
        }
        following.abort();
    }

    fn handle_change(&mut self, change: RealmChange) {
        match change {
            RealmChange::Batch(batch) => self.pass_on(batch),
            RealmChange::Owner { stream, owner } => self.handle_owner(stream, owner),
            RealmChange::Preferred { stream: Stream::Cluster(id), server } => {
                self.handle_preference(id, server);
            }
            RealmChange::Draining { name, is_on } => self.view.lock().set_draining(name, is_on),
            RealmChange::Server { name, record } => self.handle_server(name, record),
            RealmChange::Archived { name, numbers } => {
                self.view.lock().archives.record(name, numbers, uptime());
            }
            RealmChange::Current(_) => self.is_current = true,
            RealmChange::Head { stream, head } => self.copies.follow_head(stream, head.head.number),
            RealmChange::Removed(Stream::Cluster(id)) => self.forget(id),
            RealmChange::Preferred { .. }
            | RealmChange::Behind { .. }
            | RealmChange::Removed(Stream::Shared) => {}
        }
    }

    /// Gives everything that the log has of a stream to its driver. One that does not exist yet reads it later, and one
    /// that is busy for long.
    async fn pass_content(&mut self, content: Box<StreamContent>) {
        // It continues another history.
        if self.view.lock().restored.is_some() {
            return;
        }
        match content.stream {
            Stream::Shared => {
                if let Some(shared) = self.context.shared.upgrade() {
                    // The driver ends with the process only.
                    drop(shared.send_timeout(SharedMessage::Read(content), CONTENT_WAIT).await);
                }
            }
            Stream::Cluster(id) => {
                self.copies.follow_head(content.stream, content.head.head.number);
                if let Some(link) = self.clusters.get(id) {
                    drop(tokio::time::timeout(CONTENT_WAIT, send_content(&link, *content)).await);
                }
            }
        }
    }

    /// Gives a batch to the driver of its stream. One that is too busy to take it gets it later: its copy is completed, and
    /// other clusters do not wait.
    fn pass_on(&mut self, batch: Box<Batch>) {
        // It continues another history.
        if self.view.lock().restored.is_some() {
            return;
        }
        match batch.stream {
            Stream::Shared => {
                if let Some(shared) = self.context.shared.upgrade() {
                    drop(shared.try_send(SharedMessage::Logged(batch)));
                }
            }
            Stream::Cluster(id) => match self.clusters.get(id).filter(|_| !self.early.contains_key(&id)) {
                // A cluster that has failed has no driver.
                Some(link) => drop(link.messages.try_send(ClusterMessage::Logged(batch))),
                None => self.early.entry(id).or_default().push_back(batch),
            },
        }
    }

    /// Gives batches to the drivers of clusters that have appeared since.
    fn send_early(&mut self) {
        let known: Vec<_> =
            self.early.keys().filter(|id| self.clusters.get(**id).is_some()).copied().collect();
        for id in known {
            for batch in self.early.remove(&id).unwrap_or_default() {
                self.pass_on(batch);
            }
        }
    }

    pub(super) fn standing(&self, id: ClusterId, change: impl FnOnce(&mut ClusterStanding)) {
        let mut view = self.view.lock();
        let new = || ClusterStanding { cluster: id, owner: None, since: uptime(), preferred: None };
        change(view.standings.entry(id).or_insert_with(new));
    }

    fn handle_owner(&mut self, stream: Stream, owner: Option<OwnerRecord>) {
        let Stream::Cluster(id) = stream else { return };
        // An owner before this one may be reported late. A later one may be this server again: others had the cluster
        // in between, and gave it back.
        let mut view = self.view.lock();
        let term = owner.as_ref().map(|owner| owner.term.0);
        let is_lost = view.driven.get(&id).is_some_and(|own| term.is_some_and(|term| term > *own));
        if is_lost {
            view.driven.remove(&id);
        }
        drop(view);
        if let Some(link) = self.clusters.get(id).filter(|_| is_lost) {
            link.post(ClusterMessage::Disown);
        }
        self.follow_given(id, owner.as_ref());
        match owner {
            Some(owner) => self.note_owner(id, owner),
            None => {
                // A cluster that was removed has none.
                if let Some(standing) = self.view.lock().standings.get_mut(&id) {
                    (standing.owner, standing.since) = (None, uptime());
                }
            }
        }
        self.publish_owners();
    }

    /// Forgets a cluster that was removed.
    fn forget(&mut self, id: ClusterId) {
        self.copies.forget(Stream::Cluster(id));
        self.early.remove(&id);
        self.shown.remove(&id);
        self.pauses.end(id);
        self.moves.forget(id);
        let mut view = self.view.lock();
        view.standings.remove(&id);
        view.driven.remove(&id);
        drop(view);
        self.publish_owners();
    }

    /// Returns true if a change makes this server the owner of a stream.
    fn is_own(&self, change: &RealmChange) -> bool {
        matches!(change, RealmChange::Owner { owner: Some(owner), .. } if owner.server == self.own)
    }

    /// A takeover has ended.
    fn handle_taken(&mut self, (cluster, term): TakeoverEnd) {
        self.taking.remove(&cluster);
        match term {
            Ok(_) => self.pauses.end(cluster),
            Err(()) => self.pauses.put_off(cluster, uptime()),
        }
        let Ok(Some(term)) = term else { return };
        if self.view.owner(cluster).is_some_and(|owner| owner.term.0 > term) {
            return self.follow_again(cluster);
        }
        self.view.lock().driven.insert(cluster, term);
        self.note_owner(cluster, OwnerRecord { server: self.own.clone(), term: Term(term) });
        self.publish_owners();
    }

    /// Another server has taken over before this one noticed that it was the owner: its driver has ignored batches.
    fn follow_again(&mut self, cluster: ClusterId) {
        let Some(link) = self.clusters.get(cluster) else { return };
        link.post(ClusterMessage::Disown);
        self.complete_copy(Stream::Cluster(cluster));
    }

    /// Completes copies that have lacked batches for a while: their drivers may have ignored some. They would ignore them
    /// again while the journal of this server has failed.
    fn complete_copies(&mut self) {
        if !self.view.is_writable() {
            return;
        }
        let snapshot = self.context.broadcasts.snapshot.load_full();
        let at = |stream| match stream {
            Stream::Shared => Some(snapshot.state.shared().log_number()),
            Stream::Cluster(id) => {
                let is_follower = snapshot.runtimes.get(&id).is_some_and(|view| view.role == Role::Follower);
                snapshot.state.cluster(id).filter(|_| is_follower).map(ClusterState::log_number)
            }
        };
        for stream in self.copies.stuck(uptime(), at) {
            self.complete_copy(stream);
        }
    }

    /// Gives a driver the batches that its copy lacks.
    fn complete_copy(&mut self, stream: Stream) {
        let realm = self.realm.clone();
        match stream {
            Stream::Shared => {
                if let Some(driver) = self.context.shared.upgrade() {
                    self.copies.complete(stream, complete_shared(realm, driver));
                }
            }
            Stream::Cluster(id) => {
                if let Some(link) = self.clusters.get(id) {
                    self.copies.complete(stream, complete_cluster(realm, id, link));
                }
            }
        }
    }

    /// Tells drivers how far every other server has published their clusters.
    fn send_shown(&mut self) {
        for (id, number) in self.view.shown_by_others() {
            if let Some(link) = self.clusters.get(id).filter(|_| self.shown.get(&id) != Some(&number)) {
                link.post(ClusterMessage::ShownByOthers(number));
                self.shown.insert(id, number);
            }
        }
    }

    /// Publishes the owners of clusters. This server counts as an owner once its driver decides.
    pub(super) fn publish_owners(&self) {
        let view = self.view.lock();
        let owners = view.standings.iter().filter_map(|(id, standing)| {
            let owner = standing.owner.as_ref()?;
            let is_ready = owner.server != self.own || view.driven.get(id) == Some(&owner.term.0);
            let server = Name::new(owner.server.as_str()).ok()?;
            is_ready.then_some((*id, ClusterOwner { server, term: owner.term.0 }))
        });
        let owners = Arc::new(owners.collect());
        drop(view);
        self.owners.send_replace(owners);
    }

    fn handle_server(&self, name: ServerName, record: Option<ServerRecord>) {
        let mut view = self.view.lock();
        match record {
            Some(record) => {
                view.archives.is_live(&name);
                view.servers.insert(name, record);
            }
            None => {
                view.servers.remove(&name);
                view.shown.remove(&name);
                view.archives.is_gone(name, uptime());
            }
        }
        let members = view.servers.keys().cloned().collect();
        view.peers.set_members(uptime(), &members);
        let peers = view.servers.iter().filter(|(name, _)| **name != self.own);
        let peer = |(name, record): (&ServerName, &ServerRecord)| {
            Some(Peer { name: Name::new(name.as_str()).ok()?, address: record.address.clone() })
        };
        let peers: Vec<_> = peers.filter_map(peer).collect();
        drop(view);
        self.context.peer_polls.set_others(peers.iter().map(|peer| peer.name.clone()).collect());
        let known = self.clients.load();
        let client = |peer: &Peer| {
            let same = known.get(&peer.name).filter(|client| client.peer() == peer).cloned();
            let new =
                || Arc::new(PeerClient::new(peer.clone(), Arc::clone(&self.identity), PeerLimits::default()));
            (peer.name.clone(), same.unwrap_or_else(new))
        };
        self.clients.store(Arc::new(peers.iter().map(client).collect()));
        self.heartbeats.set_peers(peers);
    }

    /// Holds all starts while the wall clock of this server differs from those of the others.
    fn check_clock(&self) {
        let verdict = self.view.lock().peers.clock_verdict(uptime(), crate::clock::wall());
        let held = match verdict {
            ClockVerdict::Hold { by_millis } => Some(by_millis),
            ClockVerdict::Agrees => None,
        };
        if !self.context.clock_hold.set(held) {
            return;
        }
        match held {
            Some(by_millis) => {
                tracing::error!(
                    by_millis,
                    "clock differs from those of the other servers; no event starts here"
                );
            }
            None => tracing::info!("clock agrees with those of the other servers"),
        }
        // Drivers write it into their audit logs.
        for link in self.clusters.all().values() {
            let (reply, _) = oneshot::channel();
            link.post(ClusterMessage::Settle { reply });
        }
    }

    /// Forgets clusters whose driver no longer decides: it was fenced, or its journal failed.
    fn forget_lost(&self) {
        let snapshot = self.context.broadcasts.snapshot.load();
        let decides = |id: &ClusterId| snapshot.runtimes.get(id).is_some_and(|view| view.role == Role::Owner);
        let mut view = self.view.lock();
        let is_lost = |id: &&ClusterId| !decides(id) && !self.moves.is_under_way(**id);
        let lost: Vec<_> = view.driven.keys().filter(is_lost).copied().collect();
        for id in &lost {
            view.driven.remove(id);
            view.peers.fenced(uptime());
        }
        drop(view);
        if !lost.is_empty() {
            self.publish_owners();
        }
    }

    fn begin_takeovers(&mut self, done: &mpsc::Sender<TakeoverEnd>) {
        // Before, every cluster seems to have no owner. A driver without a journal could not own it.
        let may_own = self.is_current && self.view.is_writable() && self.view.lock().restored.is_none();
        if !may_own {
            return;
        }
        let snapshot = self.context.broadcasts.snapshot.load();
        snapshot.state.clusters().for_each(|(id, _)| self.standing(id, |_| {}));
        let now = uptime();
        let due = {
            let view = self.view.lock();
            let is_open = |standing: &&ClusterStanding| {
                let id = standing.cluster;
                !view.driven.contains_key(&id)
                    && !self.taking.contains(&id)
                    && !self.moves.is_under_way(id)
                    && self.pauses.is_over(id, now)
                    && !self.clusters.has_failed(id)
                    && snapshot.state.cluster(id).is_some()
            };
            let attempts = attempts(&view.peers, now, view.standings.values().filter(is_open));
            let due = attempts.into_iter().filter(|attempt| attempt.at <= now);
            let given = view.standings.values().filter(is_open).map(|standing| standing.cluster);
            let given = given.filter(|id| self.moves.is_given(*id));
            due.map(|attempt| attempt.cluster).chain(given).collect::<BTreeSet<_>>()
        };
        for cluster in due {
            let Some(link) = self.clusters.get(cluster) else { continue };
            self.taking.insert(cluster);
            let is_given = self.moves.take_given(cluster);
            let (realm, own, clock) = (self.realm.clone(), self.own.clone(), self.context.clock.clone());
            let done = done.clone();
            tokio::spawn(async move {
                let begin = Instant::now();
                let term = take_over(Takeover { realm, own, clock, cluster, link, is_given }).await;
                match &term {
                    Ok(Some(term)) => {
                        let took = begin.elapsed();
                        tracing::info!(cluster = cluster.0, term, ?took, "this server owns the cluster");
                    }
                    Ok(None) => {}
                    Err(error) => tracing::warn!(cluster = cluster.0, error, "takeover failed; trying again"),
                }
                // The task may have ended.
                done.send((cluster, term.map_err(drop))).await.ok();
            });
        }
    }
}

/// Waits until the server stops.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means that the sender is gone.
    drop(stop.wait_for(|stop| *stop).await);
}

/// Keeps the key of this server.
pub(crate) async fn stay_member(
    realm: Realm,
    own: ServerName,
    record: ServerRecord,
    first: LeaseId,
    mut stop: watch::Receiver<bool>,
) {
    let mut lease = Some(first);
    loop {
        let stopped = stop.wait_for(|stop| *stop);
        if tokio::time::timeout(LEASE_RENEWAL, stopped).await.is_ok() {
            break;
        }
        lease = match keep_name(&realm, &own, &record, lease).await {
            Ok(lease) => Some(lease),
            Err(error) => {
                tracing::warn!(%error, "cannot renew the key of this server");
                None
            }
        };
    }
    if let Some(lease) = lease {
        // The lease ends by itself.
        drop(realm.revoke_lease(lease).await);
    }
}
