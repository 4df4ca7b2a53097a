//! Moves of clusters to other servers: ordered by an operator, by a drain, or before this server stops.
//!
//! ```text
//!   former owner: commits, writes owner and head for the new one, forwards requests ──moved──▶ new owner: accepts
//! ```
//!
//! A move that is interrupted leaves one owner: the former one, the new one, or one that takes the cluster over.

use std::sync::Arc;

use forewarn_control::{ClusterId, Stream};
use forewarn_lifecycle::Name;
use forewarn_ownership::{
    ClusterMove, ClusterStanding, OwnerRecord, ServerName, Term, Uptime, drain_moves, return_moves,
};
use forewarn_peers::MovedStream;

use super::pending_moves::{MoveEnd, MoveEvent, RealmOrder};
use super::takeover::give_away;
use super::task::RealmTask;
use super::view::{RealmView, uptime};
use crate::message::ClusterMessage;

/// Milliseconds after which a move that has failed is tried again.
const RETRY_MILLIS: u64 = 1_000;

/// The same for a cluster whose driver has failed here. It may fail on every server.
const FAILED_RETRY_MILLIS: u64 = 30_000;

impl RealmTask {
    /// Handles an event. Returns true if takeovers should be considered at once.
    pub(super) fn handle_move(&mut self, event: MoveEvent) -> bool {
        match event {
            MoveEvent::Order(RealmOrder::Moved(MovedStream { stream, to, .. })) => {
                let Stream::Cluster(id) = stream else { return false };
                // The message only saves time: the engine says who owns the cluster.
                let is_new = ServerName::from(to) == self.own && !self.view.lock().driven.contains_key(&id);
                is_new && self.moves.given.insert(id)
            }
            MoveEvent::Order(RealmOrder::Leave { reply }) => {
                self.view.lock().leave();
                self.moves.leaving.push(reply);
                self.begin_moves();
                false
            }
            MoveEvent::End(end) => {
                self.finish_move(end);
                false
            }
        }
    }

    /// An operator prefers another owner, or none.
    pub(super) fn handle_preference(&mut self, id: ClusterId, server: Option<ServerName>) {
        // Earlier orders were carried out, or the server was lost: its clusters return later. An order is for the owner.
        let drives = self.view.lock().driven.contains_key(&id);
        if self.is_current && drives && server.as_ref().is_some_and(|server| *server != self.own) {
            self.moves.ordered.insert(id);
            self.moves.pauses.remove(&id);
        } else {
            self.moves.ordered.remove(&id);
        }
        match server {
            Some(server) => self.standing(id, |standing| standing.preferred = Some(server)),
            None => self.view.lock().standings.get_mut(&id).into_iter().for_each(|one| one.preferred = None),
        }
        self.begin_moves();
    }

    /// A new owner of a cluster is known.
    pub(super) fn follow_given(&mut self, id: ClusterId, owner: Option<&OwnerRecord>) {
        // Before, the owner is a former process of this name.
        let is_given = self.is_current && owner.is_some_and(|owner| owner.server == self.own);
        if is_given && !self.taking.contains(&id) && !self.view.lock().driven.contains_key(&id) {
            self.moves.given.insert(id);
        } else {
            self.moves.given.remove(&id);
        }
        if owner.is_some_and(|owner| owner.server != self.own) {
            self.moves.ordered.remove(&id);
        }
    }

    /// Begins the moves that are wanted now.
    pub(super) fn begin_moves(&mut self) {
        let now = uptime();
        let moves = self.wanted_moves(&self.view.lock(), now);
        for ClusterMove { cluster, to } in moves {
            let Some(link) = self.clusters.get(cluster) else { continue };
            self.moves.under_way.insert(cluster);
            let ended = self.moves.ended.0.clone();
            if self.clusters.has_failed(cluster) {
                self.moves.pauses.insert(cluster, now.plus(FAILED_RETRY_MILLIS));
                let parts = (self.realm.clone(), self.own.clone(), self.context.clock.clone());
                tokio::spawn(async move {
                    let given = give_away(parts, cluster, to.clone()).await.unwrap_or_else(|error| {
                        tracing::warn!(cluster = cluster.0, %to, %error, "cannot give the cluster to another server");
                        None
                    });
                    ended.send(MoveEnd { cluster, to, owner: given }).await.ok();
                });
                continue;
            }
            tokio::spawn(async move {
                let target = to.clone();
                let handed = link.call(|reply| ClusterMessage::HandOver { to: target, reply }).await;
                // A driver that has ended owns nothing. The task may have ended.
                ended.send(MoveEnd { cluster, to, owner: handed.ok().flatten() }).await.ok();
            });
        }
        self.answer_leaving(now);
    }

    fn wanted_moves(&self, view: &RealmView, now: Uptime) -> Vec<ClusterMove> {
        if !view.peers.reaches_engine(now) || view.restored.is_some() {
            return Vec::new();
        }
        let is_due = |id: &ClusterId| {
            !self.moves.is_under_way(*id) && self.moves.pauses.get(id).is_none_or(|until| *until <= now)
        };
        let preferred = |id: &ClusterId| view.standings.get(id).and_then(|one| one.preferred.clone());
        let failed = self.failed_clusters(view).into_iter().filter(is_due).map(|id| (id, None));
        let failed = drain_moves(&view.peers, now, failed);
        let owned = view.driven.keys().filter(|id| is_due(id) && !self.clusters.has_failed(**id));
        let owned = owned.map(|id| (*id, preferred(id)));
        if view.is_draining() {
            return failed.into_iter().chain(drain_moves(&view.peers, now, owned)).collect();
        }
        let live = view.peers.live(now);
        let (ordered, others): (Vec<_>, Vec<_>) = owned.partition(|(id, _)| self.moves.ordered.contains(id));
        let ordered = ordered.into_iter().filter_map(|(cluster, to)| {
            Some(ClusterMove { cluster, to: to.filter(|to| live.contains(to))? })
        });
        failed.into_iter().chain(ordered).chain(return_moves(&view.peers, now, others)).collect()
    }

    /// Clusters that this server owns although their driver has failed here.
    fn failed_clusters(&self, view: &RealmView) -> Vec<ClusterId> {
        let is_own = |standing: &&ClusterStanding| {
            standing.owner.as_ref().is_some_and(|owner| owner.server == self.own)
                && self.clusters.has_failed(standing.cluster)
        };
        view.standings.values().filter(is_own).map(|standing| standing.cluster).collect()
    }

    fn finish_move(&mut self, end: MoveEnd) {
        let MoveEnd { cluster, to, owner } = end;
        self.moves.under_way.remove(&cluster);
        let Some(owner) = owner else {
            let until = uptime().plus(RETRY_MILLIS);
            let pause = self.moves.pauses.entry(cluster).or_insert(until);
            *pause = until.max(*pause);
            return;
        };
        tracing::info!(cluster = cluster.0, %to, term = owner.term.0, "cluster moved to another server");
        self.moves.ordered.remove(&cluster);
        let Term(term) = owner.term;
        self.view.lock().driven.remove(&cluster);
        self.note_owner(cluster, owner);
        self.publish_owners();
        self.notify_new_owner(cluster, &to, term);
        self.answer_leaving(uptime());
    }

    /// Tells a server that it owns a cluster. It learns it from the engine too.
    fn notify_new_owner(&self, cluster: ClusterId, to: &ServerName, term: u64) {
        let Ok(to) = Name::new(to.as_str()) else { return };
        let Some(client) = self.clients.load().get(&to).map(Arc::clone) else { return };
        tokio::spawn(async move {
            let moved = MovedStream { stream: Stream::Cluster(cluster), term, to };
            if let Err(error) = client.moved(&moved).await {
                tracing::warn!(cluster = cluster.0, to = %moved.to, %error, "cannot notify the new owner");
            }
        });
    }

    /// Answers callers that wait until this server has no clusters, or cannot give them away.
    fn answer_leaving(&mut self, now: Uptime) {
        if self.moves.leaving.is_empty() || !self.moves.under_way.is_empty() {
            return;
        }
        let view = self.view.lock();
        let owned = view.driven.keys().map(|id| (*id, None));
        let is_over = view.driven.is_empty()
            || !view.peers.reaches_engine(now)
            || drain_moves(&view.peers, now, owned).is_empty();
        drop(view);
        if is_over {
            // The callers may have gone.
            self.moves.leaving.drain(..).for_each(|reply| reply.send(()).unwrap_or_default());
        }
    }

    /// Takes note of an owner, unless a later one is known.
    pub(super) fn note_owner(&self, id: ClusterId, owner: OwnerRecord) {
        self.standing(id, |standing| {
            let is_newer = standing.owner.as_ref().is_none_or(|known| known.term < owner.term);
            if is_newer {
                (standing.owner, standing.since) = (Some(owner), uptime());
            }
        });
    }
}
