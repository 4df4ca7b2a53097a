//! Changes that concern the shared stream and a cluster, one after the other.
//!
//! At a removal, the stream of the cluster is closed, then its name is removed. After a crash in between, the next start
//! completes the removal.

use forewarn_control::request::{Administration, ClusterRequest, Reply, RequestContext, SharedRequest};
use forewarn_control::{ClusterRemoval, ClusterState, ControlError};
use forewarn_lifecycle::Name;

use super::ControlHandle;
use crate::gate::OpenGate;
use crate::message::ClusterMessage;

impl ControlHandle {
    /// Renames a cluster, and waits until its machines are listed under the new name.
    pub(super) async fn rename_cluster(
        &self,
        cluster: Name,
        name: Name,
        context: RequestContext,
    ) -> Result<Reply, ControlError> {
        let renamed = self.shared().cluster_named(cluster.as_str());
        let change = Administration::RenameCluster { cluster, name };
        let reply = self.parts.context.request_shared(SharedRequest::Administer { change, context }).await?;
        self.parts.clusters.ask(renamed, |reply| ClusterMessage::Settle { reply }).await;
        Ok(reply)
    }

    /// Removes an empty cluster. The removal is completed even if the caller goes away.
    pub(super) async fn remove_cluster(
        &self,
        name: Name,
        context: RequestContext,
        open: OpenGate,
    ) -> Result<Reply, ControlError> {
        let control = self.clone();
        let removing = self.parts.runtime.spawn(async move {
            let _open = open;
            control.remove(&name, context).await
        });
        removing.await.unwrap_or(Err(ControlError::Unavailable))
    }

    async fn remove(&self, name: &Name, context: RequestContext) -> Result<Reply, ControlError> {
        let snapshot = self.snapshot();
        let shared = snapshot.state.shared();
        let now = self.clock().now();
        let cluster = match shared.check_removal(now, snapshot.revision, name, &context)? {
            ClusterRemoval::Repeated(outcome) => return Ok(Reply::Repeated(outcome)),
            ClusterRemoval::Close(cluster) => cluster,
        };
        let RequestContext { by, once, .. } = context;
        let close = ClusterRequest::Close { by: by.clone(), once: once.clone() };
        self.request_cluster(cluster, close).await?;
        // The closed cluster is published, also if another server owns it, unless another request has removed it since.
        let undelivered = self.snapshot().state.cluster(cluster).map(ClusterState::undelivered);
        let undelivered = undelivered.unwrap_or_default();
        let removal = SharedRequest::RemoveClosed { cluster, by, once, undelivered };
        self.parts.context.request_shared(removal).await
    }
}
