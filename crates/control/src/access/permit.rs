//! The permit of a caller: role and scope. It is made when the caller is authenticated, travels with the request, and
//! is checked against the state in which the request is decided.
//!
//! A target outside of the scope and one that does not exist give the same response: callers cannot find out names.

use forewarn_lifecycle::{Cluster, HostId, MachineId, TenantId, Timestamp};
use serde::{Deserialize, Serialize};

use super::role::{host_of_resolved, is_resolved_within, is_within, named_host, needs};
use super::scope::is_in_scope;
use crate::command::{NamedCommand, Resolved};
use crate::shared::{Role, Scope, Token};
use crate::stream::ClusterId;

/// Permission of a request's sender: a role, and the clusters and tenants that it applies to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Permit {
    /// Name of the sender in the audit log: `token NAME`, `socket`, `anyone`.
    pub by: String,
    pub role: Role,
    pub scope: Scope,
    /// Number of the sender's token.
    #[serde(deserialize_with = "Option::deserialize")]
    pub token: Option<u32>,
}

/// The reason why a caller is denied a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(deny_unknown_fields)]
pub enum Denied {
    /// The role of the caller is not sufficient.
    #[error("role {has} is not sufficient\n  hint: this needs the role {needs}")]
    Role {
        /// The lowest role that is sufficient.
        needs: Role,
        /// The role of the caller.
        has: Role,
    },
    /// The request affects the whole server or a whole cluster, and the token is limited to a part.
    #[error(
        "the token is limited to some clusters or tenants, and this request affects all of them\n  hint: use an unlimited token"
    )]
    Limited,
    /// The target is outside the token's tenants, or does not exist. Callers must not be able to tell which.
    #[error("not found, or outside the tenants of this token\n  hint: name a machine as TENANT/NAME")]
    Tenants,
}

impl Permit {
    #[must_use]
    pub fn unlimited(by: &str) -> Self {
        Self { by: by.to_owned(), role: Role::Admin, scope: Scope::default(), token: None }
    }

    /// Permission of a token.
    #[must_use]
    pub fn of(token: &Token) -> Self {
        let (role, scope) = (token.role, token.scope.clone());
        Self { by: format!("token {}", token.name), role, scope, token: Some(token.number) }
    }

    /// Compares with the token behind it, if there is one: the token must exist, not have expired, and have the same
    /// role and scope.
    #[must_use]
    pub fn stands<'a>(&self, find: impl FnOnce(u32) -> Option<&'a Token>, now: Timestamp) -> bool {
        let is_same = |token: &Token| token.role == self.role && token.scope == self.scope;
        let is_good = |token: &Token| !token.is_expired(now) && is_same(token);
        self.token.is_none_or(|number| find(number).is_some_and(is_good))
    }

    /// Checks the role.
    ///
    /// # Errors
    /// Fails if it is not sufficient.
    pub fn check_role(&self, needs: Role) -> Result<(), Denied> {
        if self.role >= needs { Ok(()) } else { Err(Denied::Role { needs, has: self.role }) }
    }

    /// Checks the permission for requests that affect the whole server: clusters, tokens, its journal.
    pub fn check_server(&self, needs: Role) -> Result<(), Denied> {
        self.check_role(needs)?;
        if self.scope.is_all() { Ok(()) } else { Err(Denied::Limited) }
    }

    /// Checks the permission for everything that concerns all tenants of a cluster.
    ///
    /// # Errors
    /// Fails if the role is not sufficient, or the permit is limited to tenants.
    pub fn check_all_tenants(&self, needs: Role) -> Result<(), Denied> {
        self.check_role(needs)?;
        if self.scope.tenants.is_all() { Ok(()) } else { Err(Denied::Limited) }
    }

    /// Checks a command, in the state of the cluster in which it is carried out.
    ///
    /// # Errors
    /// Fails if the role is not sufficient, or the command concerns other tenants.
    pub fn check_command(&self, command: &NamedCommand, cluster: &Cluster) -> Result<(), Denied> {
        self.check_role(needs(command))?;
        if is_within(command, cluster, &self.scope.tenants) { Ok(()) } else { Err(Denied::Tenants) }
    }

    /// Checks a command whose names were found in that state of the cluster.
    ///
    /// # Errors
    /// Fails if the role is not sufficient, or the command concerns other tenants.
    pub fn check_resolved(
        &self,
        command: &NamedCommand,
        resolved: &Resolved,
        cluster: &Cluster,
    ) -> Result<(), Denied> {
        self.check_role(needs(command))?;
        let is_within = is_resolved_within(command, resolved, cluster, &self.scope.tenants);
        if is_within { Ok(()) } else { Err(Denied::Tenants) }
    }

    /// Checks the host that a client has named in a command whose names were found.
    ///
    /// # Errors
    /// Fails if the permit is limited to tenants, and the host carries none of their machines.
    pub fn check_resolved_host(&self, resolved: &Resolved, cluster: &Cluster) -> Result<(), Denied> {
        host_of_resolved(resolved).map_or(Ok(()), |host| self.check_host_id(cluster, Some(host)))
    }

    /// Checks a command of a client, which may name hosts that the client has no business with.
    pub fn check_request(&self, command: &NamedCommand, cluster: &Cluster) -> Result<(), Denied> {
        self.check_command(command, cluster)?;
        named_host(command).map_or(Ok(()), |host| self.check_host(cluster, host))
    }

    /// Checks the name of a host. A token that is limited to tenants may name the hosts that carry their machines: a
    /// host that carries none of them and one that does not exist look alike.
    pub fn check_host(&self, cluster: &Cluster, name: &str) -> Result<(), Denied> {
        // No name is looked up for nothing: a request may have many.
        if self.scope.tenants.is_all() {
            Ok(())
        } else {
            self.check_host_id(cluster, cluster.host_named(name))
        }
    }

    fn check_host_id(&self, cluster: &Cluster, id: Option<HostId>) -> Result<(), Denied> {
        let host = || cluster.host(id?);
        let is_seen = |id: &MachineId| cluster.machine(*id).is_some_and(|one| self.sees(cluster, one.tenant));
        let carries = || host().is_some_and(|host| host.machines().iter().any(is_seen));
        if self.scope.tenants.is_all() || carries() { Ok(()) } else { Err(Denied::Tenants) }
    }

    /// The cluster is in the scope.
    #[must_use]
    pub fn reaches(&self, cluster: ClusterId) -> bool {
        self.scope.clusters.includes(&cluster)
    }

    /// That tenant, if it is in the scope.
    pub fn check_tenant(&self, cluster: &Cluster, tenant: TenantId) -> Result<TenantId, Denied> {
        if self.sees(cluster, tenant) { Ok(tenant) } else { Err(Denied::Tenants) }
    }

    /// The tenant or scale set of that name is in the scope. The tenants of a scale set are in it under the name of
    /// the set.
    #[must_use]
    pub fn sees_named(&self, name: &str) -> bool {
        self.scope.tenants.is_all() || self.scope.tenants.includes(name)
    }

    /// The tenant is in the scope.
    #[must_use]
    pub fn sees(&self, cluster: &Cluster, tenant: TenantId) -> bool {
        is_in_scope(cluster, tenant, &self.scope.tenants)
    }
}
