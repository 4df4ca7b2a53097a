//! Messages of other servers.

use forewarn_control::request::{Reply, Request};
use forewarn_control::{ClusterId, ClusterState, ControlError};
use forewarn_lifecycle::Name;
use forewarn_peers::{
    AskedTenants, AuditQuery, AuditSearch, FoundEntries, HandlerUnavailable, Heartbeat, HeartbeatExchange,
    HeartbeatReport, MovedStream, NotOwner, OwnerDecision, PeerHandler, ReceivedRequest, RejectedConnection,
    RequestAnswer,
};

use super::audit_lines::ArchiveLines;
use super::audit_search::search_here;
use super::confirmation::{COPY_WAIT, Confirmations, wait_for_copy};
use super::pending_moves::{RealmOrder, RealmOrders};
use super::view::SharedView;
use crate::broadcasts::Broadcasts;
use crate::clusters::ClusterRegistry;

/// Answers messages of other servers.
pub(crate) struct PeerSide {
    pub(crate) view: SharedView,
    pub(crate) clusters: ClusterRegistry,
    pub(crate) broadcasts: Broadcasts,
    pub(crate) orders: RealmOrders,
    pub(crate) confirmations: Confirmations,
}

impl PeerHandler for PeerSide {
    type Audit = ArchiveLines;

    async fn heartbeat(&self, caller: &Name, heartbeat: Heartbeat) -> Heartbeat {
        self.view.follow_publications(&heartbeat);
        self.view.own_heartbeat(caller, &heartbeat.asked)
    }

    async fn request(&self, _: &Name, received: ReceivedRequest) -> RequestAnswer {
        let ReceivedRequest { seen, request, .. } = received;
        let unavailable = |reason: &str| RequestAnswer::Unavailable(HandlerUnavailable(reason.to_owned()));
        let Request::Cluster(id, request) = request else {
            return unavailable("every server writes the shared stream");
        };
        // The sender has confirmed its copy: without this, a server that has lost the cluster and does not know it
        // would refuse a request for a reason that is no longer true, and a new token would be unknown.
        if wait_for_copy((&self.broadcasts, Some(&self.clusters)), &seen, COPY_WAIT).await.is_err() {
            return unavailable("the copy of this server lacks batches");
        }
        let Some(link) = self.clusters.get(id) else {
            // The driver of a new cluster starts after its name has been published.
            let is_known = self.broadcasts.shared().cluster_name(id).is_some();
            let unknown = || self.decided(id, Err(ControlError::NoSuchCluster));
            return if is_known { unavailable("the cluster starts") } else { unknown() };
        };
        match link.request(request).await {
            Err(ControlError::Elsewhere) => {
                let owner = self.view.owner(id);
                let term = owner.as_ref().map_or(0, |owner| owner.term.0);
                let owner = owner.and_then(|owner| Name::new(owner.server.as_str()).ok());
                RequestAnswer::NotOwner(NotOwner { owner, term })
            }
            answer => self.decided(id, answer),
        }
    }

    async fn moved(&self, _: &Name, moved: MovedStream) {
        // The engine says the same, a little later.
        self.orders.try_send(RealmOrder::Moved(moved)).ok();
    }

    async fn audit(&self, _: &Name, query: AuditQuery) -> Result<ArchiveLines, HandlerUnavailable> {
        let AuditQuery { stream, after } = query;
        Ok(ArchiveLines { broadcasts: self.broadcasts.clone(), stream, after: Some(after) })
    }

    async fn search(&self, _: &Name, search: AuditSearch) -> Result<FoundEntries, HandlerUnavailable> {
        search_here(&self.confirmations, (&self.broadcasts, &self.clusters), search).await
    }

    fn rejected(&self, connection: &RejectedConnection) {
        tracing::warn!(from = %connection.from, reason = connection.reason, "rejected connection of a server");
    }
}

impl PeerSide {
    /// The answer to a request that was decided here. What it has changed is published, with its consequences.
    fn decided(&self, id: ClusterId, result: Result<Reply, ControlError>) -> RequestAnswer {
        let snapshot = self.broadcasts.snapshot.load();
        let published = snapshot.state.cluster(id).map_or(0, ClusterState::log_number);
        RequestAnswer::Decided(Box::new(OwnerDecision { result, published }))
    }
}

/// Exchanges heartbeats with other servers.
pub(crate) struct HeartbeatSide(pub(crate) SharedView);

impl HeartbeatExchange for HeartbeatSide {
    fn heartbeat(&self, to: &Name) -> Heartbeat {
        self.0.own_heartbeat(to, &AskedTenants::new())
    }

    fn report(&self, report: HeartbeatReport) {
        self.0.report(report);
    }
}
