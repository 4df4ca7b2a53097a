//! Errors of the control plane as errors of Azure Resource Manager.

use forewarn_control::ControlError;
use forewarn_control::Denied;

use crate::ArmError;

/// Converts an error of the control plane.
pub(crate) fn of_problem(problem: &ControlError) -> ArmError {
    let text = problem.to_string();
    match problem {
        ControlError::Refused(refusal) => crate::refused(refusal),
        ControlError::Bad(bad) => crate::bad_command(bad),
        ControlError::ScaleSetError(bad) => crate::scale_set_error(bad),
        ControlError::AddressTaken { .. }
        | ControlError::GroupTaken(_)
        | ControlError::ClusterInUse(_)
        | ControlError::ShownOnce(_) => ArmError::new(409, "Conflict", text),
        ControlError::Rejected(_) => ArmError::new(409, "OperationNotAllowed", text),
        ControlError::Denied(denied) => of_denied(denied),
        ControlError::TokenGone => ArmError::new(401, "ExpiredAuthenticationToken", text),
        ControlError::Changed => ArmError::new(
            412,
            "PreconditionFailed",
            "The resource has changed since the request was prepared.",
        ),
        ControlError::NoSuchCluster => ArmError::new(404, "NotFound", text),
        ControlError::EndOfTime
        | ControlError::NotLater(_)
        | ControlError::NotPretending
        | ControlError::RealClock
        | ControlError::NoNotice(_)
        | ControlError::NoEvent => ArmError::new(409, "OperationNotAllowed", text),
        ControlError::Outdated
        | ControlError::Unclaimed
        | ControlError::ClusterFailed(_)
        | ControlError::EngineRestored(_)
        | ControlError::Unavailable
        | ControlError::Elsewhere => ArmError::new(503, "ServiceUnavailable", text),
    }
}

/// Converts a missing permission.
pub(crate) fn of_denied(denied: &Denied) -> ArmError {
    ArmError::new(403, "AuthorizationFailed", denied.to_string())
}
