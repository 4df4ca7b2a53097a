//! Errors of the engine as errors of Azure Resource Manager.

use forewarn_server::Problem;
use forewarn_server::operator::Denied;

use crate::ArmError;

/// The error for a problem of the engine.
pub(crate) fn of_problem(problem: &Problem) -> ArmError {
    let text = problem.to_string();
    match problem {
        Problem::Refused(refusal) => crate::refused(refusal),
        Problem::Bad(bad) => crate::bad_command(bad),
        Problem::AddressTaken { .. }
        | Problem::GroupTaken(_)
        | Problem::ClusterInUse(_)
        | Problem::ShownOnce(_) => ArmError::new(409, "Conflict", text),
        Problem::Catalogue(_) => ArmError::new(409, "OperationNotAllowed", text),
        Problem::Denied(denied) => of_denied(denied),
        Problem::TokenGone => ArmError::new(401, "ExpiredAuthenticationToken", text),
        Problem::Changed => {
            ArmError::new(412, "PreconditionFailed", "The resource is not any more what the request expects.")
        }
        Problem::NoSuchCluster => ArmError::new(404, "NotFound", text),
        Problem::EndOfTime | Problem::NotPretending | Problem::RealClock => {
            ArmError::new(409, "OperationNotAllowed", text)
        }
        Problem::Unavailable => ArmError::new(503, "ServiceUnavailable", text),
    }
}

/// The error for a missing permission.
pub(crate) fn of_denied(denied: &Denied) -> ArmError {
    ArmError::new(403, "AuthorizationFailed", denied.to_string())
}
