//! Who may do what, to which clusters, and how a cluster behaves: what is asked for, and what is shown.

use forewarn_lifecycle::{Brake, Cluster, FailureKind, Name, TenantId, Unenrolled};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::command::named::{FailureWord, UnenrolledWord};
use crate::command::schema;
use forewarn_types::{Moment, Span, list};

/// A cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterView {
    /// Its name.
    pub name: String,
    /// How many hosts it has; nobody is told who is limited to some tenants.
    pub hosts: Option<u64>,
    /// How many tenants it has that whoever asks may see.
    pub tenants: u64,
    /// How many machines those have.
    pub machines: u64,
    /// Whether every start is held.
    pub brake: BrakeWord,
}

/// A cluster that is to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewCluster {
    /// Its name.
    #[schemars(with = "schema::NewName")]
    pub name: String,
}

/// What a cluster is to be called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClusterChange {
    /// Its name from now on.
    #[schemars(with = "schema::NewName")]
    pub name: String,
}

/// Whether every start is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BrakeWord {
    /// Every start is held.
    On,
    /// None is.
    Off,
}

/// The brake of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BrakeView {
    /// Whether every start is held.
    pub brake: BrakeWord,
}

/// How a cluster behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SettingsView {
    /// What happens to operations on tenants that are not enrolled.
    pub unenrolled: UnenrolledWord,
    /// How many events by users one tenant may have at once; 0: as many as fit.
    pub user_operations_max: u16,
    /// What a failed host does to its machines.
    pub failure: FailureWord,
    /// Whether every start is held. It has a path of its own: `/v1/brake`.
    pub brake: BrakeWord,
}

/// What the holder of a token may do. Each may do what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RoleWord {
    /// Looks.
    Viewer,
    /// Works on machines and hosts.
    Operator,
    /// Says what there is, how it behaves, and who may do what.
    Admin,
}

/// A token that is to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// What people call it.
    #[schemars(with = "schema::NewName")]
    pub name: String,
    /// What its holder may do.
    pub role: RoleWord,
    /// In which clusters; in all, if not said.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "list::at_least_one_or_absent"
    )]
    #[schemars(with = "Option<schema::AtLeastOne<schema::Name>>")]
    pub clusters: Option<Vec<String>>,
    /// For which tenants of them; for all, if not said. The name of a scale set stands for all its placement groups.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "list::at_least_one_or_absent"
    )]
    #[schemars(with = "Option<schema::AtLeastOne<schema::NewName>>")]
    pub tenants: Option<Vec<String>>,
    /// From when on it is good for nothing; without an end, if neither this nor `expires_in` is said. Of both, the
    /// earlier counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Moment>,
    /// For how long it is good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<Span>,
}

/// A token, as far as it can be shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenView {
    /// What people call it.
    pub name: String,
    /// What its holder may do.
    pub role: RoleWord,
    /// In which clusters; in all, if there is no list.
    pub clusters: Option<Vec<String>>,
    /// For which tenants of them; for all, if there is no list.
    pub tenants: Option<Vec<String>>,
    /// When it was issued.
    pub created: Moment,
    /// From when on it is good for nothing.
    pub expires: Option<Moment>,
    /// Whether it is good for nothing any more.
    pub expired: bool,
    /// Who issued it.
    pub by: String,
}

/// A token that was just issued.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IssuedToken {
    /// Its text, for `Authorization: Bearer TEXT`. This is the only time that it is shown.
    pub text: String,
    /// What it is good for.
    pub token: TokenView,
}

/// A cluster, as far as somebody may see it who may see these tenants: all, if none are given.
pub fn cluster_view(name: &Name, cluster: &Cluster, sees: Option<&dyn Fn(TenantId) -> bool>) -> ClusterView {
    let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    let (hosts, tenants, machines) = match sees {
        None => (Some(count(cluster.hosts().count())), cluster.tenants().count(), cluster.machines().count()),
        Some(sees) => {
            let seen = cluster.tenants().filter(|(id, _)| sees(*id));
            let (tenants, machines) = seen.fold((0, 0), |(tenants, machines), (_, tenant)| {
                (tenants + 1, machines + tenant.machines().len())
            });
            (None, tenants, machines)
        }
    };
    let (tenants, machines) = (count(tenants), count(machines));
    ClusterView { name: name.to_string(), hosts, tenants, machines, brake: cluster.brake().into() }
}

/// How a cluster behaves.
#[must_use]
pub fn settings_view(cluster: &Cluster) -> SettingsView {
    let settings = cluster.settings();
    SettingsView {
        unenrolled: match settings.unenrolled {
            Unenrolled::RunAtOnce => UnenrolledWord::Runs,
            Unenrolled::WaitAnyway => UnenrolledWord::Waits,
        },
        user_operations_max: settings.user_operations_max.unwrap_or(0),
        failure: match settings.failure {
            FailureKind::Reboot => FailureWord::Reboot,
            FailureKind::Redeploy => FailureWord::Redeploy,
        },
        brake: cluster.brake().into(),
    }
}

impl From<Brake> for BrakeWord {
    fn from(brake: Brake) -> Self {
        match brake {
            Brake::On => Self::On,
            Brake::Off => Self::Off,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_to_be_says_no_more_than_it_has_to() {
        let least: NewToken = serde_json::from_str(r#"{"name":"ci","role":"operator"}"#).unwrap();
        assert_eq!((least.clusters.as_ref(), least.tenants.as_ref(), least.expires), (None, None, None));
        assert_eq!(serde_json::to_string(&least).unwrap(), r#"{"name":"ci","role":"operator"}"#);
        assert!(serde_json::from_str::<NewToken>(r#"{"name":"ci","role":"root"}"#).is_err());
        assert!(serde_json::from_str::<NewToken>(r#"{"name":"ci","role":"admin","scope":[]}"#).is_err());
    }

    #[test]
    fn what_a_new_cluster_does_is_shown() {
        let cluster = Cluster::new(forewarn_lifecycle::Seed([0; 16]));
        let view = settings_view(&cluster);
        assert_eq!(
            (view.unenrolled, view.user_operations_max, view.brake),
            (UnenrolledWord::Runs, 0, BrakeWord::Off)
        );
        let name = Name::new("west").unwrap();
        assert_eq!(cluster_view(&name, &cluster, None).hosts, Some(0));
        assert_eq!(cluster_view(&name, &cluster, Some(&|_| false)).hosts, None);
    }
}
