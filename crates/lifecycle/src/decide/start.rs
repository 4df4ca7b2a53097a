//! The start of a maintenance: its conditions, the reasons to hold it, and the actions on each machine.
//!
//! It starts when every notified tenant has approved, or when the notice is over on both clocks. A held maintenance is
//! tried again when the reason is gone: late, never lost.

use forewarn_types::{EventKind, MachineId, MaintenanceId, Name, StartCause, TenantId, Timestamp};

use super::draft::Draft;
use crate::action::{Action, Impact};
use crate::agenda::Due;
use crate::change::Change;
use crate::fleet::{Fence, Health, Host, Machine, Power};
use crate::host_step::{HostWork, Leaving, ReturnWay, Target};
use crate::maintenance::{Cause, Hold, Plan, PowerChange, Stage, Wait, Withdrawal};
use crate::parts::Part;
use crate::placement::Move;
use crate::policy::{Approve, Brake, FailureKind, Policy, Unenrolled};
use crate::refusal::Refusal;
use crate::tenant::{Progress, Tenant, WorkKind};

impl Draft<'_> {
    /// Does the first thing that is due.
    pub(super) fn tick(&mut self) -> Result<(), Refusal> {
        match self.cluster.agenda.first_due(self.now) {
            Some(Due::Start(id)) => self.start_or_wait(id),
            Some(Due::Advance(rollout)) => self.advance(rollout),
            Some(Due::Stranded(machine)) => self.rescue(machine),
            Some(Due::Batch(set)) => self.next_batch(set),
            None => Ok(()),
        }
    }

    fn start_or_wait(&mut self, id: MaintenanceId) -> Result<(), Refusal> {
        let maintenance = self.cluster.maintenance(id).ok_or(Refusal::NoSuchMaintenance)?;
        if !self.start_if_allowed(&maintenance.plan) {
            let notice_over = self.now.steady >= maintenance.plan.steady_due;
            let wait = if notice_over { Wait::Wall } else { Wait::Notice };
            self.changes.push(Change::Waits { maintenance: id, wait });
        }
        Ok(())
    }

    /// Starts a maintenance without waiting for notice or window. The brake and the fence of a failed host still hold it,
    /// and a machine still needs a host to move to.
    pub(super) fn force_start(&mut self, id: MaintenanceId) -> Result<(), Refusal> {
        let maintenance = self.cluster.maintenance(id).ok_or(Refusal::NoSuchMaintenance)?;
        match maintenance.stage {
            Stage::Running { .. } => return Ok(()),
            Stage::Waiting(_) if self.cluster.brake == Brake::On => return Err(Refusal::BrakeOn),
            Stage::Waiting(_) => {}
        }
        let unfenced = self.unfenced_host(&maintenance.plan).map(Refusal::NotFenced);
        unfenced.map_or(Ok(()), Err)?;
        let moving = self.already_moving_machine(&maintenance.plan).map(Refusal::UnderWay);
        moving.map_or(Ok(()), Err)?;
        let plan = &maintenance.plan;
        let actions = self.actions(plan).map_err(|stuck| self.no_host_in(plan, stuck))?;
        if let (Cause::HostReturn { host, .. }, []) = (&plan.cause, actions.as_slice()) {
            let name = self.cluster.known_host(*host)?.name.clone();
            return Err(Refusal::NoReturn(name));
        }
        self.changes.push(Change::Started { maintenance: id, cause: StartCause::Forced, actions });
        Ok(())
    }

    /// Starts or holds a maintenance that may start. Returns whether it may.
    pub(super) fn start_if_allowed(&mut self, plan: &Plan) -> bool {
        let Some(cause) = self.start_cause(plan) else { return false };
        let outcome = match self.reason_to_hold(plan, cause) {
            Some(hold) => Err(hold),
            None => self.actions(plan).map_err(|_| Hold::NoHost),
        };
        let maintenance = plan.id;
        match outcome {
            Ok(actions) if actions.is_empty() && is_return(plan) => {
                let tenants = plan.parts.iter().map(|part| part.tenant).collect();
                self.changes.push(Change::Withdrawn { maintenance, tenants, why: Withdrawal::NoReturn });
            }
            Ok(actions) => self.changes.push(Change::Started { maintenance, cause, actions }),
            Err(hold) if self.cluster.held.contains(&(hold, maintenance)) => {}
            Err(hold) => self.changes.push(Change::Waits { maintenance, wait: Wait::Held(hold) }),
        }
        true
    }

    /// The cause by which a maintenance may start now; `None` if it has to wait.
    fn start_cause(&self, plan: &Plan) -> Option<StartCause> {
        let Some(template) = plan.cause.event_template() else { return Some(StartCause::AtOnce) };
        if matches!(plan.cause, Cause::FailedHost { .. }) {
            return Some(StartCause::Failure);
        }
        let consent = self
            .consent(plan)
            .filter(|_| template.kind != EventKind::Terminate || self.terminates_ready(plan));
        let notice_over = self.now.wall >= plan.not_before && self.now.steady >= plan.steady_due;
        consent.or_else(|| notice_over.then_some(StartCause::Expired))
    }

    /// The consent of all tenants: the strongest kind that any of them gave, or none if one has not consented.
    pub(super) fn consent(&self, plan: &Plan) -> Option<StartCause> {
        let announced = plan.parts.announced_count();
        if announced == 0 {
            // A tenant that is not enrolled delays nothing where another tenant has an event.
            let waits = self.cluster.settings.unenrolled == Unenrolled::WaitAnyway && !plan.parts.is_empty();
            return (!waits).then_some(StartCause::AtOnce);
        }
        let mut automatic = 0;
        for part in self.unapproved_parts(plan) {
            let tenant = self.cluster.tenant(part.tenant)?;
            if !approves_itself(&plan.cause, tenant.policy) && !self.cluster.all_down(tenant) {
                return None;
            }
            automatic += 1;
        }
        Some(if automatic < announced { StartCause::Approved } else { StartCause::Automatic })
    }

    /// The parts with an event that its tenant has not approved. Approved parts cost nothing.
    fn unapproved_parts<'a>(&'a self, plan: &'a Plan) -> impl Iterator<Item = &'a Part> {
        let all = (plan.id, TenantId(0))..=(plan.id, TenantId(u32::MAX));
        let listed = self.cluster.unapproved.range(all).filter_map(|(_, tenant)| plan.parts.get(*tenant));
        // The events of a plan that this decision has made are not listed yet.
        let is_new = self.cluster.maintenance(plan.id).is_none();
        let new = plan.parts.iter().filter(move |_| is_new);
        let approved_now = |part: &&Part| {
            part.announcement.as_ref().is_none_or(|announcement| self.approved.contains(&announcement.id))
        };
        listed.chain(new).filter(move |part| !approved_now(part))
    }

    /// Returns true if no Terminate of the same tenants waits for an approval.
    fn terminates_ready(&self, plan: &Plan) -> bool {
        let ready = |tenant: &Tenant| {
            tenant.unapproved_terminates().all(|event| self.approved.contains(&event.id()))
                || self.cluster.all_down(tenant)
        };
        plan.parts.iter().filter_map(|part| self.cluster.tenant(part.tenant)).all(ready)
    }

    /// The reason to hold a maintenance that could start.
    fn reason_to_hold(&self, plan: &Plan, cause: StartCause) -> Option<Hold> {
        if self.unfenced_host(plan).is_some() {
            return Some(Hold::Fencing);
        }
        let makes_events = plan.cause.event_template().is_some();
        if self.cluster.brake == Brake::On && makes_events && cause != StartCause::Failure {
            return Some(Hold::Brake);
        }
        let planned = matches!(
            plan.cause.work_kind(),
            Some(WorkKind::HostWork | WorkKind::Degraded | WorkKind::Return)
        );
        if planned && plan.parts.iter().any(|part| self.works_elsewhere(plan.id, part)) {
            return Some(Hold::UpdateDomain);
        }
        if let Some(opens) = self.opens(plan) {
            return Some(Hold::Window { opens });
        }
        self.already_moving_machine(plan).map(|_| Hold::Moving)
    }

    /// The next time at which windows of the rollout and of each tenant are open; `None` if they are open now.
    fn opens(&self, plan: &Plan) -> Option<Timestamp> {
        let Cause::HostWork { rollout, .. } = &plan.cause else { return None };
        let windows = self.cluster.rollout(*rollout).map_or(self.windows, |known| &known.terms.windows);
        let opens = self.next_open_for(windows, plan, self.now.wall);
        (opens > self.now.wall).then_some(opens)
    }

    /// A machine that this would move although it is already moving. Moves happen one after the other, unless the host
    /// has failed and needs no fence. A move waits for the restart after a failure, too.
    fn already_moving_machine(&self, plan: &Plan) -> Option<Name> {
        let moves = match &plan.cause {
            Cause::UserRedeploy | Cause::DegradedHost { .. } => true,
            Cause::HostReturn { .. } => true,
            Cause::HostWork { work, .. } => work.kind.moves_machines(),
            Cause::UserRestart
            | Cause::UserDelete(_)
            | Cause::Reimage(_)
            | Cause::Power(_)
            | Cause::Eviction(_)
            | Cause::Fencing { .. } => false,
            Cause::FailedHost { host, .. } => {
                self.cluster.host(*host).is_some_and(|host| host.fence != Fence::Unneeded)
            }
        };
        let is_failure = matches!(plan.cause, Cause::FailedHost { .. });
        let mut moved = plan.machines().filter(|id| moves && self.cluster.concerns(&plan.cause, *id));
        let moving = moved.find(|id| {
            let waits = !is_failure && self.cluster.awaits_restart(*id);
            waits || self.cluster.is_moving(*id) || self.moves.contains(*id)
        })?;
        self.cluster.machine(moving).map(|machine| machine.name.clone())
    }

    /// Returns true if platform work is in progress in another update domain of the tenant.
    fn works_elsewhere(&self, id: MaintenanceId, part: &Part) -> bool {
        let works = self.cluster.tenant(part.tenant).map_or(&[][..], Tenant::works);
        let running =
            works.iter().filter(|work| work.progress == Progress::Running && work.maintenance != id);
        let begun = self.begun.iter().filter(|(tenant, _)| *tenant == part.tenant).map(|(_, domain)| *domain);
        let mut domains = running.map(|work| work.update_domain).chain(begun);
        domains.any(|domain| domain != part.update_domain)
    }

    /// The action on each machine that is still concerned; or a machine for which there is no host.
    fn actions(&mut self, plan: &Plan) -> Result<Vec<Action>, MachineId> {
        let moves = self.moves.len();
        let (mut actions, mut busy) = (Vec::new(), Vec::new());
        for part in &plan.parts {
            match self.actions_of(plan, part, &mut actions) {
                Ok(true) => busy.push((part.tenant, part.update_domain)),
                Ok(false) => {}
                Err(stuck) => {
                    self.moves.truncate(moves);
                    return Err(stuck);
                }
            }
        }
        self.add_steps_of_idle_hosts(plan, &mut actions);
        if plan.cause.work_kind().is_some() {
            self.begun.extend(busy);
        }
        Ok(actions)
    }

    /// Adds the actions of a part. Returns whether the part is in progress after the start: it ends at once if it has
    /// nothing to do.
    fn actions_of(&mut self, plan: &Plan, part: &Part, actions: &mut Vec<Action>) -> Result<bool, MachineId> {
        let cluster = self.cluster;
        let (known, mut waits) = (actions.len(), false);
        for id in part.machines.iter().copied().filter(|id| cluster.concerns(&plan.cause, *id)) {
            let Some(machine) = cluster.machine(id) else { continue };
            let task = plan.cause.host_task();
            if task.is_some_and(|task| task.needs_no_action(machine.power)) {
                waits |= task.is_some_and(|task| task.waits_aside(machine.power));
                continue;
            }
            let Some(impact) = self.impact(plan, (id, machine)) else {
                // A machine that cannot return stays where it is.
                if is_return(plan) {
                    continue;
                }
                return Err(id);
            };
            if let Some(to) = impact.destination() {
                let (tenant, update_domain) = (machine.tenant, machine.update_domain);
                let size = cluster.size_of(id);
                self.moves.add(Move { machine: id, tenant, update_domain, to, size });
            }
            let (target, boots) = (Target::Machine(id), machine.boots);
            actions.push(Action { maintenance: plan.id, target, impact, boots });
        }
        Ok(waits || actions.len() > known)
    }

    /// The impact on one machine; `None` if it has to leave its host and no other host can take it.
    fn impact(&self, plan: &Plan, (id, machine): (MachineId, &Machine)) -> Option<Impact> {
        let elsewhere = || self.cluster.find_host_for((id, machine), plan.cause.hosts(), &self.moves);
        let seconds = plan
            .cause
            .event_template()
            .map_or(0, |template| u32::try_from(template.duration_seconds).unwrap_or(0));
        Some(match &plan.cause {
            Cause::UserRestart => Impact::Reboot { to: None },
            Cause::UserRedeploy | Cause::DegradedHost { .. } => Impact::Redeploy { to: Some(elsewhere()?) },
            Cause::UserDelete(_) => Impact::Delete,
            Cause::Reimage(_) => Impact::Reimage,
            Cause::Power(PowerChange::Stop) => Impact::Stop,
            Cause::Power(PowerChange::Deallocate) => Impact::Deallocate,
            Cause::Power(PowerChange::Start) if self.can_start_here(id, machine) => {
                Impact::Start { to: None }
            }
            Cause::Power(PowerChange::Start) => Impact::Start { to: Some(elsewhere()?) },
            Cause::Eviction(policy) => Impact::Evict(*policy),
            Cause::HostWork { work, .. } => match work.kind {
                HostWork::Update | HostWork::NetworkUpdate | HostWork::Restart if work.step.is_some() => {
                    Impact::StepAside(work.aside()?)
                }
                HostWork::Update | HostWork::NetworkUpdate => Impact::Pause { seconds },
                HostWork::Migration => Impact::Migrate { to: elsewhere()? },
                HostWork::Restart => Impact::Reboot { to: None },
                HostWork::Maintenance { leaving: Leaving::Live, .. } => Impact::Migrate { to: elsewhere()? },
                HostWork::Maintenance { leaving: Leaving::Redeploy, .. } => {
                    Impact::Redeploy { to: Some(elsewhere()?) }
                }
                HostWork::Maintenance { leaving: Leaving::Stop, .. } => Impact::Stop,
            },
            Cause::HostReturn { host, way } => {
                let open = self.cluster.host(*host).is_some_and(Host::is_open);
                let has_room =
                    self.cluster.room_with(*host, &self.moves).has_room_for(self.cluster.size_of(id));
                let fits = open && has_room && self.cluster.fits(machine, *host, &self.moves);
                let to = Some(*host).filter(|_| fits)?;
                match way {
                    ReturnWay::Live => Impact::Migrate { to },
                    ReturnWay::Redeploy => Impact::Redeploy { to: Some(to) },
                }
            }
            Cause::FailedHost { kind: FailureKind::Reboot, .. } => Impact::Reboot { to: elsewhere() },
            Cause::FailedHost { kind: FailureKind::Redeploy, .. } => Impact::Redeploy { to: elsewhere() },
            // It names no machine.
            Cause::Fencing { .. } => return None,
        })
    }

    /// Returns true if a machine that is off may be started on its host.
    pub(super) fn can_start_here(&self, id: MachineId, machine: &Machine) -> bool {
        let here = self.cluster.host(machine.host);
        here.is_some_and(|host| match machine.power {
            Power::Running | Power::Stopped => host.health != Health::Failed && host.mode.is_none(),
            Power::Deallocated => {
                let room = self.cluster.room_of(machine.host);
                host.health == Health::Healthy
                    && host.work.is_none()
                    && host.mode.is_none()
                    && room.has_room_for(self.cluster.size_of(id))
            }
        })
    }
}

fn is_return(plan: &Plan) -> bool {
    matches!(plan.cause, Cause::HostReturn { .. })
}

fn approves_itself(cause: &Cause, policy: Policy) -> bool {
    match cause {
        Cause::UserRestart => policy.user_restart == Approve::Automatically,
        Cause::UserRedeploy => policy.user_redeploy == Approve::Automatically,
        Cause::UserDelete(_)
        | Cause::Reimage(_)
        | Cause::Power(_)
        | Cause::Eviction(_)
        | Cause::HostWork { .. }
        | Cause::DegradedHost { .. }
        | Cause::FailedHost { .. }
        | Cause::Fencing { .. }
        | Cause::HostReturn { .. } => false,
    }
}
