//! The permit that a route needs.

use forewarn_control::shared::Role;

use super::problem::ApiProblem;
use forewarn_control::Permit;

/// The permit that a route needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequiredPermit {
    None,
    /// A role, perhaps for some tenants only: handlers and the driver restrict the request to them.
    Tenants(Role),
    /// A role for all tenants of the cluster.
    Cluster(Role),
    /// A role for the whole server.
    Server(Role),
}

impl RequiredPermit {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::None => "anyone",
            Self::Tenants(role) | Self::Cluster(role) | Self::Server(role) => role.as_str(),
        }
    }

    /// Rejects a permit that does not suffice.
    pub(super) fn check(self, permit: Option<&Permit>) -> Result<(), ApiProblem> {
        let permit = || permit.ok_or_else(ApiProblem::unauthorized);
        match self {
            Self::None => Ok(()),
            Self::Tenants(role) => Ok(permit()?.check_role(role)?),
            Self::Cluster(role) => Ok(permit()?.check_all_tenants(role)?),
            Self::Server(role) => Ok(permit()?.check_server(role)?),
        }
    }
}
