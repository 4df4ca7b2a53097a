//! Assignment of clusters to servers.
//!
//! A rendezvous hash of cluster and server name gives each cluster an order of the servers. A server that joins or
//! leaves changes no other part of the order. Clusters change their server only by a takeover, a drain, a move, the
//! return of a server that an operator prefers, or the first assignment; any other server that joins gets none by itself.

use std::collections::BTreeSet;
use std::hash::Hasher;

use forewarn_types::ClusterId;
use siphasher::sip::SipHasher13;

use crate::ids::{ServerName, Uptime};
use crate::peers::Peers;
use crate::suspicion::SuspicionReason;
use crate::transaction::OwnerRecord;

/// The time between the attempts of two servers in the order, in milliseconds.
pub const ATTEMPT_INTERVAL_MILLIS: u64 = 300;

/// The key of the hash, the same in every version: servers of two versions must agree on the order.
const KEY: [u8; 16] = *b"forewarn/order/1";

/// A cluster that this process neither drives nor is about to drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterStanding {
    /// The cluster.
    pub cluster: ClusterId,
    /// Its owner key.
    pub owner: Option<OwnerRecord>,
    /// The time at which this server learned that value of the key.
    pub since: Uptime,
    /// The server that an operator prefers as its owner.
    pub preferred: Option<ServerName>,
}

/// The reason for an attempt to take a cluster over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptReason {
    /// The cluster has no owner.
    Unowned,
    /// The owner key names this server: a former process of this name drove the cluster.
    Restarted,
    /// The owner is suspected.
    Suspected(SuspicionReason),
}

/// An attempt to take a cluster over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The cluster.
    pub cluster: ClusterId,
    /// The time of the attempt; one that has passed is due now.
    pub at: Uptime,
    /// Its reason.
    pub reason: AttemptReason,
}

/// A move of a cluster to another server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterMove {
    /// The cluster.
    pub cluster: ClusterId,
    /// The server that should get it.
    pub to: ServerName,
}

/// The servers in the order in which they should own a cluster.
#[must_use]
pub fn order<'a>(
    cluster: ClusterId,
    preferred: Option<&ServerName>,
    servers: impl IntoIterator<Item = &'a ServerName>,
) -> Vec<&'a ServerName> {
    let mut order: Vec<_> = servers.into_iter().collect();
    order.sort_by_cached_key(|server| {
        (Some(*server) != preferred, std::cmp::Reverse(weight(cluster, server)), (*server).clone())
    });
    order
}

fn weight(cluster: ClusterId, server: &ServerName) -> u64 {
    let mut hasher = SipHasher13::new_with_key(&KEY);
    hasher.write(&cluster.0.to_le_bytes());
    hasher.write(server.as_str().as_bytes());
    hasher.finish()
}

/// The attempts of this server, now and later, if nothing changes until then.
#[must_use]
pub fn attempts<'a>(
    peers: &Peers,
    now: Uptime,
    clusters: impl IntoIterator<Item = &'a ClusterStanding>,
) -> Vec<Attempt> {
    let clusters = clusters.into_iter().filter(|_| peers.reaches_engine(now));
    let candidates = peers.candidates(now);
    let attempt = |standing: &ClusterStanding| {
        let (reason, since) = cause(peers, now, standing)?;
        let position = match reason {
            AttemptReason::Restarted => 0,
            AttemptReason::Unowned | AttemptReason::Suspected(_) => {
                position(peers.own(), standing, &candidates)?
            }
        };
        let at = since.plus(position * ATTEMPT_INTERVAL_MILLIS);
        Some(Attempt { cluster: standing.cluster, at, reason })
    };
    clusters.filter_map(attempt).collect()
}

fn position(own: &ServerName, standing: &ClusterStanding, candidates: &BTreeSet<ServerName>) -> Option<u64> {
    let order = order(standing.cluster, standing.preferred.as_ref(), candidates);
    u64::try_from(order.iter().position(|server| *server == own)?).ok()
}

/// The reason to take a cluster over, and the time since which there is one.
fn cause(peers: &Peers, now: Uptime, standing: &ClusterStanding) -> Option<(AttemptReason, Uptime)> {
    let Some(owner) = &standing.owner else { return Some((AttemptReason::Unowned, standing.since)) };
    if owner.server == *peers.own() {
        return Some((AttemptReason::Restarted, standing.since));
    }
    let suspicion = peers.suspicion(&owner.server, now)?;
    let permitted = match suspicion.reason {
        SuspicionReason::Silent => peers.may_judge_silence(now),
        SuspicionReason::EngineUnreached | SuspicionReason::NotAMember => true,
    };
    let since = suspicion.since.max(standing.since);
    permitted.then_some((AttemptReason::Suspected(suspicion.reason), since))
}

/// The moves of a server that gives all of its clusters away. A cluster for which no other server is live has none.
#[must_use]
pub fn drain_moves(
    peers: &Peers,
    now: Uptime,
    owned: impl IntoIterator<Item = (ClusterId, Option<ServerName>)>,
) -> Vec<ClusterMove> {
    let mut candidates = peers.candidates(now);
    candidates.remove(peers.own());
    moves_to_first(&candidates, owned)
}

/// The moves of a server after which the first server in the order has each cluster. An operator orders them once a
/// server has joined; none of them is automatic.
#[must_use]
pub fn balance_moves(
    peers: &Peers,
    now: Uptime,
    owned: impl IntoIterator<Item = (ClusterId, Option<ServerName>)>,
) -> Vec<ClusterMove> {
    let mut moves = moves_to_first(&peers.live(now), owned);
    moves.retain(|one| one.to != *peers.own());
    moves
}

/// The moves of a server after which clusters are back at the servers that an operator prefers. A server that has just
/// started or returned gets none yet.
#[must_use]
pub fn return_moves(
    peers: &Peers,
    now: Uptime,
    owned: impl IntoIterator<Item = (ClusterId, Option<ServerName>)>,
) -> Vec<ClusterMove> {
    let settled = peers.settled(now);
    let back = |(cluster, preferred): (ClusterId, Option<ServerName>)| {
        let to = preferred.filter(|server| server != peers.own() && settled.contains(server))?;
        Some(ClusterMove { cluster, to })
    };
    owned.into_iter().filter_map(back).collect()
}

fn moves_to_first(
    candidates: &BTreeSet<ServerName>,
    owned: impl IntoIterator<Item = (ClusterId, Option<ServerName>)>,
) -> Vec<ClusterMove> {
    let first = |(cluster, preferred): (ClusterId, Option<ServerName>)| {
        let to = (*order(cluster, preferred.as_ref(), candidates).first()?).clone();
        Some(ClusterMove { cluster, to })
    };
    owned.into_iter().filter_map(first).collect()
}
