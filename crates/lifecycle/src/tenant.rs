//! A tenant: the machines that share one document.

use forewarn_types::{
    Event, EventId, EventKind, MachineId, MaintenanceId, Name, Phase, ScaleSetId, Steady, UpdateDomain,
};
use serde::{Deserialize, Serialize};

use crate::fleet::ResourceKind;
use crate::limits::{ENDED_KEPT_FOR, ENDED_KEPT_MAX, SILENCE_MAX};
use crate::policy::{EnrolmentRule, Policy};

/// The machines that share one document, and the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant {
    /// Unique among the tenants of the cluster.
    pub name: Name,
    /// Standalone machine, cloud service, availability set or placement group.
    pub shape: Shape,
    /// Events that need no approval.
    pub policy: Policy,
    /// Enabled while its machines send requests, or by a setting.
    pub enrolment: Enrolment,
    /// Grows by one for each event that appears, starts or goes.
    pub incarnation: u64,
    pub(crate) machines: Vec<MachineId>,
    /// Boxed, because most tenants have no activity most of the time.
    pub(crate) activity: Option<Box<Activity>>,
}

/// The kind of a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shape {
    /// One virtual machine.
    StandaloneMachine,
    /// A cloud service with its role instances.
    CloudService,
    /// An availability set.
    AvailabilitySet,
    /// A placement group of a scale set.
    PlacementGroup(ScaleSetId),
}

/// The state of Scheduled Events for a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Enrolment {
    /// No machine requests events: operations run at once.
    Disabled,
    /// A machine requests events.
    Enabled {
        /// Time at which it is disabled, unless a request arrives before.
        silent_at: Steady,
    },
    /// A setting enrols every tenant, with or without requests.
    BySetting,
}

/// Platform work on machines of a tenant, announced or in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) maintenance: MaintenanceId,
    pub(crate) update_domain: UpdateDomain,
    pub(crate) kind: WorkKind,
    pub(crate) progress: Progress,
}

/// The kind of platform work, which decides about announcements and starts of other work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkKind {
    /// A rollout over hosts: planned, one update domain at a time.
    HostWork,
    /// A machine leaves a degraded host: planned, but announced days ahead, so it does not keep a rollout waiting.
    Degraded,
    /// A host has failed: unplanned.
    Failure,
    /// Machines return to a host that has left maintenance mode: planned, and no reason for a rollout to wait.
    Return,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Waiting,
    Running,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Activity {
    pub(crate) events: Vec<Event>,
    pub(crate) ended: Vec<(Steady, EventId)>,
    pub(crate) works: Vec<Work>,
}

impl Shape {
    /// The resource type of the machines of such a tenant.
    #[must_use]
    pub fn resource_kind(self) -> ResourceKind {
        match self {
            Self::StandaloneMachine | Self::AvailabilitySet => ResourceKind::VirtualMachine,
            Self::CloudService => ResourceKind::RoleInstance,
            Self::PlacementGroup(set) => ResourceKind::ScaleSetInstance(set),
        }
    }
}

impl Enrolment {
    /// Enabled by a request at that moment.
    #[must_use]
    pub fn heard(at: Steady) -> Self {
        Self::Enabled { silent_at: at.plus(SILENCE_MAX) }
    }

    /// The enrolment of a new tenant.
    pub(crate) fn initial(rule: EnrolmentRule) -> Self {
        match rule {
            EnrolmentRule::OnFirstPoll => Self::Disabled,
            EnrolmentRule::Always => Self::BySetting,
        }
    }

    /// The enrolment under another rule, from now on. A tenant that the setting has enrolled stays enrolled; its
    /// silence begins now.
    pub(crate) fn under(self, rule: EnrolmentRule, now: Steady) -> Self {
        match (rule, self) {
            (EnrolmentRule::Always, Self::Disabled | Self::Enabled { .. } | Self::BySetting) => {
                Self::BySetting
            }
            (EnrolmentRule::OnFirstPoll, Self::BySetting) => Self::heard(now),
            (EnrolmentRule::OnFirstPoll, Self::Disabled | Self::Enabled { .. }) => self,
        }
    }
}

impl Tenant {
    pub(crate) fn new(name: Name, shape: Shape, policy: Policy) -> Self {
        let machines = Vec::new();
        Self { name, shape, policy, enrolment: Enrolment::Disabled, incarnation: 1, machines, activity: None }
    }

    /// Its machines, in the order in which they were admitted.
    #[must_use]
    pub fn machines(&self) -> &[MachineId] {
        &self.machines
    }

    /// The visible events of its machines, in the order of announcement.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        self.activity.as_ref().map_or(&[], |activity| &activity.events)
    }

    /// The visible event of that id.
    #[must_use]
    pub fn event(&self, id: EventId) -> Option<&Event> {
        self.events().iter().find(|event| event.id() == id)
    }

    /// Enabled while its machines send requests, or by a setting.
    #[must_use]
    pub fn is_enrolled(&self) -> bool {
        match self.enrolment {
            Enrolment::Enabled { .. } | Enrolment::BySetting => true,
            Enrolment::Disabled => false,
        }
    }

    /// Returns true if an event with that id ended so recently that an approval of it is accepted, without effect.
    #[must_use]
    pub fn ended_recently(&self, id: EventId, now: Steady) -> bool {
        let ended = self.activity.as_ref().map_or(&[][..], |activity| &activity.ended);
        ended.iter().any(|&(at, ended)| ended == id && now.since(at) <= ENDED_KEPT_FOR)
    }

    /// Terminate events that wait for an approval: while there are any, approved ones wait too.
    pub(crate) fn unapproved_terminates(&self) -> impl Iterator<Item = &Event> {
        self.events().iter().filter(|event| is_terminate(event) && event.is_unapproved())
    }

    /// Terminate events that are approved and have not started.
    pub(crate) fn approved_terminates(&self) -> impl Iterator<Item = &Event> {
        self.events().iter().filter(|event| is_terminate(event) && event.is_approved())
    }

    pub(crate) fn works(&self) -> &[Work] {
        self.activity.as_ref().map_or(&[], |activity| &activity.works)
    }

    /// Adds an announced event.
    pub(crate) fn announce(&mut self, event: Event) {
        self.incarnation += 1;
        self.active().events.push(event);
    }

    /// Mutable access to an event, for changes of its phase without a start.
    pub(crate) fn event_mut(&mut self, id: EventId) -> Option<&mut Event> {
        self.activity.as_mut()?.events.iter_mut().find(|event| event.id() == id)
    }

    /// Starts an event.
    pub(crate) fn start(&mut self, id: EventId, started: Phase) {
        if let Some(event) = self.event_mut(id) {
            event.phase = started;
            self.incarnation += 1;
        }
    }

    /// Removes an event; its id is accepted for a while longer.
    pub(crate) fn end(&mut self, id: EventId, now: Steady) {
        let activity = self.active();
        activity.events.retain(|event| event.id() != id);
        activity.ended.retain(|&(at, _)| now.since(at) <= ENDED_KEPT_FOR);
        if activity.ended.len() == ENDED_KEPT_MAX {
            activity.ended.remove(0);
        }
        activity.ended.push((now, id));
        self.incarnation += 1;
        self.give_memory_back();
    }

    pub(crate) fn add_work(&mut self, work: Work) {
        self.active().works.push(work);
    }

    pub(crate) fn work_runs(&mut self, maintenance: MaintenanceId) {
        let works = self.activity.iter_mut().flat_map(|activity| &mut activity.works);
        works
            .filter(|work| work.maintenance == maintenance)
            .for_each(|work| work.progress = Progress::Running);
    }

    pub(crate) fn remove_work(&mut self, maintenance: MaintenanceId) {
        if let Some(activity) = &mut self.activity {
            activity.works.retain(|work| work.maintenance != maintenance);
        }
        self.give_memory_back();
    }

    /// Frees memory once only the ids of ended events are left.
    fn give_memory_back(&mut self) {
        let Some(activity) = &mut self.activity else { return };
        if activity.events.is_empty() && activity.works.is_empty() {
            activity.events.shrink_to_fit();
            activity.works.shrink_to_fit();
            activity.ended.shrink_to_fit();
            if activity.ended.is_empty() {
                self.activity = None;
            }
        }
    }

    /// The tenant with these visible and ended events.
    pub(crate) fn with_events(mut self, events: Vec<Event>, ended: Vec<(Steady, EventId)>) -> Self {
        if !events.is_empty() || !ended.is_empty() {
            self.activity = Some(Box::new(Activity { events, ended, works: Vec::new() }));
        }
        self
    }

    fn active(&mut self) -> &mut Activity {
        self.activity.get_or_insert_default()
    }
}

fn is_terminate(event: &Event) -> bool {
    event.announcement.kind == EventKind::Terminate
}
