//! Results of commands.

use forewarn_lifecycle::{Change, Cluster, Now, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::command::lookup::full_name;
use crate::view::fleet::{EventView, event_view};
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
    /// Tenants that get no notice because they are not enrolled. If no tenant of the work is enrolled, the work
    /// starts at once; otherwise their machines wait with those of the others.
    // Receipts that an earlier version stored have the alias.
    #[serde(alias = "untold")]
    pub unnotified: Vec<String>,
    /// Numbers of the work that it made.
    pub work: Vec<u64>,
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
    /// Updates the times of events: `moved` returns the new time of an event, by its id.
    pub fn move_events(&mut self, moved: impl Fn(&str) -> Option<Timestamp>) {
        for event in &mut self.events {
            if let (Some(time), Some(to)) = (event.not_before.as_mut(), moved(&event.id)) {
                *time = Moment(to);
            }
        }
    }
}

/// The outcome of changes that have been applied.
#[must_use]
pub fn outcome<'a>(cluster: &Cluster, now: Now, changes: impl IntoIterator<Item = &'a Change>) -> Outcome {
    let (mut events, mut unnotified, mut work) = (Vec::new(), Vec::new(), Vec::new());
    let (mut rollouts, mut staying, mut count) = (Vec::new(), Vec::new(), 0);
    for change in changes {
        count += 1;
        if let Change::RolloutPlanned { rollout, .. } = change {
            rollouts.push(rollout.0);
        }
        if let Change::ModeExited { staying: machines, .. } = change {
            staying.extend(machines.iter().map(|machine| full_name(cluster, *machine)));
        }
        let Change::Planned(plan) = change else { continue };
        work.push(plan.id.0);
        for part in &plan.parts {
            let event = part.announcement.as_ref().and_then(|announcement| cluster.event(announcement.id));
            if let Some((tenant, event)) = event {
                events.push(event_view(cluster, tenant, event));
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
        rollouts,
        staying,
        entry: None,
    }
}
