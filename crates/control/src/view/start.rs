//! The start of work, as the rules decided it: it has started, waits, or is held.
//!
//! Everything that people read about a start comes from here: the reply to a command, views of events and explanations.

use std::collections::BTreeMap;

use forewarn_lifecycle::{
    Brake, Change, Cluster, Event, EventKind, Maintenance, MaintenanceId, Plan, Stage, TenantId, Wait,
};
use forewarn_types::Moment;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::view::deletion::remedy;
use crate::view::describe::progress;

/// Pieces of work in one reply; further ones are left out.
const STARTS_MAX: usize = 1_000;

/// Tenants that a reply names; the others are counted.
const NAMED_MAX: usize = 8;

/// The start of some work, as the rules decided it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StartView {
    /// Number of the work.
    pub work: u64,
    /// State of the work after the decision.
    pub state: StartState,
    /// Obstacle or progress, in words.
    pub progress: String,
    /// Notice of the work.
    pub notice: WorkNotice,
    /// The earliest start without approval. Absent if the work has started, or waits for no notice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Moment>,
    /// Tenants that have not approved their event: the first of those that the caller may see.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unapproved: Vec<String>,
    /// Number of other tenants that have not approved their event.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unapproved_others: usize,
    /// True if the work has not started and the brake is on: it does not start before the brake is released.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub brake: bool,
    /// The change that lets the next deletion be announced, in words, if this one is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// State of some work after a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StartState {
    /// It has started; it may have ended already.
    Started,
    /// Nothing delays it: it starts with the next decision.
    Due,
    /// It waits for approvals, or for the end of the notice.
    Waiting,
    /// It could start, but is held.
    Held,
    /// It was withdrawn.
    Withdrawn,
}

/// Notice of some work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WorkNotice {
    /// At least one tenant has an event of it.
    Event,
    /// It makes events, but none of its tenants is enrolled.
    Unenrolled,
    /// It makes no events.
    None,
}

impl WorkNotice {
    fn of(plan: &Plan) -> Self {
        match (plan.is_announced(), plan.cause.makes_events()) {
            (true, _) => Self::Event,
            (false, true) => Self::Unenrolled,
            (false, false) => Self::None,
        }
    }
}

/// Tenants that may be named to the reader: returns true for them.
pub type SeesTenant<'a> = &'a dyn Fn(TenantId) -> bool;

/// Tenants that have not approved their event of some work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unapproved {
    /// The first tenants that may be named.
    pub named: Vec<String>,
    /// Number of the others.
    pub others: usize,
}

impl Unapproved {
    /// The tenants with an event of a maintenance that they have not approved.
    #[must_use]
    pub fn of(cluster: &Cluster, id: MaintenanceId, sees: SeesTenant<'_>) -> Self {
        let mut all = Self::default();
        for tenant in cluster.unapproved_tenants(id) {
            let name = cluster.tenant(tenant).filter(|_| all.named.len() < NAMED_MAX && sees(tenant));
            match name {
                Some(tenant) => all.named.push(tenant.name.to_string()),
                None => all.others += 1,
            }
        }
        all
    }

    /// The tenants in words: `tenant web`, `tenants web, db and 2 more`, `another tenant`. None if there are none.
    #[must_use]
    pub fn words(&self) -> Option<String> {
        let named = self.named.join(", ");
        Some(match (self.named.len(), self.others) {
            (0, 0) => return None,
            (0, 1) => "another tenant".to_owned(),
            (0, others) => format!("{others} other tenants"),
            (1, 0) => format!("tenant {named}"),
            (_, 0) => format!("tenants {named}"),
            (1, others) => format!("tenant {named} and {others} more"),
            (_, others) => format!("tenants {named} and {others} more"),
        })
    }
}

/// The obstacle or the progress of an event, in words. An event that its tenant has approved may wait for the other
/// tenants of the same work.
#[must_use]
pub fn event_progress(cluster: &Cluster, work: &Maintenance, event: &Event, sees: SeesTenant<'_>) -> String {
    if work.wait() != Some(Wait::Notice) || !event.is_approved() {
        return progress(work);
    }
    let is_deletion = event.announcement.kind == EventKind::Terminate;
    let awaited = match Unapproved::of(cluster, work.plan.id, sees).words() {
        Some(tenants) => format!("waits for the approval of {tenants}, or for the end of the notice"),
        None if is_deletion => {
            "waits for the other Terminate events of its tenant, or for the end of the notice".to_owned()
        }
        None => "waits for the end of the notice".to_owned(),
    };
    format!("approved, {awaited}")
}

/// The work that a decision has planned, approved or started.
#[derive(Debug, Default)]
pub(crate) struct Starts<'a> {
    order: Vec<MaintenanceId>,
    known: BTreeMap<MaintenanceId, Decided<'a>>,
}

/// The changes of a decision to one piece of work.
#[derive(Debug, Default)]
struct Decided<'a> {
    plan: Option<&'a Plan>,
    has_started: bool,
}

impl<'a> Starts<'a> {
    /// Takes note of a change. `cluster` is the state after the decision.
    pub(crate) fn add(&mut self, cluster: &Cluster, change: &'a Change) {
        if let Change::Planned(plan) = change {
            self.of(plan.id).plan = Some(plan);
        } else if let Change::Started { maintenance, .. } = change {
            self.of(*maintenance).has_started = true;
        } else if let Change::Approved { event, .. } = change
            // Work that has ended since then has the change of its start.
            && let Some((_, event)) = cluster.event(*event)
        {
            self.of(event.maintenance);
        }
    }

    fn of(&mut self, id: MaintenanceId) -> &mut Decided<'a> {
        if !self.known.contains_key(&id) {
            self.order.push(id);
        }
        self.known.entry(id).or_default()
    }

    /// The start of each piece of work, after the decision. Work of which the reader may see no tenant is left out.
    pub(crate) fn views(&self, cluster: &Cluster, sees: SeesTenant<'_>) -> Vec<StartView> {
        let views = self.order.iter().filter_map(|id| {
            let decided = self.known.get(id)?;
            let plan = cluster.maintenance(*id).map(|work| &work.plan).or(decided.plan);
            let is_seen = plan
                .is_none_or(|plan| plan.parts.is_empty() || plan.parts.iter().any(|part| sees(part.tenant)));
            is_seen.then(|| decided.view(cluster, *id, sees))
        });
        views.take(STARTS_MAX).collect()
    }
}

impl Decided<'_> {
    fn view(&self, cluster: &Cluster, id: MaintenanceId, sees: SeesTenant<'_>) -> StartView {
        let Some(work) = cluster.maintenance(id) else { return self.ended(id) };
        let (state, not_before) = match &work.stage {
            Stage::Running { .. } => (StartState::Started, None),
            Stage::Waiting(Wait::Notice | Wait::Wall) => {
                (StartState::Waiting, Some(Moment(work.plan.not_before)))
            }
            Stage::Waiting(Wait::Nothing | Wait::Offered { .. }) => (StartState::Due, None),
            Stage::Waiting(Wait::Held(_)) => (StartState::Held, None),
        };
        let Unapproved { named, others } = match state {
            StartState::Waiting | StartState::Held => Unapproved::of(cluster, id, sees),
            StartState::Started | StartState::Due | StartState::Withdrawn => Unapproved::default(),
        };
        StartView {
            work: id.0,
            state,
            progress: progress(work),
            notice: WorkNotice::of(&work.plan),
            not_before,
            unapproved: named,
            unapproved_others: others,
            brake: cluster.brake() == Brake::On && !matches!(work.stage, Stage::Running { .. }),
            remedy: remedy(cluster, &work.plan),
        }
    }

    /// Work that the decision has also ended.
    fn ended(&self, id: MaintenanceId) -> StartView {
        let (state, progress) = if self.has_started {
            (StartState::Started, "completed")
        } else {
            (StartState::Withdrawn, "withdrawn")
        };
        StartView {
            work: id.0,
            state,
            progress: progress.to_owned(),
            notice: self.plan.map_or(WorkNotice::Event, WorkNotice::of),
            not_before: None,
            unapproved: Vec::new(),
            unapproved_others: 0,
            brake: false,
            remedy: None,
        }
    }
}
