//! Claims: resource groups that belong to the cluster. A claim is taken by a commit of the shared stream before the
//! cluster uses the group, and released by another one after the cluster no longer does.
//!
//! Only this driver takes and releases claims of its cluster. A crash in between leaves a claim that the cluster does
//! not use; the driver releases it when it starts again.

use std::sync::Arc;

use forewarn_control::request::{ClusterRequest, Reply, SharedRequest};
use forewarn_control::{ControlError, claims_needed, missing_claims, unused_claims};

use super::Driver;

impl Driver {
    /// Takes the claims that a request needs, and decides the request.
    pub(super) async fn decide_with_claims(
        &mut self,
        request: &Arc<ClusterRequest>,
    ) -> Result<Reply, ControlError> {
        let (shared, cluster) = (self.context.broadcasts.shared(), self.id);
        let claims = claims_needed(cluster, &self.state, &shared, request);
        // The request may be refused now: the claims are checked after the next commit.
        self.batch.claims_changed = true;
        self.context.request_shared(SharedRequest::TakeClaims { cluster, claims }).await?;
        self.decide_request(request).await
    }

    /// Brings the claims of the cluster in line with the groups that it uses.
    pub(super) async fn repair_claims(&self) {
        let (shared, cluster) = (self.context.broadcasts.shared(), self.id);
        let claims = missing_claims(cluster, &self.state, &shared);
        if !claims.is_empty() {
            self.request_claims(SharedRequest::TakeClaims { cluster, claims }).await;
        }
        let groups = unused_claims(cluster, &self.state, &shared);
        if !groups.is_empty() {
            self.request_claims(SharedRequest::ReleaseClaims { cluster, groups }).await;
        }
    }

    async fn request_claims(&self, request: SharedRequest) {
        if let Err(error) = self.context.request_shared(request).await {
            // The next start repeats it.
            tracing::debug!(cluster = self.id.0, %error, "cannot change claims");
        }
    }
}
