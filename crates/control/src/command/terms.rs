//! Terms of a rollout in their written form, and the selection of its hosts.

use std::collections::BTreeSet;
use std::fmt;
use std::num::NonZeroU16;

use forewarn_lifecycle::{
    Cluster, Confirm, FaultDomains, Health, HealthGate, Host, HostAttention, HostId, HostTask, HostWork,
    Percent, RolloutTerms, Window, Zone,
};
use schemars::JsonSchema;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{IntoDeserializer, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::command::host_work::{HostWorkError, StepOptions, is_false};
use crate::command::lookup::{LookupError, find_host};
use crate::command::object::objects;
use crate::command::schema;
use crate::command::time_zone::TimeZoneError;
use crate::command::window::WindowEntry;
use forewarn_types::{Span, list};

/// A rollout: the work, the hosts, and the terms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct RolloutEntry {
    /// The kind of work.
    pub kind: WorkWord,
    /// The hosts.
    pub hosts: HostSelection,
    /// Hosts of the selection that are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Name>")]
    pub except: Vec<String>,
    /// The terms.
    #[serde(default)]
    pub terms: TermsEntry,
    /// The work on each host, for the driver and for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::WorkText>")]
    pub work: Option<String>,
    /// True if only machines are worked on, and no step is taken on the hosts themselves. `work` has no effect then.
    #[serde(default, skip_serializing_if = "is_false")]
    pub no_work: bool,
    /// Announced length of the interruption: 1 second to 18 hours; the usual one if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Interruption>")]
    pub duration: Option<Span>,
}

impl RolloutEntry {
    /// The hosts of the rollout, in the order of the selection.
    ///
    /// # Errors
    /// Fails if a host is not found.
    pub fn resolve_hosts(&self, cluster: &Cluster) -> Result<Vec<HostId>, LookupError> {
        let except: BTreeSet<_> = find_hosts(cluster, &self.except)?.into_iter().collect();
        let mut hosts = self.hosts.resolve(cluster)?;
        hosts.retain(|host| !except.contains(host));
        Ok(hosts)
    }

    /// The work on each host.
    ///
    /// # Errors
    /// Fails if the text or the duration is invalid.
    pub fn task(&self) -> Result<HostTask, HostWorkError> {
        let options =
            StepOptions { work: self.work.as_deref(), no_work: self.no_work, duration: self.duration };
        options.task(self.kind.into())
    }
}

/// Work of a rollout on hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WorkWord {
    /// Updates the hosts while their machines are paused.
    Update,
    /// Updates the network of the hosts.
    Network,
    /// Moves the machines of the hosts live.
    Migrate,
    /// Restarts the hosts while their machines are stopped.
    Reboot,
}

/// WindowsVisitor of hosts: by name, all, or those of a zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "hosts are a list of names (at least one), \"all\", or {\"zone\": N}")]
pub enum HostSelection {
    /// These hosts, in this order.
    Names(
        #[serde(deserialize_with = "list::at_least_one")]
        #[schemars(with = "schema::AtLeastOne<schema::Name>")]
        Vec<String>,
    ),
    /// Every host of the cluster that has not failed, needs no attention and is not in maintenance mode.
    Every(AllWord),
    /// Every host of a zone that has not failed, needs no attention and is not in maintenance mode.
    Zone(ZoneSelection),
}

/// The word `all`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AllWord {
    /// Everything.
    All,
}

/// A zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct ZoneSelection {
    /// Number of the zone.
    pub zone: u16,
}

/// Terms of a rollout. Absent members have their default, or keep their value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct TermsEntry {
    /// Maximum number of hosts at once; 0 for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_once: Option<u16>,
    /// Maximum percentage of the machines of any tenant at once, but at least one machine; 100 for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub tenant_share: Option<u8>,
    /// True if the machines of a tenant that are in work at once must be in one fault domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_fault_domain: Option<bool>,
    /// Times at which groups may start: a list of windows, or `"any"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<WindowSelection>,
    /// Pause between two groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_between: Option<Span>,
    /// Groups after which the rollout waits for `resume`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<ConfirmWord>,
    /// Health check between groups: of hosts by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthWord>,
    /// Number of failed impacts after which the rollout pauses itself: 1 by default, 0 for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_after: Option<u16>,
}

/// The times at which groups of a rollout may start: a list of windows, or `"any"`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum WindowSelection {
    /// Only in these windows.
    Windows(#[schemars(length(min = 1, max = 16))] Vec<WindowEntry>),
    /// At any time.
    Any(AnyWord),
}

/// The word `any`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AnyWord {
    /// Without a limit.
    Any,
}

/// Groups after which a rollout waits for a confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ConfirmWord {
    /// None.
    Never,
    /// The first group.
    First,
    /// Every group.
    Each,
}

/// Health check between the groups of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HealthWord {
    /// Waits for unhealthy hosts.
    Awaited,
    /// Waits for unhealthy hosts, and for machines of the last group that have not polled since their impact ended.
    Machines,
    /// Ignores the health of hosts.
    Ignored,
}

/// The reason why terms are invalid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(deny_unknown_fields)]
pub enum TermsError {
    /// The share of a tenant is zero or exceeds 100 %.
    #[error("tenant share must be 1 to 100 %, not {0} %")]
    Share(u8),
    /// The time zone of a window is unknown.
    #[error(transparent)]
    Zone(#[from] TimeZoneError),
}

objects! { RolloutEntry TermsEntry ZoneSelection }

/// Resolves the names of hosts.
pub(crate) fn find_hosts(cluster: &Cluster, names: &[String]) -> Result<Vec<HostId>, LookupError> {
    names.iter().map(|name| find_host(cluster, name)).collect()
}

impl HostSelection {
    /// The selected hosts, in the order of their names in the list, or in which they were added.
    ///
    /// # Errors
    /// Fails if a host is not found.
    pub fn resolve(&self, cluster: &Cluster) -> Result<Vec<HostId>, LookupError> {
        let zone = match self {
            Self::Names(names) => return find_hosts(cluster, names),
            Self::Every(AllWord::All) => None,
            Self::Zone(ZoneSelection { zone }) => Some(Zone(*zone)),
        };
        let meant = cluster.hosts().filter(|(_, host)| zone.is_none() || host.zone == zone);
        let is_usable = |host: &Host| {
            let is_free = host.attention == HostAttention::Unneeded && host.mode.is_none();
            host.health != Health::Failed && is_free
        };
        Ok(meant.filter(|(_, host)| is_usable(host)).map(|(id, _)| id).collect())
    }
}

impl WindowSelection {
    /// The windows; none for `"any"`.
    #[must_use]
    pub fn entries(&self) -> &[WindowEntry] {
        match self {
            Self::Windows(windows) => windows,
            Self::Any(AnyWord::Any) => &[],
        }
    }

    /// The windows with the offsets of their time zones.
    ///
    /// # Errors
    /// Fails if a time zone is unknown.
    pub fn resolve(&self) -> Result<Vec<Window>, TimeZoneError> {
        self.entries().iter().map(WindowEntry::resolve).collect()
    }
}

/// Not derived: an untagged enum would hide the error in a window.
impl<'de> Deserialize<'de> for WindowSelection {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WindowsVisitor;

        impl<'de> Visitor<'de> for WindowsVisitor {
            type Value = WindowSelection;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a list of windows, or \"any\"")
            }

            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<WindowSelection, E> {
                AnyWord::deserialize(word.into_deserializer()).map(WindowSelection::Any)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, windows: A) -> Result<WindowSelection, A::Error> {
                list::at_least_one(SeqAccessDeserializer::new(windows)).map(WindowSelection::Windows)
            }
        }

        deserializer.deserialize_any(WindowsVisitor)
    }
}

impl FromIterator<WindowEntry> for WindowSelection {
    fn from_iter<I: IntoIterator<Item = WindowEntry>>(windows: I) -> Self {
        let windows: Vec<_> = windows.into_iter().collect();
        if windows.is_empty() { Self::Any(AnyWord::Any) } else { Self::Windows(windows) }
    }
}

impl TermsEntry {
    /// Applies the changes to terms.
    ///
    /// # Errors
    /// Fails if a number is out of range.
    pub fn apply(&self, old: &RolloutTerms) -> Result<RolloutTerms, TermsError> {
        let mut terms = old.clone();
        if let Some(max) = self.at_once {
            terms.hosts_at_once = NonZeroU16::new(max);
        }
        if let Some(share) = self.tenant_share {
            let percent = Percent::new(share).ok_or(TermsError::Share(share))?;
            terms.tenant_share = Some(percent).filter(|_| share < 100);
        }
        if let Some(one) = self.one_fault_domain {
            terms.fault_domains = if one { FaultDomains::OneAtATime } else { FaultDomains::Any };
        }
        if let Some(windows) = &self.windows {
            terms.windows = windows.resolve()?;
        }
        if let Some(Span(span)) = self.pause_between {
            terms.pause_between = span;
        }
        if let Some(word) = self.confirm {
            terms.confirm = match word {
                ConfirmWord::Never => Confirm::Never,
                ConfirmWord::First => Confirm::First,
                ConfirmWord::Each => Confirm::Each,
            };
        }
        if let Some(word) = self.health {
            terms.health = match word {
                HealthWord::Awaited => HealthGate::Awaited,
                HealthWord::Machines => HealthGate::Machines,
                HealthWord::Ignored => HealthGate::Ignored,
            };
        }
        if let Some(max) = self.stop_after {
            terms.stop_after = NonZeroU16::new(max);
        }
        Ok(terms)
    }
}

impl From<&RolloutTerms> for TermsEntry {
    fn from(terms: &RolloutTerms) -> Self {
        Self {
            at_once: Some(terms.hosts_at_once.map_or(0, NonZeroU16::get)),
            tenant_share: Some(terms.tenant_share.map_or(100, Percent::percent)),
            one_fault_domain: Some(terms.fault_domains == FaultDomains::OneAtATime),
            windows: Some(terms.windows.iter().map(WindowEntry::from).collect()),
            pause_between: Some(Span(terms.pause_between)),
            confirm: Some(match terms.confirm {
                Confirm::Never => ConfirmWord::Never,
                Confirm::First => ConfirmWord::First,
                Confirm::Each => ConfirmWord::Each,
            }),
            health: Some(match terms.health {
                HealthGate::Awaited => HealthWord::Awaited,
                HealthGate::Machines => HealthWord::Machines,
                HealthGate::Ignored => HealthWord::Ignored,
            }),
            stop_after: Some(terms.stop_after.map_or(0, NonZeroU16::get)),
        }
    }
}

impl From<WorkWord> for HostWork {
    fn from(word: WorkWord) -> Self {
        match word {
            WorkWord::Update => Self::Update,
            WorkWord::Network => Self::NetworkUpdate,
            WorkWord::Migrate => Self::Migration,
            WorkWord::Reboot => Self::Restart,
        }
    }
}

#[cfg(test)]
mod tests;
