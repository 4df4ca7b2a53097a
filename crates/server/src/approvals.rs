//! The control plane as the metadata endpoint sees it: look-ups read the snapshot; approvals, enrolments and reports of
//! polls become commands to the driver.

use std::net::IpAddr;
use std::sync::Arc;

use forewarn_control::shared::SharedState;
use forewarn_control::{ClusterState, ControlError, machine_if_known};
use forewarn_imds::Instance;
use forewarn_lifecycle::{Approver, Command, EventId, Name, Now, Refusal, Tenant, TenantId};
use forewarn_metadata::{
    ApprovalError, Caller, CallerId, ControlPlane, EnrolError, FaultTable, PollReportError,
};
use forewarn_types::ClusterId;

use crate::control_handle::ControlHandle;
use crate::instance::instance_of;

impl ControlPlane for ControlHandle {
    fn now(&self) -> Now {
        self.clock().now()
    }

    fn faults(&self) -> Option<Arc<FaultTable>> {
        self.directory().faults().cloned()
    }

    fn generation(&self) -> u64 {
        self.directory().generation()
    }

    fn caller_at(&self, cluster: ClusterId, address: IpAddr) -> Option<Arc<Caller>> {
        let machine = self.snapshot_guard().state.cluster(cluster)?.machine_at(&address)?;
        self.caller(CallerId { cluster, machine })
    }

    fn has_addresses(&self, cluster: ClusterId) -> bool {
        self.snapshot_guard().state.cluster(cluster).is_some_and(ClusterState::has_addresses)
    }

    fn caller_named(&self, name: &str) -> Option<Arc<Caller>> {
        let snapshot = self.snapshot_guard();
        let (cluster, name) = split_cluster(snapshot.state.shared(), name)?;
        let machine = machine_if_known(snapshot.state.cluster(cluster)?.rules(), name)?;
        self.caller(CallerId { cluster, machine })
    }

    fn cluster_named(&self, name: &str) -> Option<ClusterId> {
        self.snapshot_guard().state.shared().cluster_named(name)
    }

    fn instance(&self, caller: &Caller) -> Option<Instance> {
        let (snapshot, CallerId { cluster, machine }) = (self.snapshot_guard(), caller.id());
        instance_of(snapshot.state.cluster(cluster)?, machine, &snapshot.identity.nth(cluster.0))
    }

    fn members(&self, caller: &Caller) -> Vec<Name> {
        let snapshot = self.snapshot_guard();
        let Some(state) = snapshot.state.cluster(caller.slot.cluster) else { return Vec::new() };
        let machines = state.rules().tenant(caller.slot.tenant).into_iter().flat_map(Tenant::machines);
        machines.filter_map(|id| Some(state.rules().machine(*id)?.name.clone())).collect()
    }

    async fn enrol(&self, cluster: ClusterId, tenant: TenantId) -> Result<(), EnrolError> {
        self.of(cluster).submit(Command::Enrol(tenant)).await?;
        Ok(())
    }

    async fn report_poll(&self, CallerId { cluster, machine }: CallerId) -> Result<(), PollReportError> {
        self.of(cluster).submit(Command::Polled(machine)).await?;
        Ok(())
    }

    async fn approve(&self, caller: &Caller, events: Vec<EventId>) -> Result<(), ApprovalError> {
        let by = Approver::Machine(caller.machine);
        let approve = Command::Approve { tenant: caller.slot.tenant, events, by };
        match self.of(caller.slot.cluster).submit(approve).await {
            Ok(_) => Ok(()),
            Err(error) => Err(refused(&error)),
        }
    }
}

/// Splits a name before the tenant. A name in the default cluster has no cluster: names of other clusters take none
/// from its machines.
fn split_cluster<'a>(shared: &SharedState, name: &'a str) -> Option<(ClusterId, &'a str)> {
    match name.split_once('/') {
        Some((cluster, rest)) if rest.contains('/') => {
            let id = shared.cluster_named(cluster).filter(|id| *id != ClusterId::DEFAULT)?;
            Some((id, rest))
        }
        Some(_) | None => Some((ClusterId::DEFAULT, name)),
    }
}

fn refused(error: &ControlError) -> ApprovalError {
    match error {
        ControlError::Refused(Refusal::UnknownEvent) => ApprovalError::UnknownEvent,
        ControlError::Refused(Refusal::NoEvents) => ApprovalError::NoEvents,
        ControlError::Refused(Refusal::TooMany { .. }) => ApprovalError::TooManyEvents,
        ControlError::Refused(Refusal::NoSuchMachine | Refusal::NoSuchTenant) => ApprovalError::UnknownCaller,
        ControlError::Refused(refusal) => {
            tracing::error!(%refusal, "approval rejected for an unexpected reason");
            ApprovalError::Unavailable
        }
        ControlError::RealClock
        | ControlError::Bad(_)
        | ControlError::AddressTaken { .. }
        | ControlError::NoSuchCluster
        | ControlError::Elsewhere
        | ControlError::Rejected(_)
        | ControlError::NoNotice(_)
        | ControlError::NoEvent
        | ControlError::Changed
        | ControlError::Denied(_)
        | ControlError::TokenGone
        | ControlError::GroupTaken(_)
        | ControlError::ClusterInUse(_)
        | ControlError::ShownOnce(_)
        | ControlError::NotPretending
        | ControlError::EndOfTime
        | ControlError::NotLater(_)
        | ControlError::ScaleSetError(_)
        | ControlError::Outdated
        | ControlError::Unclaimed
        | ControlError::ClusterFailed(_)
        | ControlError::EngineRestored(_)
        | ControlError::Unavailable => ApprovalError::Unavailable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forewarn_imds::RequestError;

    #[test]
    fn each_rejection_of_an_approval_has_its_response() {
        let answer = |refusal: Refusal| {
            let problem = RequestError::from(refused(&refusal.into()));
            (problem.status(), problem.retry_after_seconds())
        };
        assert_eq!(answer(Refusal::UnknownEvent), (400, None));
        assert_eq!(answer(Refusal::NoEvents), (400, None));
        assert_eq!(answer(Refusal::TooMany { what: "event ids".into(), max: 1 }), (400, None));
        assert_eq!(answer(Refusal::NoSuchMachine), (403, None));
        assert_eq!(answer(Refusal::BrakeOn), (503, Some(1)));
        let unavailable = RequestError::from(refused(&ControlError::Unavailable));
        assert_eq!(unavailable, RequestError::Unavailable { retry_after_seconds: 1 });
    }
}
