//! The control plane as the metadata endpoint sees it: approvals and enrolments become commands to the driver.

use forewarn_control::ControlError;
use forewarn_lifecycle::{Approver, Command, EventId, Now, Refusal, TenantId};
use forewarn_metadata::{ApprovalError, Caller, ControlPlane, Directory, EnrolError};
use forewarn_types::ClusterId;

use crate::control_handle::ControlHandle;

impl ControlPlane for ControlHandle {
    fn now(&self) -> Now {
        self.clock().now()
    }

    fn directory(&self) -> &Directory {
        Self::directory(self)
    }

    async fn enrol(&self, cluster: ClusterId, tenant: TenantId) -> Result<(), EnrolError> {
        self.of(cluster).submit(Command::Enrol(tenant)).await?;
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
        | ControlError::Rejected(_)
        | ControlError::Changed
        | ControlError::Denied(_)
        | ControlError::TokenGone
        | ControlError::GroupTaken(_)
        | ControlError::ClusterInUse(_)
        | ControlError::ShownOnce(_)
        | ControlError::NotPretending
        | ControlError::EndOfTime
        | ControlError::ScaleSetError(_)
        | ControlError::Outdated
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
        assert_eq!(answer(Refusal::TooMany { what: "event ids", max: 1 }), (400, None));
        assert_eq!(answer(Refusal::NoSuchMachine), (403, None));
        assert_eq!(answer(Refusal::BrakeOn), (503, Some(1)));
        let unavailable = RequestError::from(refused(&ControlError::Unavailable));
        assert_eq!(unavailable, RequestError::Unavailable { retry_after_seconds: 1 });
    }
}
