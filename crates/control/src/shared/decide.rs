//! Decisions about the shared state. No changes mean that the state is as wanted already.

use forewarn_lifecycle::{Name, Now, Seed, Timestamp};

use crate::command::Site;
use crate::limits::{CLUSTERS_MAX, CLUSTERS_PER_SCOPE_MAX, TENANTS_PER_SCOPE_MAX, TOKENS_MAX};
use crate::receipts::{NewReceipt, check_by};
use crate::refusal::Refusal;
use crate::shared::change::Change;
use crate::shared::command::Command;
use crate::shared::state::SharedState;
use crate::shared::token::{Reach, Role, Scope, Token};
use crate::stream::ClusterId;

type SharedDecision = Result<Vec<Change>, Refusal>;

impl SharedState {
    /// Decides a command: the changes that it makes.
    ///
    /// # Errors
    /// Fails if the command is refused.
    pub fn decide(&self, now: Now, command: &Command) -> Result<Vec<Change>, Refusal> {
        match command {
            Command::CreateCluster { name, seed, site } => self.create_cluster(name, *seed, site),
            Command::RenameCluster { cluster, name } => self.rename_cluster(*cluster, name),
            Command::RemoveCluster(cluster) => self.remove_cluster(*cluster),
            Command::IssueToken { number, name, role, scope, hash, expires, by } => {
                let (name, scope, by) = (name.clone(), scope.clone(), by.clone());
                let (created, expires) = (now.wall, *expires);
                let token =
                    Token { number: *number, name, role: *role, scope, hash: *hash, created, expires, by };
                self.issue_token(now.wall, token)
            }
            Command::RevokeToken(name) => self.revoke_token(name),
            Command::KeepReceipt(new) => self.keep_receipt(now, new),
            Command::Webhook(command) => {
                Ok(self.decide_webhook(now, command)?.into_iter().map(Change::Webhook).collect())
            }
            Command::TakeClaims { cluster, claims } => self.decide_take(*cluster, claims),
            Command::ReleaseClaims { cluster, groups } => Ok(self.decide_release(*cluster, groups)),
        }
    }

    fn create_cluster(&self, name: &Name, seed: Seed, site: &Site) -> SharedDecision {
        self.check_cluster_name(name)?;
        Refusal::check(self.clusters.len() + 1, CLUSTERS_MAX, "clusters")?;
        check_number(self.next.cluster, "clusters")?;
        let cluster = ClusterId(self.next.cluster);
        let (name, site) = (name.clone(), site.clone());
        Ok(vec![Change::ClusterCreated { cluster, name, seed, site }])
    }

    fn rename_cluster(&self, cluster: ClusterId, name: &Name) -> SharedDecision {
        if self.known_cluster(cluster)? == name {
            return Ok(Vec::new());
        }
        check_not_default(cluster)?;
        self.check_cluster_name(name)?;
        Ok(vec![Change::ClusterRenamed { cluster, name: name.clone() }])
    }

    fn remove_cluster(&self, cluster: ClusterId) -> SharedDecision {
        self.known_cluster(cluster)?;
        check_not_default(cluster)?;
        let good_for_nothing_else = |token: &&Token| {
            token.scope.clusters.includes(&cluster) && token.scope.clusters.named().count() == 1
        };
        let tokens = self.tokens().filter(good_for_nothing_else);
        let mut changes: Vec<_> = tokens.map(|token| Change::TokenRevoked(token.number)).collect();
        changes.push(Change::ClusterRemoved(cluster));
        Ok(changes)
    }

    fn issue_token(&self, now: Timestamp, token: Token) -> SharedDecision {
        check_by(&token.by)?;
        self.check_scope(&token.name, token.role, &token.scope)?;
        if token.is_expired(now) {
            return Err(Refusal::ExpiredAlready(token.name));
        }
        if token.number != self.next.token {
            return Err(Refusal::NotNextToken { number: token.number, next: self.next.token });
        }
        check_number(token.number, "tokens")?;
        let mut changes = Vec::new();
        match self.token_named(token.name.as_str()) {
            Some(before) if before.is_expired(now) => changes.push(Change::TokenRevoked(before.number)),
            Some(_) => return Err(Refusal::NameTaken(token.name)),
            None => Refusal::check(self.tokens.len() + 1, TOKENS_MAX, "tokens")?,
        }
        changes.push(Change::TokenIssued(token));
        Ok(changes)
    }

    fn revoke_token(&self, name: &Name) -> SharedDecision {
        let token = self.token_named(name.as_str()).ok_or_else(|| Refusal::NoSuchToken(name.clone()))?;
        Ok(vec![Change::TokenRevoked(token.number)])
    }

    fn keep_receipt(&self, now: Now, new: &NewReceipt) -> SharedDecision {
        let is_new = self.receipts.check(now.steady, new)?;
        Ok(is_new.then(|| Change::ReceiptKept(new.clone())).into_iter().collect())
    }

    pub(crate) fn known_cluster(&self, id: ClusterId) -> Result<&Name, Refusal> {
        self.cluster_name(id).ok_or(Refusal::NoSuchCluster(id))
    }

    fn check_cluster_name(&self, name: &Name) -> Result<(), Refusal> {
        match self.cluster_named(name.as_str()) {
            Some(_) => Err(Refusal::NameTaken(name.clone())),
            None => Ok(()),
        }
    }

    fn check_scope(&self, token: &Name, role: Role, scope: &Scope) -> Result<(), Refusal> {
        self.check_reach_of_scope(scope, |what| Refusal::ScopeOfNothing {
            what: what.into(),
            name: token.clone(),
        })?;
        // Actions of an admin concern all tenants: a limited admin could do nothing.
        if role == Role::Admin && !scope.tenants.is_all() {
            return Err(Refusal::AdminOfTenants(token.clone()));
        }
        Ok(())
    }

    /// Checks that a scope is neither empty nor too long, and names clusters that exist.
    pub(crate) fn check_reach_of_scope(
        &self,
        scope: &Scope,
        of_nothing: impl Fn(&'static str) -> Refusal,
    ) -> Result<(), Refusal> {
        check_reach(&scope.clusters, CLUSTERS_PER_SCOPE_MAX, "clusters", &of_nothing)?;
        check_reach(&scope.tenants, TENANTS_PER_SCOPE_MAX, "tenants", &of_nothing)?;
        scope.clusters.named().try_for_each(|cluster| self.known_cluster(*cluster).map(drop))
    }
}

fn check_reach<T: Ord>(
    reach: &Reach<T>,
    max: usize,
    what: &'static str,
    of_nothing: impl Fn(&'static str) -> Refusal,
) -> Result<(), Refusal> {
    match reach {
        Reach::All => Ok(()),
        Reach::Only(some) if some.is_empty() => Err(of_nothing(what)),
        Reach::Only(some) => Refusal::check(some.len(), max, what),
    }
}

fn check_not_default(cluster: ClusterId) -> Result<(), Refusal> {
    if cluster == ClusterId::DEFAULT { Err(Refusal::DefaultCluster) } else { Ok(()) }
}

/// Refuses the last number: there would be none after it.
pub(crate) fn check_number(number: u32, what: &'static str) -> Result<(), Refusal> {
    if number < u32::MAX {
        Ok(())
    } else {
        Err(Refusal::TooMany { what: what.into(), max: u32::MAX as usize })
    }
}
