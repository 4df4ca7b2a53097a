//! The commands that are put to a fleet: the same mix at every size, on tenants spread over the whole of it.
//!
//! What a host would do is done at once: every action that the rules ask for is reported as finished. One restart in
//! each cycle is approved by nobody, so it starts when its notice has run out.

use std::time::Instant;

use forewarn_lifecycle::simulator::{EmptyEnvironment, due};
use forewarn_lifecycle::{
    Action, Approver, Change, Cluster, Command, Effect, EventId, HostWork, MachineId, Now, Placement,
    PowerChange, Priority, Refusal, Report, RolloutTerms, Size, TenantId,
};

use crate::measured;
use crate::tally::{Kind, Tally};
use forewarn_bench::rules_fleet::{Block, told_of_deletion};

/// Far apart, so that neighbours in time are not neighbours in memory; a prime, so that every block has its turn.
const STRIDE: u32 = 6_173;
/// Between two scenes. A whole run stays within a day: nobody falls silent.
const MILLIS_PER_SCENE: i64 = 20_000;

/// A fleet under the mix.
pub(crate) struct Mix {
    cluster: Cluster,
    blocks: u32,
    millis: i64,
    tally: Tally,
    /// Announced by the last scene and not approved.
    announced: Vec<(TenantId, EventId)>,
    /// Asked for by the rules and not reported as finished.
    actions: Vec<Action>,
}

impl Mix {
    pub(crate) fn new(cluster: Cluster, blocks: u32) -> Self {
        let (announced, actions) = (Vec::new(), Vec::new());
        Self { cluster, blocks, millis: 0, tally: Tally::default(), announced, actions }
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    pub(crate) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Whole cycles, until at least that many commands have been measured.
    pub(crate) fn run(&mut self, commands: u32) -> Result<(), Refusal> {
        let mut cycle = 0;
        while self.tally.commands() < u64::from(commands) {
            self.cycle(cycle)?;
            cycle += 1;
        }
        Ok(())
    }

    fn cycle(&mut self, cycle: u32) -> Result<(), Refusal> {
        let block = Block(cycle.wrapping_mul(STRIDE) % self.blocks);
        self.restart(block.placement_group(), cycle)?;
        self.restart(block.cloud_service(cycle), cycle)?;
        self.redeploy(block.regular_machine(0))?;
        self.delete_and_admit(block.availability_set(cycle))?;
        self.evict_and_start(block.spot_machine(cycle))?;
        self.update_host(block, cycle)?;
        self.let_a_notice_run_out(block.regular_machine(1 + cycle % 11))
    }

    fn restart(&mut self, tenant: TenantId, cycle: u32) -> Result<(), Refusal> {
        let machine = self.machine(tenant, cycle)?;
        self.submit(Kind::Restart, &Command::Restart(machine))?;
        self.approve_and_settle()
    }

    fn redeploy(&mut self, tenant: TenantId) -> Result<(), Refusal> {
        let machine = self.machine(tenant, 0)?;
        self.submit(Kind::Redeploy, &Command::Redeploy(machine))?;
        self.approve_and_settle()
    }

    fn delete_and_admit(&mut self, tenant: TenantId) -> Result<(), Refusal> {
        let id = self.machine(tenant, 0)?;
        let machine = self.cluster.machine(id).ok_or(Refusal::NoSuchMachine)?.clone();
        self.submit(Kind::Delete, &Command::Delete(id))?;
        self.approve_and_settle()?;
        let (host, update_domain, fault_domain) = (machine.host, machine.update_domain, machine.fault_domain);
        let command = Command::AdmitMachine {
            tenant,
            name: machine.name,
            placement: Placement { host, update_domain, fault_domain, size: Size::NONE },
            priority: Priority::Regular,
            profile: told_of_deletion(),
        };
        self.submit(Kind::Admit, &command)
    }

    fn evict_and_start(&mut self, tenant: TenantId) -> Result<(), Refusal> {
        let machine = self.machine(tenant, 0)?;
        self.submit(Kind::Evict, &Command::Evict(machine))?;
        self.approve_and_settle()?;
        self.submit(Kind::Power, &Command::ChangePower { machine, change: PowerChange::Start })?;
        self.approve_and_settle()
    }

    fn update_host(&mut self, block: Block, cycle: u32) -> Result<(), Refusal> {
        let hosts = vec![block.host(cycle)];
        let rollout =
            Command::Rollout { work: HostWork::Update.into(), hosts, terms: RolloutTerms::default() };
        self.submit(Kind::HostUpdate, &rollout)?;
        self.approve_and_settle()
    }

    fn let_a_notice_run_out(&mut self, tenant: TenantId) -> Result<(), Refusal> {
        let machine = self.machine(tenant, 0)?;
        self.submit(Kind::Restart, &Command::Restart(machine))?;
        self.announced.clear();
        self.settle()
    }

    fn machine(&self, tenant: TenantId, index: u32) -> Result<MachineId, Refusal> {
        let machines = self.cluster.tenant(tenant).ok_or(Refusal::NoSuchTenant)?.machines();
        machines.iter().copied().cycle().nth(index as usize % 50).ok_or(Refusal::NoSuchMachine)
    }

    /// Every tenant that was just told something approves it, and what then starts is done.
    fn approve_and_settle(&mut self) -> Result<(), Refusal> {
        for (tenant, event) in std::mem::take(&mut self.announced) {
            let command = Command::Approve { tenant, events: vec![event], by: Approver::Owner };
            self.submit(Kind::Approve, &command)?;
        }
        self.settle()
    }

    /// Everything that was started ends, time passes, and everything that is then due is done.
    fn settle(&mut self) -> Result<(), Refusal> {
        self.complete()?;
        self.millis += MILLIS_PER_SCENE;
        while let Some(command) = due(&self.cluster, self.now(), &mut EmptyEnvironment) {
            self.submit(Kind::Tick, &command)?;
        }
        self.complete()
    }

    fn complete(&mut self) -> Result<(), Refusal> {
        for Action { maintenance, target, .. } in std::mem::take(&mut self.actions) {
            let command = Command::Complete { maintenance, target, report: Report::Done };
            self.submit(Kind::Complete, &command)?;
        }
        Ok(())
    }

    fn submit(&mut self, kind: Kind, command: &Command) -> Result<(), Refusal> {
        let now = self.now();
        let begin = Instant::now();
        let outcome = measured(&mut self.cluster, now, command)?;
        self.tally.add(kind, outcome.changes.len(), begin.elapsed());
        outcome.changes.iter().for_each(|change| self.note_announcements(change));
        self.actions.extend(outcome.effects.into_iter().filter_map(action_of));
        Ok(())
    }

    fn note_announcements(&mut self, change: &Change) {
        if let Change::Planned(plan) = change {
            let told =
                plan.parts.iter().filter_map(|part| Some((part.tenant, part.announcement.as_ref()?.id)));
            self.announced.extend(told);
        }
    }

    pub(crate) fn now(&self) -> Now {
        Now::at_millis(self.millis)
    }
}

fn action_of(effect: Effect) -> Option<Action> {
    match effect {
        Effect::Perform(action) => Some(action),
        Effect::Publish(_) | Effect::Unpublish(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forewarn_bench::rules_fleet;

    #[test]
    fn the_mix_leaves_a_fleet_as_large_as_it_was() {
        let mut mix = Mix::new(rules_fleet::build(10).unwrap(), 10);
        mix.run(25_000).unwrap();
        assert_eq!(mix.cluster.machines().count(), 1_000);
        assert_eq!(mix.cluster.tenants().count(), 210);
        assert!(mix.cluster.maintenances().count() < 50, "only notices that have not run out are left");
        assert!(mix.millis < 86_400_000, "longer than a day: {}", mix.millis);
    }
}
