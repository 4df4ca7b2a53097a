//! The permit that a route needs.

use forewarn_control::shared::Role;

use super::fault::Fault;
use forewarn_control::Permit;

/// The permit that a route needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    /// Nothing, not even a token.
    Nothing,
    /// That role, perhaps for some tenants only: the handler shows no others, and the driver changes no others.
    OfTenants(Role),
    /// That role for all tenants of the cluster.
    OfCluster(Role),
    /// That role for the whole server.
    OfServer(Role),
}

impl Needs {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Nothing => "anyone",
            Self::OfTenants(role) | Self::OfCluster(role) | Self::OfServer(role) => role.as_str(),
        }
    }

    /// Refuses a permit that is not enough.
    pub(super) fn check(self, permit: Option<&Permit>) -> Result<(), Fault> {
        let permit = || permit.ok_or_else(Fault::unauthorized);
        match self {
            Self::Nothing => Ok(()),
            Self::OfTenants(role) => Ok(permit()?.check_role(role)?),
            Self::OfCluster(role) => Ok(permit()?.check_all_tenants(role)?),
            Self::OfServer(role) => Ok(permit()?.check_server(role)?),
        }
    }
}
