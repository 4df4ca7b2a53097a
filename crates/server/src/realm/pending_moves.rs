//! Orders to move clusters, and moves under way.

use std::collections::{BTreeMap, BTreeSet};

use forewarn_control::ClusterId;
use forewarn_ownership::{OwnerRecord, ServerName, Uptime};
use forewarn_peers::MovedStream;
use tokio::sync::{mpsc, oneshot};

/// Moves that have ended and orders that wait for the task.
const WAITING_MAX: usize = 1_024;

/// An order to the task of a realm.
pub(crate) enum RealmOrder {
    /// Another server says that it has moved a cluster.
    Moved(MovedStream),
    /// The server stops: it gives all clusters away. Replied to once it has none, or no other server can take them.
    Leave { reply: oneshot::Sender<()> },
}

/// The sender of orders to the task of a realm.
pub(crate) type RealmOrders = mpsc::Sender<RealmOrder>;

/// The end of a move.
pub(crate) struct MoveEnd {
    pub(super) cluster: ClusterId,
    pub(super) to: ServerName,
    /// None if this server has kept the cluster, or lost it.
    pub(super) owner: Option<OwnerRecord>,
}

/// Moves of clusters from this server, and to it.
pub(crate) struct Moves {
    orders: mpsc::Receiver<RealmOrder>,
    pub(super) ended: (mpsc::Sender<MoveEnd>, mpsc::Receiver<MoveEnd>),
    /// Moves under way.
    pub(super) under_way: BTreeSet<ClusterId>,
    /// Clusters that an operator has just assigned to another server.
    pub(super) ordered: BTreeSet<ClusterId>,
    /// Clusters that another server has given to this one.
    pub(super) given: BTreeSet<ClusterId>,
    /// Times before which moves that have failed are not tried again.
    pub(super) pauses: BTreeMap<ClusterId, Uptime>,
    /// Callers that wait until this server has no clusters.
    pub(super) leaving: Vec<oneshot::Sender<()>>,
}

/// An event for the moves of a server.
pub(crate) enum MoveEvent {
    Order(RealmOrder),
    End(MoveEnd),
}

impl Moves {
    pub(crate) fn new() -> (Self, RealmOrders) {
        let (sender, orders) = mpsc::channel(WAITING_MAX);
        let moves = Self {
            orders,
            ended: mpsc::channel(WAITING_MAX),
            under_way: BTreeSet::new(),
            ordered: BTreeSet::new(),
            given: BTreeSet::new(),
            pauses: BTreeMap::new(),
            leaving: Vec::new(),
        };
        (moves, sender)
    }

    /// Waits for the next event. May be dropped at any time without losing any.
    pub(super) async fn next(&mut self) -> MoveEvent {
        tokio::select! {
            Some(end) = self.ended.1.recv() => MoveEvent::End(end),
            Some(order) = self.orders.recv() => MoveEvent::Order(order),
            else => std::future::pending().await,
        }
    }

    /// A cluster was removed.
    pub(super) fn forget(&mut self, cluster: ClusterId) {
        self.ordered.remove(&cluster);
        self.given.remove(&cluster);
        self.pauses.remove(&cluster);
    }

    /// Returns true if this server is giving the cluster away.
    pub(super) fn is_under_way(&self, cluster: ClusterId) -> bool {
        self.under_way.contains(&cluster)
    }

    /// Returns true if another server has given the cluster to this one.
    pub(super) fn is_given(&self, cluster: ClusterId) -> bool {
        self.given.contains(&cluster)
    }

    /// The same, once.
    pub(super) fn take_given(&mut self, cluster: ClusterId) -> bool {
        self.given.remove(&cluster)
    }
}
