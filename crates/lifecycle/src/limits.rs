//! Limits of everything in the state.
//!
//! Every list in the state is bounded. A command that would exceed a limit is refused; nothing is dropped silently,
//! except the ids of ended events that an approval may still name.

use std::time::Duration;

pub use forewarn_types::limits::{EVENTS_PER_TENANT_MAX, IDS_PER_APPROVAL_MAX, NAME_BYTES_MAX};

/// Hosts in one cluster.
pub const HOSTS_MAX: usize = 100_000;

/// Tenants in one cluster.
pub const TENANTS_MAX: usize = 1_000_000;

/// Machines of one tenant; the placement groups of a uniform scale set are smaller.
pub const MACHINES_PER_TENANT_MAX: usize = 1_000;

/// Machines of one placement group of a uniform scale set.
pub const MACHINES_PER_PLACEMENT_GROUP_MAX: usize = 100;

/// Placement groups of one scale set.
pub const PLACEMENT_GROUPS_PER_SCALE_SET_MAX: usize = 10;

/// The number in the name of an instance: a scale set may have had that many in its life.
pub const INSTANCE_NUMBER_MAX: usize = 100_000_000;

/// Machines placed on one host, those still on their way to it included.
pub const MACHINES_PER_HOST_MAX: usize = 500;

/// Update domains are numbered from 0; this many exist.
pub const UPDATE_DOMAINS_MAX: u16 = 1_000;

/// Fault domains are numbered from 0; this many exist.
pub const FAULT_DOMAINS_MAX: u16 = 1_000;

/// Names in `Resources` of one event. A host never carries more, so a single host always fits.
pub const RESOURCES_PER_EVENT_MAX: usize = MACHINES_PER_HOST_MAX;

/// Machines that a group of a rollout touches. A host never carries more, so a single host always fits; and a group
/// waits for the slowest of its tenants.
pub const MACHINES_PER_GROUP_MAX: usize = 2 * MACHINES_PER_HOST_MAX;

/// Hosts of a rollout that are looked at to form its next group: those that have waited longest.
pub const HOSTS_TRIED_PER_GROUP_MAX: usize = 1_000;

/// Hosts in one rollout: as many as a cluster has.
pub const HOSTS_PER_ROLLOUT_MAX: usize = HOSTS_MAX;

/// Simultaneous rollouts in one cluster.
pub const ROLLOUTS_MAX: usize = 64;

/// Ids of ended events that a tenant may still approve, without effect.
pub const ENDED_KEPT_MAX: usize = 4 * EVENTS_PER_TENANT_MAX;

/// Time for which the id of an ended event is still accepted in an approval.
pub const ENDED_KEPT_FOR: Duration = Duration::from_hours(1);

/// Time without requests after which Scheduled Events are disabled for a tenant.
pub const SILENCE_MAX: Duration = Duration::from_hours(24);

/// The latest expected failure of a degraded host that an operator may give, and the default: 7 days.
pub const FAILURE_EXPECTED_IN_MAX: Duration = Duration::from_hours(7 * 24);

/// Hosts of a rollout among which hosts with open windows of tenants are searched.
pub const HOSTS_SEARCHED_PER_GROUP_MAX: usize = 10_000;

/// Windows of one rollout.
pub const WINDOWS_PER_ROLLOUT_MAX: usize = 16;

/// Windows of one tenant.
pub const WINDOWS_PER_TENANT_MAX: usize = WINDOWS_PER_ROLLOUT_MAX;

/// Bytes of the name of a time zone.
pub const ZONE_NAME_BYTES_MAX: usize = 64;

/// Changes of the offset of a time zone that a window carries: two a year for 20 years, and some more.
pub const OFFSET_CHANGES_MAX: usize = 64;

/// The longest pause between two groups of a rollout: 7 days.
pub const PAUSE_BETWEEN_MAX: Duration = Duration::from_hours(7 * 24);

/// Ended rollouts that are still remembered.
pub const ENDED_ROLLOUTS_MAX: usize = 32;

/// Hosts of all ended rollouts that are still remembered. The last rollout is remembered with all of its hosts.
pub const ENDED_ROLLOUT_HOSTS_MAX: usize = 320_000;
