//! Observes every step and records broken promises. It uses commands, clocks and documents, and its own records: its
//! conclusions do not depend on the code under test.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use forewarn_lifecycle::*;

use crate::capacity::CapacityRecords;
use crate::fences::FenceRecords;
use crate::promise::Promise;
use crate::returns::ReturnRecords;
use crate::rollouts::RolloutRecords;
use crate::steps::StepRecords;
use crate::tenant_windows::TenantWindowRecords;
use crate::upgrades::Upgrades;

#[derive(Default)]
pub struct Observer {
    pub broken: Vec<(Promise, String)>,
    events: BTreeMap<EventId, Known>,
    gone: BTreeSet<EventId>,
    forced: BTreeSet<MaintenanceId>,
    incarnations: BTreeMap<TenantId, (u64, VisibleEvents)>,
    books: RolloutRecords,
    returns: ReturnRecords,
    steps: StepRecords,
    tenant_windows: TenantWindowRecords,
    capacity: CapacityRecords,
    fences: FenceRecords,
    upgrades: Upgrades,
    /// Number of observations of each kind, so that a test can check that it has tested something.
    pub seen: BTreeMap<&'static str, usize>,
}

/// The record of an event since it appeared.
struct Known {
    tenant: TenantId,
    announced: Now,
    not_before: Timestamp,
    approved: bool,
}

type VisibleEvents = BTreeMap<EventId, bool>;

/// The documents of the tenants that a change may affect, before the change.
pub struct Before {
    documents: BTreeMap<TenantId, (u64, VisibleEvents)>,
}

impl Observer {
    fn note(&mut self, promise: Promise, what: impl Into<String>) {
        self.broken.push((promise, what.into()));
    }

    fn count(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    /// A command was decided; nothing has been applied.
    pub fn asked(
        &mut self,
        cluster: &Cluster,
        now: Now,
        command: &Command,
        decided: &Result<Vec<Change>, Refusal>,
    ) {
        self.capacity.asked(command);
        if let Command::ForceStart(id) = command
            && decided.is_ok()
        {
            self.forced.insert(*id);
        }
        if let Ok(changes) = decided {
            self.fences.accepted(command);
            if let Command::Polled(machine) = command {
                let seen = self.returns.polled(*machine);
                if !seen.is_empty() {
                    self.count(seen);
                }
            }
            let (broken, seen) = self.upgrades.decided(cluster, now, command, changes);
            self.broken.extend(broken);
            seen.into_iter().for_each(|what| self.count(what));
            self.check_no_action_is_requested(cluster, command, changes);
        }
        let Command::Approve { tenant, events, .. } = command else { return };
        let visible = |id: &EventId| self.events.get(id).is_some_and(|known| known.tenant == *tenant);
        let foreign = events.iter().any(|id| !visible(id));
        match decided {
            Ok(_) if foreign => self.note(Promise::Isolation, format!("{events:?} accepted from {tenant}")),
            Ok(_) => {
                self.count("approval");
                for id in events {
                    self.events.get_mut(id).expect("checked").approved = true;
                }
            }
            Err(refusal) => {
                if foreign && *refusal != Refusal::UnknownEvent {
                    self.note(
                        Promise::Isolation,
                        format!("a foreign id and an unknown id are distinguishable: {refusal:?}"),
                    );
                }
                let recent = |id: &EventId| {
                    let tenant = cluster.tenant(*tenant);
                    tenant.is_some_and(|t| t.event(*id).is_some() || t.ended_recently(*id, now.steady))
                };
                if events.iter().all(recent) {
                    self.note(Promise::Approval, format!("refused although all ids are valid: {refusal:?}"));
                }
            }
        }
    }

    /// A machine that is forgotten, or moved by other means, gets no event and no impact, and keeps its zone.
    fn check_no_action_is_requested(&mut self, cluster: &Cluster, command: &Command, changes: &[Change]) {
        if !matches!(command, Command::Forget(_) | Command::Move { .. }) {
            return;
        }
        for change in changes {
            match change {
                Change::MachineForgotten(_) => self.count("forgotten"),
                Change::MachineMoved { machine, to } => {
                    let zone = |host: HostId| cluster.host(host).map(|host| host.zone);
                    let from = cluster.machine(*machine).map(|machine| machine.host);
                    if from.map(zone) != Some(zone(*to)) {
                        self.note(Promise::Untouched, format!("{machine} leaves its zone"));
                    }
                    self.count("moved");
                }
                Change::Withdrawn { .. } => self.count("withdrawn by a forgotten or moved machine"),
                other => self.note(Promise::Untouched, format!("{command:?} makes {other:?}")),
            }
        }
    }

    /// The visible state before a change.
    pub fn look(&self, cluster: &Cluster, change: &Change) -> Before {
        let visible = matches!(
            change,
            Change::Planned(_)
                | Change::Started { .. }
                | Change::Withdrawn { .. }
                | Change::Completed { .. }
                | Change::HostAdvanced { .. }
                | Change::MachineForgotten(_)
                | Change::MachineMoved { .. }
                | Change::Approved { .. }
                | Change::Enrolled(_)
                | Change::Disabled(_)
        );
        let tenants = cluster.tenants().filter(|_| visible);
        let documents = tenants.map(|(id, tenant)| (id, shown(tenant))).collect();
        Before { documents }
    }

    /// A change was applied.
    pub fn changed(
        &mut self,
        before: &Before,
        cluster: &Cluster,
        now: Now,
        change: &Change,
        effects: &[Effect],
    ) {
        for (id, tenant) in cluster.tenants() {
            let Some(was) = before.documents.get(&id) else { continue };
            if self.compare(id, was, cluster, now, change) > 0 && !effects.contains(&Effect::Publish(id)) {
                self.note(Promise::Incarnation, format!("{} changed and was not published", tenant.name));
            }
        }
        for (id, (_, was)) in &before.documents {
            if cluster.tenant(*id).is_none() {
                self.gone.extend(was.keys());
            }
        }
        if let Change::Started { maintenance, .. } = change {
            self.check_domains_at_start(cluster, *maintenance);
        }
        self.check_hosts(cluster, change);
        let is_quiet = matches!(change, Change::MachineForgotten(_) | Change::MachineMoved { .. });
        if is_quiet && effects.iter().any(|effect| matches!(effect, Effect::Perform(_))) {
            self.note(Promise::Untouched, format!("{change:?} orders something"));
        }
        let forced =
            matches!(change, Change::Started { maintenance, .. } if self.forced.contains(maintenance));
        let (broken, seen) = self.books.changed(cluster, now, change, forced);
        self.broken.extend(broken);
        let (broken, awaited) = self.returns.changed(cluster, change);
        self.broken.extend(broken);
        let (broken, fence) = self.fences.changed(cluster, change, effects);
        self.broken.extend(broken);
        if !fence.is_empty() {
            self.count(fence);
        }
        let (broken, step) = self.steps.changed(cluster, change, effects);
        self.broken.extend(broken);
        let (broken, window) = self.tenant_windows.changed(cluster, now, change, forced);
        self.broken.extend(broken);
        let (broken, room) = self.capacity.changed(cluster, change);
        self.broken.extend(broken);
        let (broken, mode) = super::modes::changed(cluster, change, effects);
        self.broken.extend(broken);
        for seen in [seen, awaited, step, window, room, mode].into_iter().filter(|seen| !seen.is_empty()) {
            self.count(seen);
        }
    }

    /// Compares the documents of a tenant before and after, and returns the number of steps between.
    fn compare(
        &mut self,
        id: TenantId,
        (incarnation, was): &(u64, VisibleEvents),
        cluster: &Cluster,
        now: Now,
        change: &Change,
    ) -> u64 {
        let tenant = cluster.tenant(id).expect("it shows something");
        let (new_incarnation, is) = shown(tenant);
        let appeared: Vec<_> = is.keys().filter(|event| !was.contains_key(event)).copied().collect();
        let gone: Vec<_> = was.keys().filter(|event| !is.contains_key(event)).copied().collect();
        let started = |event: &&EventId| was.get(event) != Some(&true) && is[*event];
        let started: Vec<_> = is.keys().filter(started).copied().collect();
        // An event whose machines are all off when it starts has nothing to do: it starts and goes in one change.
        let is_start = matches!(change, Change::Started { .. });
        let passed = gone.iter().filter(|event| is_start && !was[*event]).count();
        let steps = (appeared.len() + gone.len() + started.len() + passed) as u64;
        if new_incarnation != incarnation + steps {
            self.note(Promise::Incarnation, format!("{incarnation} to {new_incarnation} for {steps} steps"));
        }
        for event in appeared {
            self.appeared(id, tenant, event, now, cluster);
        }
        for event in &started {
            self.started(tenant, *event, now, cluster);
        }
        for event in was.keys().filter(|event| was[*event] && is.get(event) == Some(&false)) {
            self.note(Promise::OneWay, format!("{event} went back from Started"));
        }
        for event in gone {
            self.count("gone");
            self.gone.insert(event);
        }
        if let Some((number, document)) = self.incarnations.insert(id, (new_incarnation, is.clone()))
            && ((number == new_incarnation && document != is) || number > new_incarnation)
        {
            self.note(Promise::Incarnation, format!("incarnation {new_incarnation} after {number}"));
        }
        steps
    }

    fn appeared(&mut self, id: TenantId, tenant: &Tenant, event: EventId, now: Now, cluster: &Cluster) {
        self.count("appeared");
        if self.gone.contains(&event) || self.events.contains_key(&event) {
            self.note(Promise::OneWay, format!("{event} was used before"));
        }
        let event = tenant.event(event).expect("it has appeared");
        let Phase::Scheduled { not_before, approval: None } = event.phase else {
            return self.note(Promise::OneWay, "an event appears unapproved and Scheduled, then starts");
        };
        let announcement = &event.announcement;
        let notice = not_before.since(now.wall);
        let short = notice < minimum_notice(announcement.kind) && announcement.reason != Reason::HostFailure;
        if short || not_before.millis() % 1_000 != 0 {
            self.note(Promise::FullNotice, format!("{announcement:?} gives {notice:?}"));
        }
        let machines = tenant.machines().iter().filter_map(|id| cluster.machine(*id));
        let named: Vec<_> = machines.filter(|m| announcement.resources.contains(&m.name)).collect();
        if named.len() != announcement.resources.len() {
            self.note(
                Promise::Isolation,
                format!("{:?} are not all of {}", announcement.resources, tenant.name),
            );
        }
        if named.windows(2).any(|pair| pair[0].update_domain != pair[1].update_domain) {
            self.note(Promise::UpdateDomains, format!("{:?} lie in two", announcement.resources));
        }
        if announcement.kind == EventKind::Terminate {
            let wanted = named.iter().filter_map(|machine| machine.profile.terminate).next();
            if wanted.is_none_or(|wanted| notice < wanted.length()) || named.len() != 1 {
                self.note(Promise::FullNotice, format!("Terminate gives {notice:?} of {wanted:?}"));
            }
        }
        let known = Known { tenant: id, announced: now, not_before, approved: false };
        self.events.insert(announcement.id, known);
    }

    fn started(&mut self, tenant: &Tenant, id: EventId, now: Now, cluster: &Cluster) {
        self.count("started");
        let event = tenant.event(id).expect("it has started");
        let Some(known) = self.events.get(&id) else { return };
        let kind = event.announcement.kind;
        let steady_over = now.steady.since(known.announced.steady) >= minimum_notice(kind);
        let expired = now.wall >= known.not_before && steady_over;
        let down = tenant.machines().iter().filter_map(|id| cluster.machine(*id));
        let all_down = down.into_iter().all(|machine| machine.power != Power::Running)
            && tenant.policy.all_instances_down == Approve::Automatically;
        let by_policy = match event.announcement.reason {
            Reason::UserRestart => tenant.policy.user_restart == Approve::Automatically,
            Reason::UserRedeploy => tenant.policy.user_redeploy == Approve::Automatically,
            Reason::HostFailure => true,
            _ => false,
        };
        let forced = self.forced.contains(&event.maintenance);
        if !(expired || known.approved || all_down || by_policy || forced) {
            self.note(Promise::NeverEarly, format!("{kind:?} {id} started at {now:?}"));
        }
        let others_wait = tenant.events().iter().any(|other| {
            other.announcement.kind == EventKind::Terminate && other.is_unapproved() && other.id() != id
        });
        if kind == EventKind::Terminate && others_wait && !(expired || all_down || forced) {
            self.note(Promise::NeverEarly, format!("Terminate {id} did not wait for the others"));
        }
    }

    /// Planned work starts only where no other update domain of its tenants is being worked on.
    fn check_domains_at_start(&mut self, cluster: &Cluster, id: MaintenanceId) {
        let Some(started) = cluster.maintenance(id) else { return };
        let planned = matches!(
            started.plan.cause,
            Cause::HostWork { .. } | Cause::DegradedHost { .. } | Cause::HostReturn { .. }
        );
        if !planned || self.forced.contains(&id) {
            return;
        }
        self.count("planned start");
        let running = cluster.maintenances().filter(|other| other.plan.id != id && other.wait().is_none());
        let platform = running.filter(|other| {
            matches!(
                other.plan.cause,
                Cause::HostWork { .. }
                    | Cause::DegradedHost { .. }
                    | Cause::FailedHost { .. }
                    | Cause::HostReturn { .. }
            )
        });
        let parts: Vec<_> = platform.flat_map(|other| &other.plan.parts).collect();
        for part in &started.plan.parts {
            if parts.iter().any(|o| o.tenant == part.tenant && o.update_domain != part.update_domain) {
                self.note(Promise::UpdateDomains, format!("two of tenant {} at once", part.tenant));
            }
        }
    }

    /// On one host the machines of a tenant share an update domain; announced host work is in one per tenant.
    fn check_hosts(&mut self, cluster: &Cluster, change: &Change) {
        match change {
            Change::Started { .. }
            | Change::Completed { .. }
            | Change::MachineAdmitted { .. }
            | Change::MachineMoved { .. } => {
                let mut domains = BTreeMap::new();
                for (id, machine) in cluster.machines() {
                    let place = (machine.host, machine.tenant);
                    if *domains.entry(place).or_insert(machine.update_domain) != machine.update_domain {
                        self.note(Promise::UpdateDomains, format!("machine {id} shares a host with another"));
                    }
                }
            }
            Change::Planned(plan) if matches!(plan.cause, Cause::HostWork { .. }) => {
                let mut domains = BTreeMap::new();
                let works = cluster.maintenances().filter(|m| matches!(m.plan.cause, Cause::HostWork { .. }));
                for part in works.flat_map(|work| &work.plan.parts) {
                    if *domains.entry(part.tenant).or_insert(part.update_domain) != part.update_domain {
                        self.note(Promise::UpdateDomains, "host work is announced in two".to_owned());
                    }
                }
            }
            _ => {}
        }
    }

    /// Called when everything due is handled: an event whose notice is over has started, or is held for a reason.
    pub fn settled(&mut self, cluster: &Cluster, now: Now) {
        let held: BTreeSet<_> = cluster.held().map(|(id, _)| id).collect();
        for maintenance in cluster.maintenances().filter(|maintenance| maintenance.wait().is_some()) {
            let plan = &maintenance.plan;
            let over = now.wall >= plan.not_before && now.steady >= plan.steady_due;
            if over && !held.contains(&plan.id) {
                self.note(Promise::NeverForgotten, format!("{:?} is over and does not start", plan.id));
            }
        }
        for (id, hold) in cluster.held() {
            if !holds(cluster, now, id, hold) {
                self.note(Promise::NeverForgotten, format!("{id:?} is held by {hold:?}, which is over"));
            }
        }
        self.broken.extend(self.upgrades.settled(cluster, now));
        self.broken.extend(self.fences.settled(cluster));
        self.check_rollouts(cluster);
        self.check_waiting_work_lacks_approvals(cluster);
        self.check_every_machine_was_notified(cluster);
    }

    /// The reason for which a rollout waits exists.
    fn check_rollouts(&mut self, cluster: &Cluster) {
        for (id, rollout) in cluster.rollouts() {
            let waits = match rollout.standing {
                Standing::Next => false,
                Standing::Works(group) => cluster.maintenance(group).is_some(),
                Standing::Brake => cluster.brake() == Brake::On,
                Standing::Unwell => {
                    let mut hosts = cluster.unhealthy_hosts_of(rollout);
                    hosts.next().is_some() || cluster.machines_away(id).next().is_some()
                }
                Standing::Paused => rollout.pause.is_some(),
                Standing::Unconfirmed => rollout.groups > rollout.confirmed,
                Standing::Room(_)
                | Standing::Rests { .. }
                | Standing::Window { .. }
                | Standing::TenantWindow { .. } => true,
            };
            if !waits || (rollout.waiting.is_empty() && rollout.current().is_none()) {
                self.note(
                    Promise::NeverForgotten,
                    format!("{id:?} waits for nothing: {:?}", rollout.standing),
                );
            }
        }
    }

    /// Work that waits for approvals lacks at least one.
    fn check_waiting_work_lacks_approvals(&mut self, cluster: &Cluster) {
        for maintenance in
            cluster.maintenances().filter(|maintenance| maintenance.wait() == Some(Wait::Notice))
        {
            let announcements = maintenance.plan.parts.iter().filter_map(|part| part.announcement.as_ref());
            let events = announcements.filter_map(|announcement| cluster.event(announcement.id));
            let events: Vec<_> = events.map(|(_, event)| event).collect();
            let terminate = |event: &&Event| event.announcement.kind == EventKind::Terminate;
            if !events.is_empty() && !events.iter().any(terminate) && events.iter().all(|e| e.is_approved()) {
                self.note(Promise::NeverForgotten, format!("{:?} has every approval", maintenance.plan.id));
            }
        }
    }

    /// Every machine on a host with announced work is named in it. Maintenance mode leaves out those that are off.
    fn check_every_machine_was_notified(&mut self, cluster: &Cluster) {
        for (id, host) in cluster.hosts().filter(|(_, host)| host.health != Health::Failed) {
            let work = host.work.and_then(|work| cluster.maintenance(work));
            let Some(work) = work.filter(|work| work.wait().is_some()) else { continue };
            let named: BTreeSet<_> = work.plan.machines().collect();
            for machine in host.machines().iter().filter(|machine| !named.contains(machine)) {
                let known = cluster.machine(*machine).expect("a machine of the host");
                let is_off = host.mode.is_some() && known.power != Power::Running;
                if known.host == id && known.power != Power::Deallocated && !is_off {
                    self.note(
                        Promise::FullNotice,
                        format!("{} is on {} and has no event", known.name, host.name),
                    );
                }
            }
        }
    }
}

/// Returns true if the reason of a hold still exists.
fn holds(cluster: &Cluster, now: Now, id: MaintenanceId, hold: Hold) -> bool {
    let plan = &cluster.maintenance(id).expect("what is held is known").plan;
    let running = || cluster.maintenances().filter(|other| other.wait().is_none());
    match hold {
        Hold::Brake => cluster.brake() == Brake::On,
        Hold::NoHost => cluster.decide(now, &Command::ForceStart(id)).is_err(),
        Hold::UpdateDomain => running().flat_map(|other| &other.plan.parts).any(|other| {
            plan.part(other.tenant).is_some_and(|part| part.update_domain != other.update_domain)
        }),
        Hold::Moving => {
            let restarts = |work: &&Maintenance| matches!(work.plan.cause, Cause::FailedHost { .. });
            let waiting = cluster.maintenances().filter(|other| other.wait().is_some()).filter(restarts);
            let awaited: Vec<_> = waiting.flat_map(|work| work.plan.machines()).collect();
            let moved = running().flat_map(Maintenance::actions);
            let moved = moved.filter(|action| action.impact.destination().is_some());
            let moved: Vec<_> = moved.filter_map(|action| action.target.machine()).collect();
            plan.machines().any(|machine| moved.contains(&machine) || awaited.contains(&machine))
        }
        Hold::Window { opens } => now.wall < opens,
        Hold::Fencing => plan.machines().any(|machine| cluster.unfenced_host_of(machine).is_some()),
    }
}

/// The promised notice, written down independently.
fn minimum_notice(kind: EventKind) -> Duration {
    Duration::from_secs(match kind {
        EventKind::Freeze | EventKind::Reboot => 900,
        EventKind::Redeploy => 600,
        EventKind::Preempt => 30,
        EventKind::Terminate => 300,
    })
}

fn shown(tenant: &Tenant) -> (u64, VisibleEvents) {
    let events = tenant.events().iter().map(|event| (event.id(), !event.is_scheduled()));
    (tenant.incarnation, events.collect())
}
