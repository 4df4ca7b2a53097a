//! What the engine says no with, as clients of Azure read it.

use forewarn_azure::ArmError;

use crate::engine::Problem;
use crate::operator::Denied;

/// A problem of the engine as a refusal.
pub(crate) fn of(problem: &Problem) -> ArmError {
    let text = problem.to_string();
    match problem {
        Problem::Refused(refusal) => forewarn_azure::refused(refusal),
        Problem::Bad(bad) => forewarn_azure::bad_command(bad),
        Problem::AddressTaken { .. }
        | Problem::GroupTaken(_)
        | Problem::ClusterInUse(_)
        | Problem::ShownOnce(_) => ArmError::new(409, "Conflict", text),
        Problem::Catalogue(_) => ArmError::new(409, "OperationNotAllowed", text),
        Problem::Denied(denied) => self::denied(denied),
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

/// Somebody may not have it.
pub(crate) fn denied(denied: &Denied) -> ArmError {
    ArmError::new(403, "AuthorizationFailed", denied.to_string())
}
