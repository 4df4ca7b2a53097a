//! The maintenance mode of a host: entered by a rollout over that host, left by the operator.

use std::collections::BTreeMap;
use std::num::NonZeroU16;

use forewarn_types::{HostId, MachineId, RolloutId, TenantId};

use super::draft::Draft;
use crate::change::Change;
use crate::cluster::Cluster;
use crate::command::Command;
use crate::fleet::{Health, Host, HostAttention};
use crate::host_mode::{GuestReturn, MaintenanceMode, ModeStep, StepWish};
use crate::host_step::{HostOperation, HostTask, HostWork, Leaving, ReturnWay};
use crate::maintenance::{Cause, PowerChange, Withdrawal};
use crate::refusal::Refusal;
use crate::rollout::RolloutTerms;

impl Draft<'_> {
    /// Closes a host to machines, and has its machines leave. A repeated command replaces work that has not started.
    pub(super) fn enter_maintenance(
        &mut self,
        id: HostId,
        leaving: Leaving,
        seconds: Option<NonZeroU16>,
        wish: &StepWish,
    ) -> Result<(), Refusal> {
        let host = self.cluster.known_host(id)?;
        if host.health == Health::Failed {
            return Err(Refusal::HostFailed(host.name.clone()));
        }
        if host.attention == HostAttention::Needed {
            return Err(Refusal::HostNeedsAttention(host.name.clone()));
        }
        let own = self.own_rollout(host)?;
        if host.rollout.is_some() && host.rollout != own {
            return Err(Refusal::HostBusy(host.name.clone()));
        }
        let mode = host.mode.as_deref();
        let task = task(mode, leaving, seconds, wish);
        if own.is_some() && mode.is_some_and(|mode| mode.task == task) {
            return Ok(());
        }
        let mut copy = self.cluster.clone();
        let away = self.withdraw_returns(id);
        self.changes.iter().for_each(|change| drop(copy.evolve(self.now, change)));
        if let Some(own) = own {
            self.follow(&mut copy, &Command::CancelRollout(own))?;
        }
        let work = task.step.is_some() || !self.cluster.worked_on(id, &task).is_empty();
        let rollout = work.then_some(copy.next_rollout());
        let unchanged = mode.is_some_and(|mode| mode.task == task && rollout.is_none());
        if !unchanged {
            self.set(&mut copy, Change::ModeEntered { host: id, work: task.clone(), rollout, away });
        }
        if rollout.is_some() {
            let terms = RolloutTerms::default();
            self.follow(&mut copy, &Command::Rollout { work: task, hosts: vec![id], terms })?;
        }
        Ok(())
    }

    /// Opens a host to machines again, and has those that left return. Announced work is withdrawn; started work has to
    /// end first.
    pub(super) fn exit_maintenance(&mut self, id: HostId, guests: GuestReturn) -> Result<(), Refusal> {
        let host = self.cluster.known_host(id)?;
        let Some(mode) = host.mode.as_deref() else { return Ok(()) };
        let own = self.own_rollout(host)?;
        let moved = mode.left.iter().any(|(_, way)| *way != Leaving::Stop);
        if guests == GuestReturn::Return && moved {
            check_can_take(host)?;
        }
        let mut copy = self.cluster.clone();
        if let Some(own) = own {
            self.follow(&mut copy, &Command::CancelRollout(own))?;
        }
        let left = mode.left.iter().copied().filter(|(machine, _)| self.cluster.machine(*machine).is_some());
        let (returning, staying): (Vec<_>, Vec<_>) = left.partition(|(machine, way)| match guests {
            GuestReturn::Stay => false,
            GuestReturn::Return => self.cluster.can_return_to(id, *machine, *way),
        });
        let staying = staying.into_iter().map(|(machine, _)| machine).collect();
        self.set(&mut copy, Change::ModeExited { host: id, staying });
        let mut draft = Draft::new(&copy, self.now);
        draft.plan_returns(id, &returning)?;
        self.changes.append(&mut draft.changes);
        Ok(())
    }

    /// Plans the return of machines: one event for each tenant and way. Stopped machines are started without one.
    fn plan_returns(&mut self, host: HostId, returning: &[(MachineId, Leaving)]) -> Result<(), Refusal> {
        let mut live = BTreeMap::<TenantId, Vec<MachineId>>::new();
        let mut redeployed = BTreeMap::<TenantId, Vec<MachineId>>::new();
        for (machine, way) in returning {
            let Some(tenant) = self.cluster.machine(*machine).map(|known| known.tenant) else { continue };
            match way {
                Leaving::Live => live.entry(tenant).or_default().push(*machine),
                Leaving::Redeploy => redeployed.entry(tenant).or_default().push(*machine),
                // A machine that other work is switching on or off is left to that work.
                Leaving::Stop => drop(self.change_power(*machine, PowerChange::Start)),
            }
        }
        for (way, tenants) in [(ReturnWay::Live, live), (ReturnWay::Redeploy, redeployed)] {
            for machines in tenants.values() {
                self.plan(Cause::HostReturn { host, way }, machines)?;
            }
        }
        Ok(())
    }

    /// Withdraws the announced returns of machines to a host. Gives the machines, and the way in which they had left.
    pub(super) fn withdraw_returns(&mut self, id: HostId) -> Vec<(MachineId, Leaving)> {
        let cluster = self.cluster;
        let mut away = Vec::new();
        for work in cluster.returns_to(id).filter(|work| work.wait().is_some()) {
            let is_redeploy = matches!(work.plan.cause, Cause::HostReturn { way: ReturnWay::Redeploy, .. });
            let way = if is_redeploy { Leaving::Redeploy } else { Leaving::Live };
            away.extend(work.plan.machines().map(|machine| (machine, way)));
            self.withdraw_all(work, Withdrawal::Cancelled);
        }
        away
    }

    /// The unfinished rollout that empties a host in maintenance mode. Refuses while its work is in progress.
    fn own_rollout(&self, host: &Host) -> Result<Option<RolloutId>, Refusal> {
        if self.cluster.mode_work(host).is_some_and(|work| work.wait().is_none()) {
            return Err(Refusal::MaintenanceUnderWay(host.name.clone()));
        }
        let own = host.mode.as_deref().and_then(|mode| mode.rollout);
        Ok(own.filter(|own| self.cluster.rollout(*own).is_some()))
    }

    /// Decides a command after the earlier ones of this decision, which the copy includes.
    fn follow(&mut self, copy: &mut Cluster, command: &Command) -> Result<(), Refusal> {
        for change in copy.decide(self.now, command)? {
            self.set(copy, change);
        }
        Ok(())
    }

    fn set(&mut self, copy: &mut Cluster, change: Change) {
        copy.evolve(self.now, &change);
        self.changes.push(change);
    }
}

/// Machines return only to a host that may take machines.
fn check_can_take(host: &Host) -> Result<(), Refusal> {
    if host.health != Health::Healthy {
        return Err(Refusal::HostNotHealthy(host.name.clone()));
    }
    if host.attention == HostAttention::Needed {
        return Err(Refusal::HostNeedsAttention(host.name.clone()));
    }
    Ok(())
}

/// The work that empties the host. A step that an earlier command asked for is kept until it has been done.
fn task(
    mode: Option<&MaintenanceMode>,
    leaving: Leaving,
    seconds: Option<NonZeroU16>,
    wish: &StepWish,
) -> HostTask {
    let work = |operation| {
        let kind = HostWork::Maintenance { leaving, operation };
        HostTask { seconds, ..HostTask::from(kind) }
    };
    match wish {
        StepWish::Asked { operation, text } => work(*operation).with_step(text.clone()),
        StepWish::Declined => work(HostOperation::Update),
        StepWish::Unchanged => {
            let earlier = mode.filter(|mode| mode.step != ModeStep::Done).map(|mode| &mode.task);
            let operation = earlier.and_then(HostTask::operation);
            let text = earlier.and_then(|task| task.step.as_deref()).and_then(|step| step.text.clone());
            operation.map_or_else(|| work(HostOperation::Update), |operation| work(operation).with_step(text))
        }
    }
}
