//! Applying records: the only code that changes a [`ClusterState`], and with it a [`ControlState`].

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use forewarn_lifecycle::{
    Change, Cluster, Effect as RulesEffect, HostAttention, HostId, MachineId, MaintenanceId, Name, Now,
    Report, Shape, Target, TenantId,
};

use super::cluster::ClosedBy;
use super::reminders::HostReminders;
use super::{ClusterState, ControlState};
use crate::command::MachineDetails;
use crate::command::lookup::full_name;
use crate::effect::{Effect, FinishedWork, PlannedWork};
use crate::receipts::ReceiptRoom;
use crate::record::{ClusterEntry, Entry, Record};
use crate::resource_id::GroupId;
use crate::resources::{Link, ResourceChange};
use crate::shared::{self, Progress, WebhookChange};
use crate::stream::ClusterId;
use crate::view::{Ending, FAILURES_MAX, FailureView};

impl ControlState {
    /// Applies a record. It cannot fail: a record about something that was removed changes nothing.
    ///
    /// Replay ignores the effects; [`Cluster::unfinished`] lists actions that are still owed.
    pub fn apply(&mut self, record: &Record) -> Vec<Effect> {
        match &record.entry {
            Entry::Shared(change) => self.apply_shared(record.now, change),
            Entry::Cluster(id, entry) => match self.clusters.get_mut(id) {
                Some(cluster) => Arc::make_mut(cluster).apply(*id, record.now, entry),
                None => Vec::new(),
            },
        }
    }

    /// Clusters appear and disappear with their names.
    fn apply_shared(&mut self, now: Now, change: &shared::Change) -> Vec<Effect> {
        use shared::Change as Step;
        let effects = Arc::make_mut(&mut self.shared).apply(now, change);
        match change {
            Step::ClusterCreated { cluster, .. } => {
                let initial = self.shared.initial_cluster(*cluster);
                self.clusters.extend(initial.map(|initial| (*cluster, Arc::new(initial))));
            }
            Step::ClusterRemoved(cluster) => drop(self.clusters.remove(cluster)),
            Step::Webhook(WebhookChange::AddedWithProgress(webhook, progress)) => {
                self.set_progress(webhook.number, *progress);
            }
            Step::Webhook(WebhookChange::Advanced { webhook, progress }) => {
                if self.shared.find_webhook(*webhook).is_some() {
                    self.set_progress(*webhook, *progress);
                }
            }
            Step::Webhook(
                WebhookChange::Added(_)
                | WebhookChange::Removed(_)
                | WebhookChange::Confirmed { .. }
                | WebhookChange::Undelivered { .. }
                | WebhookChange::UndeliveredAdvanced { .. }
                | WebhookChange::Delivered { .. },
            )
            | Step::ClusterRenamed { .. }
            | Step::TokenIssued(_)
            | Step::TokenRevoked(_)
            | Step::ReceiptKept(_)
            | Step::Clock
            | Step::Booted(_)
            | Step::Positioned(_)
            | Step::ClaimsTaken { .. }
            | Step::ClaimsReleased { .. } => {}
        }
        effects
    }

    /// Sets the progress of a webhook in every cluster, as records and rows of older versions do.
    pub(super) fn set_progress(&mut self, webhook: u32, progress: Progress) {
        let clusters = std::mem::take(&mut self.clusters);
        let advanced = |(id, mut cluster): (ClusterId, Arc<ClusterState>)| {
            Arc::make_mut(&mut cluster).webhooks.insert(webhook, progress);
            (id, cluster)
        };
        self.clusters = clusters.into_iter().map(advanced).collect();
    }

    /// The state after records of an older version, in which all clusters had one progress: clusters that were created
    /// after it was recorded have it too. The default cluster always has it.
    #[must_use]
    pub fn with_common_progress(mut self) -> Self {
        let default = self.clusters.get(&ClusterId::DEFAULT);
        let common: Vec<_> = default.into_iter().flat_map(|cluster| cluster.webhooks()).collect();
        common.into_iter().for_each(|(webhook, progress)| self.set_progress(webhook, progress));
        self
    }
}

impl ClusterState {
    /// Applies an entry. It cannot fail: an entry about something that was removed changes nothing. `id` is the number
    /// of this cluster. Replay ignores the effects.
    pub fn apply(&mut self, id: ClusterId, now: Now, entry: &ClusterEntry) -> Vec<Effect> {
        match entry {
            ClusterEntry::Rules(change) => return self.apply_change(now, id, change),
            ClusterEntry::Described { machine, details } => {
                let describe = |state: &mut Self| state.details.insert(*machine, details.clone());
                let former = self.regroup(&[Link::Machine(*machine)], describe);
                self.release_addresses(*machine, &former.unwrap_or_default());
                self.add_addresses(*machine, details);
                return vec![Effect::MachineChanged(id, *machine)];
            }
            ClusterEntry::Site(site) => {
                self.site = site.clone();
                return vec![Effect::ClusterChanged(id), Effect::ClaimsChanged(id)];
            }
            ClusterEntry::Unread(_) | ClusterEntry::Clock => {}
            ClusterEntry::Failed { maintenance, target, reason } => {
                self.failures.insert((*maintenance, *target), reason.clone());
            }
            ClusterEntry::Reminded { maintenance, host } => self.count_reminder(now, *maintenance, *host),
            ClusterEntry::ReceiptKept(new) => self.receipts.keep(ReceiptRoom::CLUSTER, now.steady, new),
            ClusterEntry::Resource(change) => {
                let links = self.links_changed_by(change);
                self.regroup(&links, |state| state.resources.apply(now, change));
                return self.follow_resources(id, change);
            }
            ClusterEntry::Booted(boot) => self.boot = Some(*boot),
            ClusterEntry::Positioned(position) => self.position = Some(*position),
            ClusterEntry::WebhookAdvanced { webhook, progress } => {
                self.webhooks.insert(*webhook, *progress);
            }
            ClusterEntry::WebhookForgotten(webhook) => drop(self.webhooks.remove(webhook)),
            ClusterEntry::Closed { by, once } => {
                self.closed = Some(ClosedBy { by: by.clone(), once: once.clone() });
                return vec![Effect::ClusterClosed(id)];
            }
        }
        Vec::new()
    }

    fn apply_change(&mut self, now: Now, id: ClusterId, change: &Change) -> Vec<Effect> {
        let mut effects = Vec::new();
        for effect in self.rules.evolve(now, change) {
            effects.push(match effect {
                RulesEffect::Publish(tenant) => Effect::Publish(id, tenant),
                RulesEffect::Unpublish(tenant) => Effect::Unpublish(id, tenant),
                RulesEffect::Perform(action) => Effect::Perform(id, action),
            });
        }
        effects.extend(self.follow_work(id, change));
        self.follow_attention(change);
        self.follow_reminders(change);
        if let Change::MachineAdmitted { machine, .. } = change {
            effects.push(Effect::MachineChanged(id, *machine));
        }
        // A machine is removed with its last action, or when it is forgotten.
        if let Some(machine) = ended_machine(change)
            && self.rules.machine(machine).is_none()
        {
            let gone = self.regroup(&[Link::Machine(machine)], |state| state.details.remove(&machine));
            self.release_addresses(machine, &gone.unwrap_or_default());
            effects.push(Effect::MachineGone(id, machine));
        }
        effects
    }

    /// A machine has these addresses.
    pub(super) fn add_addresses(&mut self, machine: MachineId, details: &MachineDetails) {
        let addresses = details.addresses.iter().map(IpAddr::to_canonical);
        self.addresses.extend(addresses.map(|address| (address, machine)));
    }

    /// Releases the addresses of a machine, except those that another machine has taken over.
    fn release_addresses(&mut self, machine: MachineId, former: &MachineDetails) {
        for address in former.addresses.iter().map(IpAddr::to_canonical) {
            if self.addresses.get(&address) == Some(&machine) {
                self.addresses.remove(&address);
            }
        }
    }

    /// A group without resources may be free; the location of a group is that of its resource.
    fn follow_resources(&self, id: ClusterId, change: &ResourceChange) -> Vec<Effect> {
        let group_of = |key: &str| GroupId::containing(key).map(|group| group.key());
        let has_changed = match change {
            ResourceChange::Put(resource) => {
                group_of(&resource.id).is_some_and(|group| group == resource.key())
            }
            ResourceChange::Removed(key) => {
                group_of(key).is_some_and(|group| group == *key || !self.uses_group(&group))
            }
            ResourceChange::Marked { .. } | ResourceChange::Opened(_) | ResourceChange::WorkEnded { .. } => {
                false
            }
        };
        if has_changed { vec![Effect::ClaimsChanged(id)] } else { Vec::new() }
    }

    /// Effects of a change, which the rules have applied, on planned work. Forgets the failures of work that is
    /// finished.
    fn follow_work(&mut self, id: ClusterId, change: &Change) -> Vec<Effect> {
        let mut effects = Vec::new();
        let (work, ending) = if let Change::Planned(plan) = change {
            let tenants = plan.parts.iter().filter_map(|part| owner_name(&self.rules, part.tenant));
            let tenants = tenants.cloned().collect();
            effects.push(Effect::WorkPlanned(PlannedWork { cluster: id, work: plan.id, tenants }));
            if plan.is_announced() {
                effects.push(Effect::Announced(id, plan.id));
            }
            return effects;
        } else if let Change::Withdrawn { maintenance, .. } = change {
            (*maintenance, Ending::Withdrawn)
        } else if let Change::Started { maintenance, .. } = change {
            (*maintenance, Ending::Done)
        } else if let Change::Completed { maintenance, report, .. } = change {
            let ending = match report {
                Report::Done => Ending::Done,
                Report::Failed => Ending::Failed,
            };
            (*maintenance, ending)
        } else if let Change::HostAdvanced { maintenance, .. } = change {
            (*maintenance, Ending::Done)
        } else {
            return effects;
        };
        if ending == Ending::Failed {
            effects.push(Effect::WorkFailed(id, work));
        }
        if self.rules.maintenance(work).is_none() {
            let failures = self.first_failures(work);
            effects.push(Effect::WorkFinished(FinishedWork { cluster: id, work, ending, failures }));
            self.forget_failures(work);
        }
        effects
    }

    /// A message about a host that is ready for work was written.
    fn count_reminder(&mut self, now: Now, work: MaintenanceId, host: HostId) {
        let count = self.reminders(work, host).map_or(0, |known| known.count.saturating_add(1));
        self.reminders.insert((work, host), HostReminders { count, last: now.wall });
    }

    /// Forgets the reminders of a step that has ended, and of work that is finished.
    fn follow_reminders(&mut self, change: &Change) {
        if self.reminders.is_empty() {
            return;
        }
        if let Change::Completed { maintenance, target: Target::Host(host), .. } = change {
            self.reminders.remove(&(*maintenance, *host));
        }
        let is_finished = |(work, _): &&(MaintenanceId, HostId)| self.rules.maintenance(*work).is_none();
        let finished: Vec<_> = self.reminders.keys().filter(is_finished).copied().collect();
        for key in finished {
            self.reminders.remove(&key);
        }
    }

    /// Forgets the reason why a host needed attention.
    fn follow_attention(&mut self, change: &Change) {
        let (Change::HostRemoved(host)
        | Change::AttentionChanged { host, attention: HostAttention::Unneeded }) = change
        else {
            return;
        };
        let host = *host;
        let of_host = self.failures.keys().filter(|(_, target)| *target == Target::Host(host));
        let keys: Vec<_> = of_host.copied().collect();
        keys.into_iter().for_each(|key| drop(self.failures.remove(&key)));
    }

    /// The first failures of some work, of each tenant: it may read its own.
    fn first_failures(&self, work: MaintenanceId) -> Vec<(Name, FailureView)> {
        let rules = &self.rules;
        let mut counts = BTreeMap::new();
        let failure = |(target, reason): (Target, &str)| {
            let machine = target.machine()?;
            let owner = owner_name(rules, rules.machine(machine)?.tenant)?.clone();
            let (machine, reason) = (full_name(rules, machine), reason.to_owned());
            Some((owner, FailureView { machine, reason }))
        };
        let is_within_limit = |(owner, _): &(Name, FailureView)| {
            let count = counts.entry(owner.clone()).or_insert(0);
            *count += 1;
            *count <= FAILURES_MAX
        };
        self.failures_of(work).filter_map(failure).filter(is_within_limit).collect()
    }

    fn forget_failures(&mut self, work: MaintenanceId) {
        // The reason why a host needs attention stays until it is cleared.
        let machines = self.failures_of(work).filter(|(target, _)| target.machine().is_some());
        let targets: Vec<_> = machines.map(|(target, _)| target).collect();
        targets.into_iter().for_each(|target| drop(self.failures.remove(&(work, target))));
    }
}

/// The machine that may have gone with a change.
fn ended_machine(change: &Change) -> Option<MachineId> {
    if let Change::MachineForgotten(machine) = change {
        return Some(*machine);
    }
    if let Change::Completed { target, .. } = change { target.machine() } else { None }
}

/// The name of a tenant for people: for a placement group, the name of its scale set.
fn owner_name(rules: &Cluster, tenant: TenantId) -> Option<&Name> {
    let tenant = rules.tenant(tenant)?;
    match tenant.shape {
        Shape::PlacementGroup(set) => rules.scale_set(set).map(|set| &set.name),
        Shape::StandaloneMachine | Shape::CloudService | Shape::AvailabilitySet => Some(&tenant.name),
    }
}
