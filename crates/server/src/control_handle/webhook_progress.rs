//! The progress of webhooks.

use forewarn_control::ControlError;
use forewarn_control::request::{ClusterRequest, Request, SharedRequest};
use forewarn_control::shared::Progress;

use super::ControlHandle;

impl ControlHandle {
    /// Records that a webhook has confirmed its subscription.
    ///
    /// # Errors
    /// Returns an error if the journal cannot be written.
    pub(crate) async fn confirm_webhook(
        &self,
        webhook: u32,
        per_minute: Option<u32>,
    ) -> Result<(), ControlError> {
        let request = SharedRequest::ConfirmWebhook { webhook, per_minute };
        self.request(Request::Shared(request)).await.map(drop)
    }

    /// Records messages of the cluster that were delivered to webhooks. Other webhooks without progress begin. The
    /// progress of a removed cluster is in the shared state.
    ///
    /// # Errors
    /// Returns an error if the journal cannot be written.
    pub(crate) async fn advance_webhooks(&self, reports: Vec<(u32, Progress)>) -> Result<(), ControlError> {
        match self.cluster_request(ClusterRequest::AdvanceWebhooks(reports.clone())).await {
            Err(ControlError::NoSuchCluster) => {
                let request = SharedRequest::AdvanceUndelivered { cluster: self.cluster, reports };
                self.request(Request::Shared(request)).await.map(drop)
            }
            result => result.map(drop),
        }
    }

    /// Records that a webhook has got all messages of the cluster, which was removed.
    ///
    /// # Errors
    /// Returns an error if the journal cannot be written.
    pub(crate) async fn end_undelivered(&self, webhook: u32) -> Result<(), ControlError> {
        let request = SharedRequest::EndUndelivered { cluster: self.cluster, webhook };
        self.request(Request::Shared(request)).await.map(drop)
    }
}
