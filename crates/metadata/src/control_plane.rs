//! The control plane behind the endpoint: its clock, look-ups of callers, and the three requests that change its state.

use std::error::Error;
use std::fmt::Debug;
use std::net::IpAddr;
use std::sync::Arc;

use forewarn_imds::{BadStartRequest, Instance, RequestError};
use forewarn_types::{ClusterId, EventId, Name, Now, TenantId};

use crate::callers::{Caller, CallerId, FaultTable};

/// Seconds until a client should try again after too many requests, or while nothing can be written.
pub(crate) const RETRY_AFTER_SECONDS: u32 = 1;

/// The control plane behind the endpoint. A poll uses only its clock and its look-ups, which never wait.
pub trait ControlPlane: Clone + Debug + Send + Sync + 'static {
    fn now(&self) -> Now;

    /// The faults to inject, if the server permits faults. The endpoint reads this once.
    fn faults(&self) -> Option<Arc<FaultTable>> {
        None
    }

    /// Number that changes whenever a look-up may have another result.
    fn generation(&self) -> u64;

    /// The machine of a cluster with that address.
    fn caller_at(&self, cluster: ClusterId, address: IpAddr) -> Option<Arc<Caller>>;

    /// True if a machine of a cluster has an address.
    fn has_addresses(&self, cluster: ClusterId) -> bool;

    /// The machine with that name: `name` or `tenant/name` in the default cluster, or `cluster/tenant/name`.
    fn caller_named(&self, name: &str) -> Option<Arc<Caller>>;

    /// The cluster with that name.
    fn cluster_named(&self, name: &str) -> Option<ClusterId>;

    /// The instance metadata of a machine. None if it was deleted meanwhile.
    fn instance(&self, caller: &Caller) -> Option<Instance>;

    /// The names of the machines of the tenant of a machine.
    fn members(&self, caller: &Caller) -> Vec<Name>;

    /// Enables Scheduled Events for a tenant. Returns once that is durable and published.
    fn enrol(
        &self,
        cluster: ClusterId,
        tenant: TenantId,
    ) -> impl Future<Output = Result<(), EnrolError>> + Send;

    /// Reports a poll of a machine that the control plane waits for. Returns once that is durable and published.
    fn report_poll(&self, caller: CallerId) -> impl Future<Output = Result<(), PollReportError>> + Send;

    /// Approves events for the tenant of a machine: all of them, or none. Returns once that is durable and published.
    fn approve(
        &self,
        caller: &Caller,
        events: Vec<EventId>,
    ) -> impl Future<Output = Result<(), ApprovalError>> + Send;
}

/// Failure to enable Scheduled Events for a tenant.
pub type EnrolError = Box<dyn Error + Send + Sync>;

/// Failure to report a poll.
pub type PollReportError = Box<dyn Error + Send + Sync>;

/// Reason why an approval was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalError {
    /// The tenant has no such event.
    UnknownEvent,
    /// The approval names no event.
    NoEvents,
    /// The approval names too many events.
    TooManyEvents,
    /// The machine was deleted meanwhile.
    UnknownCaller,
    /// The journal cannot be written at the moment.
    Unavailable,
}

impl From<ApprovalError> for RequestError {
    fn from(error: ApprovalError) -> Self {
        match error {
            ApprovalError::UnknownEvent => Self::UnknownEvent,
            ApprovalError::NoEvents => BadStartRequest::StartRequestsEmpty.into(),
            ApprovalError::TooManyEvents => BadStartRequest::TooManyStartRequests.into(),
            ApprovalError::UnknownCaller => Self::UnknownCaller,
            ApprovalError::Unavailable => Self::Unavailable { retry_after_seconds: RETRY_AFTER_SECONDS },
        }
    }
}
