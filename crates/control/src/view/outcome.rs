//! What came of a command.

use forewarn_lifecycle::{Change, Cluster, Now, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::view::fleet::{EventView, event_view};
use forewarn_types::Moment;

/// What came of a command, once it is durable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// When.
    pub now: Moment,
    /// How much it changed; nothing means that it was so already.
    pub changes: usize,
    /// The events that it made.
    pub events: Vec<EventView>,
    /// The tenants that are not told, because they are not enrolled. Where nobody is told, it happens at once; where others
    /// are, their machines wait along.
    pub untold: Vec<String>,
    /// The numbers of the work that it made.
    pub work: Vec<u64>,
    /// The numbers of the rollouts that it made.
    pub rollouts: Vec<u64>,
    /// The number of its entry in the trail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<u64>,
}

impl Outcome {
    /// Has events show other times: `moved` gives the time of an event that has moved, by its id.
    pub fn move_events(&mut self, moved: impl Fn(&str) -> Option<Timestamp>) {
        for event in &mut self.events {
            if let (Some(time), Some(to)) = (event.not_before.as_mut(), moved(&event.id)) {
                *time = Moment(to);
            }
        }
    }
}

/// What these changes come to. They have been applied.
#[must_use]
pub fn outcome(cluster: &Cluster, now: Now, changes: &[Change]) -> Outcome {
    let (mut events, mut untold, mut work) = (Vec::new(), Vec::new(), Vec::new());
    let mut rollouts = Vec::new();
    for change in changes {
        if let Change::RolloutPlanned { rollout, .. } = change {
            rollouts.push(rollout.0);
        }
        let Change::Planned(plan) = change else { continue };
        work.push(plan.id.0);
        for part in &plan.parts {
            let told = part.announcement.as_ref().and_then(|told| cluster.event(told.id));
            if let Some((tenant, event)) = told {
                events.push(event_view(cluster, tenant, event));
            } else if plan.cause.makes_events() && part.announcement.is_none() {
                untold.extend(cluster.tenant(part.tenant).map(|tenant| tenant.name.to_string()));
            }
        }
    }
    untold.dedup();
    Outcome { now: Moment(now.wall), changes: changes.len(), events, untold, work, rollouts, entry: None }
}
