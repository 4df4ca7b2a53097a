//! Errors of the engine as errors of Azure Resource Manager.

use forewarn_control::ControlError;
use forewarn_control::Denied;

use crate::ArmError;

/// The error for a problem of the engine.
pub(crate) fn of_problem(problem: &ControlError) -> ArmError {
    let text = problem.to_string();
    match problem {
        ControlError::Refused(refusal) => crate::refused(refusal),
        ControlError::Bad(bad) => crate::bad_command(bad),
        ControlError::ScaleSetError(bad) => crate::bad_wish(bad),
        ControlError::AddressTaken { .. }
        | ControlError::GroupTaken(_)
        | ControlError::ClusterInUse(_)
        | ControlError::ShownOnce(_) => ArmError::new(409, "Conflict", text),
        ControlError::Rejected(_) => ArmError::new(409, "OperationNotAllowed", text),
        ControlError::Denied(denied) => of_denied(denied),
        ControlError::TokenGone => ArmError::new(401, "ExpiredAuthenticationToken", text),
        ControlError::Changed => {
            ArmError::new(412, "PreconditionFailed", "The resource is not any more what the request expects.")
        }
        ControlError::NoSuchCluster => ArmError::new(404, "NotFound", text),
        ControlError::EndOfTime | ControlError::NotPretending | ControlError::RealClock => {
            ArmError::new(409, "OperationNotAllowed", text)
        }
        ControlError::Outdated | ControlError::Unavailable => ArmError::new(503, "ServiceUnavailable", text),
    }
}

/// The error for a missing permission.
pub(crate) fn of_denied(denied: &Denied) -> ArmError {
    ArmError::new(403, "AuthorizationFailed", denied.to_string())
}
