//! Results of commands.

use forewarn_lifecycle::{Change, Cluster, MaintenanceId, Now, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::command::lookup::full_name;
use crate::view::fleet::{EventView, event_view};
use crate::view::start::{SeesTenant, StartView, Starts};
use forewarn_types::Moment;

/// Result of a command, once it is durable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// Time of the decision.
    pub now: Moment,
    /// Number of changes; 0 if the state was already as requested.
    pub changes: usize,
    /// Events that it made.
    pub events: Vec<EventView>,
    /// Tenants that get no notice because they are not enrolled. `starts` has the start of the work.
    // Receipts that an earlier version stored have the alias.
    #[serde(alias = "untold")]
    pub unnotified: Vec<String>,
    /// Numbers of the work that it made.
    pub work: Vec<u64>,
    /// The start of each piece of work that it planned, approved or started, as far as the caller may see its tenants.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub starts: Vec<StartView>,
    /// Numbers of the rollouts that it made.
    pub rollouts: Vec<u64>,
    /// Machines that left a host because of its maintenance mode and do not return to it, as `tenant/name`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub staying: Vec<String>,
    /// Number of its audit entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<u64>,
}

impl Outcome {
    /// The start of a piece of work, if the request has decided it.
    #[must_use]
    pub fn start_of(&self, work: u64) -> Option<&StartView> {
        self.starts.iter().find(|start| start.work == work)
    }

    /// Updates the times of starts: `moved` returns the new time of some work.
    pub fn move_starts(&mut self, moved: impl Fn(MaintenanceId) -> Option<Timestamp>) {
        for start in &mut self.starts {
            if let (Some(time), Some(to)) = (start.not_before.as_mut(), moved(MaintenanceId(start.work))) {
                *time = Moment(to);
            }
        }
    }

    /// Updates the times of events: `moved` returns the new time of an event, by its id.
    pub fn move_events(&mut self, moved: impl Fn(&str) -> Option<Timestamp>) {
        for event in &mut self.events {
            if let (Some(time), Some(to)) = (event.not_before.as_mut(), moved(&event.id)) {
                *time = Moment(to);
            }
        }
    }
}

/// The outcome of changes that have been applied, for a caller who sees some tenants.
#[must_use]
pub fn outcome<'a>(
    cluster: &Cluster,
    now: Now,
    changes: impl IntoIterator<Item = &'a Change>,
    sees: SeesTenant<'_>,
) -> Outcome {
    let mut starts = Starts::default();
    let (mut events, mut unnotified, mut work) = (Vec::new(), Vec::new(), Vec::new());
    let (mut rollouts, mut staying, mut count) = (Vec::new(), Vec::new(), 0);
    for change in changes {
        count += 1;
        starts.add(cluster, change);
        if let Change::RolloutPlanned { rollout, .. } = change {
            rollouts.push(rollout.0);
        }
        if let Change::ModeExited { staying: machines, .. } = change {
            staying.extend(machines.iter().map(|machine| full_name(cluster, *machine)));
        }
        let Change::Planned(plan) = change else { continue };
        work.push(plan.id.0);
        for part in plan.parts.iter().filter(|part| sees(part.tenant)) {
            let event = part.announcement.as_ref().and_then(|announcement| cluster.event(announcement.id));
            if let Some((tenant, event)) = event {
                events.push(event_view(cluster, tenant, event, sees));
            } else if plan.cause.makes_events() && part.announcement.is_none() {
                unnotified.extend(cluster.tenant(part.tenant).map(|tenant| tenant.name.to_string()));
            }
        }
    }
    unnotified.dedup();
    Outcome {
        now: Moment(now.wall),
        changes: count,
        events,
        unnotified,
        work,
        starts: starts.views(cluster, sees),
        rollouts,
        staying,
        entry: None,
    }
}
