//! What whoever asks may do: made at the gate, carried by the request, looked at where it matters.
//!
//! The gate knows who asks; a handler knows which role a route needs, and which cluster is meant; the owner of that
//! cluster knows whose a machine or an event is, and asks in the same moment in which it obeys.
//!
//! What lies outside a permit and what is not there look alike: a name is not a thing to be found out.

use forewarn_control::NamedCommand;
use forewarn_control::shared::{ClusterId, Reach, Role, Scope, Token};
use forewarn_lifecycle::{Cluster, MachineId, Name, Shape, TenantId, Timestamp};

use super::role::{is_within, named_host, needs};
use crate::engine::Terms;
use crate::roster::Roster;

/// What somebody may do, and to what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Permit {
    /// Who it is: `token NAME`, `socket`, `anyone`.
    pub(crate) by: String,
    /// What that one may do.
    pub(crate) role: Role,
    /// To what.
    pub(crate) scope: Scope,
    /// The number of the token that it is made of.
    pub(crate) token: Option<u32>,
}

/// Why somebody may not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// Others may.
    #[error("not for this role: {has}\n  hint: it needs the role {needs}")]
    Role {
        /// The least that is needed.
        needs: Role,
        /// What there is.
        has: Role,
    },
    /// It concerns more than one cluster, or more than some tenants.
    #[error(
        "the token is limited to some clusters or tenants, and this concerns all\n  hint: take one that is not"
    )]
    Limited,
    /// It is about, or might touch, tenants that are not in the scope; or about nothing that there is.
    #[error("not there, or outside the tenants of this token\n  hint: call a machine TENANT/NAME")]
    Tenants,
}

impl Permit {
    /// That of whoever may do everything.
    pub(crate) fn unlimited(by: &str) -> Self {
        Self { by: by.to_owned(), role: Role::Admin, scope: Scope::default(), token: None }
    }

    /// That of the holder of a token.
    pub(crate) fn of(token: &Token) -> Self {
        let (role, scope) = (token.role, token.scope.clone());
        Self { by: format!("token {}", token.name), role, scope, token: Some(token.number) }
    }

    /// Whether the token behind it exists, has not expired, and has the same role and scope.
    pub(crate) fn stands(&self, roster: &Roster, now: Timestamp) -> bool {
        let is_same = |token: &Token| token.role == self.role && token.scope == self.scope;
        let is_good = |token: &Token| !token.is_expired(now) && is_same(token);
        self.token.is_none_or(|number| roster.token(number).is_some_and(is_good))
    }

    /// The terms of a request: who asks. The driver checks the token again when it carries the request out.
    pub(crate) fn terms(&self) -> Terms {
        Terms { by: self.by.clone(), token: self.token, ..Terms::default() }
    }

    /// Whether the role is enough.
    pub(crate) fn check_role(&self, needs: Role) -> Result<(), Denied> {
        if self.role >= needs { Ok(()) } else { Err(Denied::Role { needs, has: self.role }) }
    }

    /// Whether that may be done which concerns the whole server: clusters, tokens, its journal.
    pub(crate) fn check_server(&self, needs: Role) -> Result<(), Denied> {
        self.check_role(needs)?;
        if self.scope.is_all() { Ok(()) } else { Err(Denied::Limited) }
    }

    /// Whether that may be done, or seen, which concerns all tenants of a cluster.
    pub(crate) fn check_all_tenants(&self, needs: Role) -> Result<(), Denied> {
        self.check_role(needs)?;
        if self.scope.tenants.is_all() { Ok(()) } else { Err(Denied::Limited) }
    }

    /// Whether that may be done. Whoever obeys the command asks, in the same state of the cluster in which it does.
    pub(crate) fn check_command(&self, command: &NamedCommand, cluster: &Cluster) -> Result<(), Denied> {
        self.check_role(needs(command))?;
        if is_within(command, cluster, &self.scope.tenants) { Ok(()) } else { Err(Denied::Tenants) }
    }

    /// Checks a command of a client, which may name hosts that the client has no business with.
    pub(crate) fn check_request(&self, command: &NamedCommand, cluster: &Cluster) -> Result<(), Denied> {
        self.check_command(command, cluster)?;
        named_host(command).map_or(Ok(()), |host| self.check_host(cluster, host))
    }

    /// Checks the name of a host. A token that is limited to tenants may name the hosts that carry their machines: a host
    /// that carries none of them and one that does not exist look alike.
    pub(crate) fn check_host(&self, cluster: &Cluster, name: &str) -> Result<(), Denied> {
        let host = || cluster.host(cluster.host_named(name)?);
        let is_seen = |id: &MachineId| cluster.machine(*id).is_some_and(|one| self.sees(cluster, one.tenant));
        let carries = || host().is_some_and(|host| host.machines().iter().any(is_seen));
        if self.scope.tenants.is_all() || carries() { Ok(()) } else { Err(Denied::Tenants) }
    }

    /// Whether this cluster is in the scope.
    pub(crate) fn reaches(&self, cluster: ClusterId) -> bool {
        self.scope.clusters.includes(&cluster)
    }

    /// That tenant, if it is in the scope.
    pub(crate) fn check_tenant(&self, cluster: &Cluster, tenant: TenantId) -> Result<TenantId, Denied> {
        if self.sees(cluster, tenant) { Ok(tenant) } else { Err(Denied::Tenants) }
    }

    /// Whether the tenant of that name is in the scope, or the scale set: people know no other name of its tenants.
    pub(crate) fn sees_named(&self, name: &str) -> bool {
        self.scope.tenants.is_all() || self.scope.tenants.includes(name)
    }

    /// Whether this tenant is in the scope.
    pub(crate) fn sees(&self, cluster: &Cluster, tenant: TenantId) -> bool {
        is_in_scope(cluster, tenant, &self.scope.tenants)
    }
}

/// Whether a tenant is among those of a scope, which has a placement group under the name of its scale set: people know no
/// other.
pub(super) fn is_in_scope(cluster: &Cluster, tenant: TenantId, scope: &Reach<Name>) -> bool {
    let name = cluster.tenant(tenant).and_then(|tenant| match tenant.shape {
        Shape::PlacementGroup(set) => cluster.scale_set(set).map(|set| &set.name),
        Shape::StandaloneMachine | Shape::CloudService | Shape::AvailabilitySet => Some(&tenant.name),
    });
    scope.is_all() || name.is_some_and(|name| scope.includes(name.as_str()))
}
