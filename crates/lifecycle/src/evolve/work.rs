//! Application of changes to maintenances, from the plan to the end.

use std::collections::BTreeSet;
use std::sync::Arc;

use forewarn_types::{
    Approval, Event, EventId, EventKind, MachineId, MaintenanceId, Now, Phase, StartCause, Steady, TenantId,
};

use super::host_step::AfterAction;
use super::rollouts::GroupEnd;
use crate::action::{Action, Report};
use crate::agenda::Due;
use crate::change::Effect;
use crate::cluster::Cluster;
use crate::host_step::Target;
use crate::limits::EVENTS_PER_TENANT_MAX;
use crate::maintenance::{Cause, Hold, Maintenance, Plan, Stage, Wait, Withdrawal};
use crate::parts::Part;
use crate::tenant::{Progress, Shape, Work};

impl Cluster {
    pub(super) fn planned(&mut self, plan: &Plan, out: &mut Vec<Effect>) {
        let id = plan.id;
        self.next.maintenance = id.0 + 1;
        for part in &plan.parts {
            self.announce(plan, part, out);
        }
        self.pending.extend(plan.machines().map(|machine| (machine, id)));
        if let Cause::HostWork { rollout, hosts, .. } = &plan.cause {
            for host in hosts {
                self.change_host(*host, |host| host.work = Some(id));
            }
            self.group_planned(*rollout, id, hosts);
            self.observe(*rollout, plan.machines(), out);
        }
        if let Cause::FailedHost { .. } | Cause::DegradedHost { .. } = plan.cause {
            plan.machines().for_each(|machine| self.agenda.remove(Steady::START, Due::Stranded(machine)));
        }
        self.list_return(id, &plan.cause);
        self.agenda.add(plan.steady_due, Due::Start(id));
        let new = Maintenance { plan: plan.clone(), stage: Stage::Waiting(Wait::Notice) };
        self.maintenances.insert(id, Arc::new(new));
    }

    fn announce(&mut self, plan: &Plan, part: &Part, out: &mut Vec<Effect>) {
        if part.announcement.is_some() {
            self.forget_silence(part.tenant);
        }
        let Some(tenant) = self.tenants.get_mut(&part.tenant) else { return };
        if let Some(kind) = plan.cause.work_kind() {
            let (maintenance, update_domain) = (plan.id, part.update_domain);
            tenant.add_work(Work { maintenance, update_domain, kind, progress: Progress::Waiting });
        }
        if let Some(announcement) = &part.announcement {
            let phase = Phase::Scheduled { not_before: plan.not_before, approval: None };
            tenant.announce(Event { announcement: Arc::clone(announcement), maintenance: plan.id, phase });
            self.next.event += 1;
            self.events.insert(announcement.id, (plan.id, part.tenant));
            self.unapproved.insert((plan.id, part.tenant));
            out.push(Effect::Publish(part.tenant));
        }
    }

    pub(super) fn approved(&mut self, tenant: TenantId, event: EventId, given: Approval) {
        let event = self.tenants.get_mut(&tenant).and_then(|tenant| tenant.event_mut(event));
        let Some(event) = event else { return };
        if let Phase::Scheduled { approval, .. } = &mut event.phase {
            *approval = Some(given);
            self.unapproved.remove(&(event.maintenance, tenant));
        }
    }

    /// Moves a maintenance that has not started from one list to another.
    pub(super) fn set_wait(&mut self, id: MaintenanceId, wait: Wait) {
        self.unlist(id);
        let Some(maintenance) = self.maintenances.get_mut(&id).map(Arc::make_mut) else { return };
        let Stage::Waiting(current) = &mut maintenance.stage else { return };
        *current = wait;
        match wait {
            Wait::Notice => self.agenda.add(maintenance.plan.steady_due, Due::Start(id)),
            Wait::Wall => self.agenda.add_wall(maintenance.plan.not_before, Due::Start(id)),
            Wait::Nothing | Wait::Offered { .. } => self.agenda.add(Steady::START, Due::Start(id)),
            Wait::Held(hold) => {
                self.held.insert((hold, id));
                self.list_for_host(id, hold);
                if let Hold::Window { opens } = hold {
                    self.agenda.add_wall(opens, Due::Start(id));
                }
            }
        }
    }

    /// Takes a maintenance from the list in which it waits.
    pub(super) fn unlist(&mut self, id: MaintenanceId) {
        let Some(maintenance) = self.maintenances.get(&id) else { return };
        match maintenance.wait() {
            Some(Wait::Notice) => self.agenda.remove(maintenance.plan.steady_due, Due::Start(id)),
            Some(Wait::Wall) => self.agenda.remove_wall(maintenance.plan.not_before, Due::Start(id)),
            Some(Wait::Nothing) => self.agenda.remove(Steady::START, Due::Start(id)),
            Some(Wait::Offered { zone }) => {
                self.agenda.remove(Steady::START, Due::Start(id));
                self.offer_to_next(zone, MaintenanceId(id.0 + 1));
            }
            Some(Wait::Held(hold)) => {
                self.unlist_for_host(id, hold);
                self.held.remove(&(hold, id));
                if let Hold::Window { opens } = hold {
                    self.agenda.remove_wall(opens, Due::Start(id));
                }
            }
            None => {}
        }
    }

    /// Has the next tick recheck a maintenance that has not started.
    pub(super) fn recheck(&mut self, id: MaintenanceId) {
        self.set_wait(id, Wait::Nothing);
    }

    /// Has the next ticks recheck maintenances that are held for that reason.
    pub(super) fn retry_held(&mut self, reason: Hold) {
        let all = (reason, MaintenanceId(0))..=(reason, MaintenanceId(u64::MAX));
        let again: Vec<_> = self.held.range(all).map(|(_, id)| *id).collect();
        again.into_iter().for_each(|id| self.recheck(id));
    }

    pub(super) fn started(
        &mut self,
        now: Now,
        id: MaintenanceId,
        cause: StartCause,
        actions: &[Action],
        out: &mut Vec<Effect>,
    ) {
        self.unlist(id);
        let steps = self.first_steps(now, id, actions);
        let Some(maintenance) = self.maintenances.get_mut(&id).map(Arc::make_mut) else { return };
        let keyed = actions.iter().map(|action| (action.target, *action)).collect();
        maintenance.stage = Stage::Running { cause, actions: keyed, steps };
        let aside = maintenance.all_aside();
        self.running.insert(id);
        let parts = maintenance.plan.parts.clone();
        let is_restart = matches!(maintenance.plan.cause, Cause::FailedHost { .. });
        self.group_started(id, actions);
        // Moves of these machines may have waited for their restart, which need not be a move.
        for machine in parts.iter().filter(|_| is_restart).flat_map(|part| part.machines.iter()) {
            self.recheck_held_work_of(*machine);
        }
        let mut idle = Vec::new();
        for part in &parts {
            if self.count_actions(id, part, &aside) == 0 {
                idle.push(part.tenant);
            }
            if part.announcement.is_some() {
                self.unapproved.remove(&(id, part.tenant));
            }
            let Some(tenant) = self.tenants.get_mut(&part.tenant) else { continue };
            tenant.work_runs(id);
            if let Some(announcement) = &part.announcement {
                tenant.start(announcement.id, Phase::Started { at: now.wall, cause });
                out.push(Effect::Publish(part.tenant));
                if announcement.kind == EventKind::Terminate {
                    self.release_terminates(part.tenant);
                }
            }
        }
        for action in actions {
            if let (Some(to), Some(machine)) = (action.impact.destination(), action.target.machine()) {
                self.change_host(to, |host| host.add(machine));
            }
            if let Some(machine) = action.target.machine() {
                self.refresh_rooms_of(machine);
            }
            out.push(Effect::Perform(*action));
        }
        self.end_parts(now, id, &idle, Some(GroupEnd::Skipped), out);
    }

    /// Approved Terminates start when none of the same tenant waits for an approval any more.
    fn release_terminates(&mut self, tenant: TenantId) {
        let Some(tenant) = self.tenants.get(&tenant) else { return };
        if tenant.unapproved_terminates().next().is_none() {
            let ready: Vec<_> = tenant.approved_terminates().map(|event| event.maintenance).collect();
            ready.into_iter().for_each(|id| self.recheck(id));
        }
    }

    pub(super) fn withdrawn(
        &mut self,
        now: Now,
        id: MaintenanceId,
        tenants: &[TenantId],
        why: Withdrawal,
        out: &mut Vec<Effect>,
    ) {
        if !self.maintenances.contains_key(&id) {
            return;
        }
        // The remaining tenants may all have approved, and withdrawn machines may be part of other work now.
        self.recheck(id);
        let unstarted = match why {
            Withdrawal::Postponed => Some(GroupEnd::Postponed),
            // The step on the hosts is still to be done.
            Withdrawal::Unconcerned | Withdrawal::HostFailed if self.has_hosts_to_step_on(id) => None,
            Withdrawal::Cancelled
            | Withdrawal::Superseded
            | Withdrawal::Unconcerned
            | Withdrawal::HostFailed
            | Withdrawal::HostRecovered
            | Withdrawal::NoReturn => Some(GroupEnd::Skipped),
        };
        self.end_parts(now, id, tenants, unstarted, out);
        self.advance_rollouts();
    }

    pub(super) fn completed(
        &mut self,
        now: Now,
        id: MaintenanceId,
        target: Target,
        report: Report,
        out: &mut Vec<Effect>,
    ) {
        let Some(maintenance) = self.maintenances.get_mut(&id).map(Arc::make_mut) else { return };
        let Stage::Running { actions, steps, .. } = &mut maintenance.stage else { return };
        let Some(action) = actions.remove(&target) else { return };
        steps.suspended.remove(&target);
        let machine = match target {
            Target::Machine(machine) | Target::Returning(machine) => machine,
            Target::Host(host) => return self.step_ended(id, host, report),
        };
        let placement = self.leave_for_step(id, target, report);
        let tenant = self.tenant_in(id, machine);
        let from = self.machines.get(&machine).map(|machine| machine.host);
        match report {
            Report::Done => self.apply(machine, action.impact, out),
            Report::Failed => self.impact_failed(id, machine),
        }
        if placement == AfterAction::Free {
            self.impact_ended(now, id, machine, report, out);
        }
        self.record_departure(id, target, from, report);
        let to = action.impact.destination();
        if let Some(to) = to {
            self.vacate(machine, to);
            if report == Report::Failed {
                self.rescue_after_failed_move(id, machine);
            }
        }
        from.into_iter().chain(to).for_each(|host| self.refresh_room(machine, host));
        self.recheck_held_work_of(machine);
        from.into_iter().chain(to).for_each(|host| self.advance_rollout_of(host));
        if let Some(tenant) = tenant
            && placement == AfterAction::Free
            && self.action_ended(id, tenant) == 0
        {
            self.end_parts(now, id, &[tenant], Some(GroupEnd::Skipped), out);
        }
    }

    /// Counts the machines of a part with an unfinished action, and those that have stepped aside.
    pub(crate) fn count_actions(
        &mut self,
        id: MaintenanceId,
        part: &Part,
        aside: &BTreeSet<MachineId>,
    ) -> u32 {
        let Some(maintenance) = self.maintenances.get(&id) else { return 0 };
        let is_busy = |machine: MachineId| aside.contains(&machine) || maintenance.action(machine).is_some();
        let unfinished = part.machines.iter().filter(|machine| is_busy(**machine));
        let count = u32::try_from(unfinished.count()).unwrap_or(u32::MAX);
        if count > 0 {
            self.unfinished_counts.insert((id, part.tenant), count);
        }
        count
    }

    /// Records the end of an action of a part. Returns the number of its unfinished actions.
    pub(super) fn action_ended(&mut self, id: MaintenanceId, tenant: TenantId) -> u32 {
        let Some(count) = self.unfinished_counts.get_mut(&(id, tenant)) else { return 0 };
        *count -= 1;
        let left = *count;
        if left == 0 {
            self.unfinished_counts.remove(&(id, tenant));
        }
        left
    }

    /// Has the next ticks recheck held work that names a machine.
    pub(super) fn recheck_held_work_of(&mut self, machine: MachineId) {
        let waiting =
            self.waiting_of(machine).filter(|pending| matches!(pending.wait(), Some(Wait::Held(_))));
        let held: Vec<_> = waiting.map(|pending| pending.plan.id).collect();
        held.into_iter().for_each(|id| self.recheck(id));
    }

    /// Ends the parts of some tenants, and the maintenance with its last part.
    pub(super) fn end_parts(
        &mut self,
        now: Now,
        id: MaintenanceId,
        tenants: &[TenantId],
        unstarted: Option<GroupEnd>,
        out: &mut Vec<Effect>,
    ) {
        for tenant in tenants {
            let Some(maintenance) = self.maintenances.get_mut(&id).map(Arc::make_mut) else { return };
            let is_restart = matches!(maintenance.plan.cause, Cause::FailedHost { .. });
            if let Some(part) = maintenance.plan.parts.remove(*tenant) {
                self.end_part(now, id, &part, out);
                // Moves of these machines may have waited for their restart.
                let awaited = part.machines.iter().filter(|_| is_restart);
                awaited.for_each(|machine| self.recheck_held_work_of(*machine));
            }
        }
        self.finish_if_empty(now, id, unstarted, out);
    }

    fn end_part(&mut self, now: Now, id: MaintenanceId, part: &Part, out: &mut Vec<Effect>) {
        for machine in &part.machines {
            self.pending.remove(&(*machine, id));
            self.recheck_model(now, *machine);
        }
        if part.announcement.is_some() {
            self.unapproved.remove(&(id, part.tenant));
        }
        let Some(tenant) = self.tenants.get_mut(&part.tenant) else { return };
        tenant.remove_work(id);
        let works: Vec<_> = tenant.works().iter().map(|work| work.maintenance).collect();
        let was_full = tenant.events().len() >= EVENTS_PER_TENANT_MAX;
        if let Some(announcement) = &part.announcement {
            tenant.end(announcement.id, now.steady);
            self.events.remove(&announcement.id);
            out.push(Effect::Publish(part.tenant));
            self.await_silence(part.tenant);
            if announcement.kind == EventKind::Terminate {
                self.release_terminates(part.tenant);
            }
        }
        for other in works {
            if self.held.contains(&(Hold::UpdateDomain, other)) {
                self.recheck(other);
            }
        }
        if was_full {
            self.advance_rollouts();
        }
        self.drop_if_abandoned(part.tenant, out);
    }

    /// Removes the tenant of a standalone machine that is gone.
    pub(super) fn drop_if_abandoned(&mut self, id: TenantId, out: &mut Vec<Effect>) {
        let abandoned = self.tenants.get(&id).is_some_and(|tenant| {
            tenant.shape == Shape::StandaloneMachine
                && tenant.machines().is_empty()
                && tenant.events().is_empty()
        });
        if abandoned {
            self.tenant_removed(id, out);
        }
    }

    /// Ends a maintenance without parts and without hosts that are being worked on. If it has not started, `unstarted` is
    /// its result for the rollout; `None` if it goes on without machines.
    pub(super) fn finish_if_empty(
        &mut self,
        now: Now,
        id: MaintenanceId,
        unstarted: Option<GroupEnd>,
        out: &mut Vec<Effect>,
    ) {
        let Some(maintenance) = self.maintenances.get(&id) else { return };
        let goes_on = maintenance.steps().map_or(unstarted.is_none(), |steps| !steps.hosts.is_empty());
        if goes_on || !maintenance.plan.parts.is_empty() {
            return;
        }
        self.unlist(id);
        self.running.remove(&id);
        let Some(over) = self.maintenances.remove(&id) else { return };
        self.unlist_return(id, &over.plan.cause);
        if let Cause::HostWork { rollout, hosts, .. } = &over.plan.cause {
            let unstarted = unstarted.unwrap_or(GroupEnd::Skipped);
            let end = if over.wait().is_none() { GroupEnd::Done } else { unstarted };
            self.group_ended(now, *rollout, hosts, end, out);
        }
    }
}
