//! Clusters, tokens and settings: request bodies and views.

use forewarn_lifecycle::{Brake, Cluster, FailureKind, Name, TenantId, Unenrolled};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::command::enrolment::EnrolmentWord;
use crate::command::named::{FailureWord, UnenrolledWord};
use crate::command::schema;
use crate::view::realm::ClusterOwnerView;
use forewarn_types::{Moment, Span, list};

/// A cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterView {
    /// Name of the cluster.
    pub name: String,
    /// Number of hosts; null if the token is limited to some tenants.
    pub hosts: Option<u64>,
    /// Number of tenants that the caller may see.
    pub tenants: u64,
    /// Number of machines of these tenants.
    pub machines: u64,
    /// State of the brake.
    pub brake: BrakeWord,
    /// The reason why the cluster takes no requests: its driver has failed. Absent if it works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The owner in a realm. Absent outside of a realm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<ClusterOwnerView>,
}

/// A new cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewCluster {
    /// Name of the cluster.
    #[schemars(with = "schema::NewName")]
    pub name: String,
}

/// A new name of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClusterChange {
    /// The new name.
    #[schemars(with = "schema::NewName")]
    pub name: String,
}

/// State of the brake: `on` holds every start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BrakeWord {
    /// Every start is held.
    On,
    /// Events start normally.
    Off,
}

/// The brake of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BrakeView {
    /// State of the brake.
    pub brake: BrakeWord,
}

/// Settings of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SettingsView {
    /// Treatment of operations on tenants that are not enrolled.
    pub unenrolled: UnenrolledWord,
    /// Maximum number of events by users that one tenant may have at once; 0 for no limit.
    pub user_operations_max: u16,
    /// Effect of a failed host on its machines.
    pub failure: FailureWord,
    /// The time at which tenants are enrolled.
    #[serde(default)]
    pub enrolment: EnrolmentWord,
    /// State of the brake. It is changed at `/v1/brake`.
    pub brake: BrakeWord,
}

/// Role of a token. Each role includes the roles before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RoleWord {
    /// Reads.
    Viewer,
    /// Works on machines and hosts.
    Operator,
    /// Adds and removes objects, and changes settings, tokens and webhooks.
    Admin,
}

/// A new token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// Name of the token.
    #[schemars(with = "schema::NewName")]
    pub name: String,
    /// Role of the token.
    pub role: RoleWord,
    /// Clusters that the token is limited to; all if absent.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "list::at_least_one_or_absent"
    )]
    #[schemars(with = "Option<schema::AtLeastOne<schema::Name>>")]
    pub clusters: Option<Vec<String>>,
    /// Tenants that the token is limited to; all if absent. The name of a scale set stands for all its placement
    /// groups.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "list::at_least_one_or_absent"
    )]
    #[schemars(with = "Option<schema::AtLeastOne<schema::NewName>>")]
    pub tenants: Option<Vec<String>>,
    /// Time at which the token expires; never if both this and `expires_in` are absent. If both are present, the
    /// earlier applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Moment>,
    /// Lifetime of the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<Span>,
}

/// A token, without its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenView {
    /// Name of the token.
    pub name: String,
    /// Role of the token.
    pub role: RoleWord,
    /// Clusters that the token is limited to; null for all.
    pub clusters: Option<Vec<String>>,
    /// Tenants that the token is limited to; null for all.
    pub tenants: Option<Vec<String>>,
    /// Time of issue.
    pub created: Moment,
    /// Time at which it expires; null for never.
    pub expires: Option<Moment>,
    /// True if the token has expired.
    pub expired: bool,
    /// The caller that issued it.
    pub by: String,
}

/// The caller of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallerView {
    /// Its name in the audit log: `token NAME`, `socket`, or `anyone`.
    pub by: String,
    /// Its role.
    pub role: RoleWord,
    /// Clusters that it is limited to; null for all.
    pub clusters: Option<Vec<String>>,
    /// Tenants that it is limited to; null for all.
    pub tenants: Option<Vec<String>>,
}

/// A token that was just issued.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IssuedToken {
    /// Text of the token, for `Authorization: Bearer TEXT`. It is shown only once.
    pub text: String,
    /// The token.
    pub token: TokenView,
}

/// View of a cluster for a caller that may see these tenants: all if None.
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
    let (name, brake) = (name.to_string(), cluster.brake().into());
    ClusterView { name, hosts, tenants, machines, brake, failure: None, owner: None }
}

/// View of the settings of a cluster.
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
        enrolment: settings.enrolment.into(),
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
    fn a_new_token_needs_a_name_and_a_role_only() {
        let least: NewToken = serde_json::from_str(r#"{"name":"ci","role":"operator"}"#).unwrap();
        assert_eq!((least.clusters.as_ref(), least.tenants.as_ref(), least.expires), (None, None, None));
        assert_eq!(serde_json::to_string(&least).unwrap(), r#"{"name":"ci","role":"operator"}"#);
        assert!(serde_json::from_str::<NewToken>(r#"{"name":"ci","role":"root"}"#).is_err());
        assert!(serde_json::from_str::<NewToken>(r#"{"name":"ci","role":"admin","scope":[]}"#).is_err());
    }

    #[test]
    fn the_settings_of_a_new_cluster_are_shown() {
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
