//! Application of changes: a table of contents of everything that can happen to the state.
//!
//! It writes, cannot fail, and decides nothing. A change about an object that no longer exists has no effect.

mod capacity;
mod fencing;
mod fleet;
mod health_gate;
mod host_mode;
mod host_step;
mod notice;
mod rollouts;
mod room;
mod scale_sets;
mod tenant_windows;
mod unfinished;
mod work;

use forewarn_types::{Now, Steady, TenantId};

use crate::change::{Change, Effect};
use crate::cluster::Cluster;
use crate::maintenance::Hold;
use crate::policy::{Brake, EnrolmentRule, Settings};
use crate::rollout::Standing;
use crate::tenant::Enrolment;

impl Cluster {
    /// Applies a decided change, new or replayed, and returns the effects that the shell performs once the change is
    /// durable.
    #[allow(clippy::too_many_lines, reason = "one arm for each change")]
    pub fn evolve(&mut self, now: Now, change: &Change) -> Vec<Effect> {
        let mut effects = Vec::new();
        let out = &mut effects;
        match change {
            Change::SeedSet(seed) => self.replace_seed(*seed),
            Change::HostAdmitted { host, name, zone } => self.host_admitted(*host, name, *zone),
            Change::HostRemoved(host) => self.host_removed(*host),
            Change::HealthChanged { host, health } => self.health_changed(*host, *health),
            Change::TenantAdmitted { tenant, name, shape, policy } => {
                self.tenant_admitted(*tenant, name, *shape, *policy, out);
            }
            Change::PolicyChanged { tenant, policy } => self.policy_changed(*tenant, *policy),
            Change::WindowsChanged { owner, windows } => self.windows_changed(*owner, windows),
            Change::TenantRemoved(tenant) => self.tenant_removed(*tenant, out),
            Change::ScaleSetAdmitted { scale_set, new } => self.scale_set_admitted(*scale_set, new),
            Change::ModelChanged { scale_set, version, model } => {
                self.model_changed(*scale_set, *version, *model);
            }
            Change::UpgradePolicyChanged { scale_set, upgrade } => {
                self.upgrade_policy_changed(*scale_set, *upgrade);
            }
            Change::BatchUpgraded(scale_set) => self.set_rolling(*scale_set, Some(now)),
            Change::RollingEnded(scale_set) => self.set_rolling(*scale_set, None),
            Change::ScaleSetPolicyChanged { scale_set, policy } => {
                self.scale_set_policy_changed(*scale_set, *policy);
            }
            Change::ScaleSetRemoved(scale_set) => self.scale_set_removed(*scale_set),
            Change::MachineAdmitted { machine, new } => self.machine_admitted(*machine, new),
            Change::ProfileChanged { machine, model_version, profile } => {
                self.profile_changed(*machine, *model_version, *profile);
            }
            Change::MachineForgotten(machine) => self.machine_forgotten(*machine, out),
            Change::MachineMoved { machine, to } => self.machine_moved(*machine, *to),
            Change::CapacityChanged { host, capacity } => self.capacity_changed(*host, *capacity),
            Change::MachineResized { machine, size } => self.machine_resized(*machine, *size),
            Change::InstancesResized { scale_set, size } => self.instances_resized(*scale_set, *size),
            Change::RolloutPlanned { rollout, work, terms, hosts } => {
                self.rollout_planned(now, *rollout, work, terms, hosts);
            }
            Change::RolloutWaits { rollout, standing } => self.set_standing(*rollout, *standing),
            Change::RolloutPaused { rollout, why } => self.rollout_paused(*rollout, *why),
            Change::RolloutResumed(rollout) => self.rollout_resumed(*rollout, out),
            Change::RolloutChanged { rollout, terms, added, removed } => {
                self.rollout_changed(*rollout, terms, added, removed, out);
            }
            Change::RolloutEnded { rollout, how } => self.rollout_ended(now, *rollout, *how, out),
            Change::Planned(plan) => self.planned(plan, out),
            Change::Approved { tenant, event, approval } => self.approved(*tenant, *event, *approval),
            Change::Waits { maintenance, wait } => self.set_wait(*maintenance, *wait),
            Change::NoticeExtended { maintenance, not_before, steady_due } => {
                self.notice_extended(*maintenance, *not_before, *steady_due, out);
            }
            Change::Started { maintenance, cause, actions } => {
                self.started(now, *maintenance, *cause, actions, out);
            }
            Change::Withdrawn { maintenance, tenants, why } => {
                self.withdrawn(now, *maintenance, tenants, *why, out);
            }
            Change::Completed { maintenance, target, report } => {
                self.completed(now, *maintenance, *target, *report, out);
            }
            Change::HostAdvanced { maintenance, host, actions } => {
                self.host_advanced(now, *maintenance, *host, actions, out);
            }
            Change::Suspended { maintenance, target } => self.suspended(*maintenance, *target),
            Change::Retried { maintenance, target } => self.retried(*maintenance, *target, out),
            Change::FenceChanged { host, fence } => self.fence_changed(*host, *fence, out),
            Change::AttentionChanged { host, attention } => self.attention_changed(*host, *attention),
            Change::ModeEntered { host, work, rollout, away } => {
                self.mode_entered(now, *host, (work, *rollout), away);
            }
            Change::ModeExited { host, staying: _ } => self.mode_exited(*host),
            Change::Heard { tenant, at } => self.set_enrolment(*tenant, Enrolment::heard(*at)),
            Change::Enrolled(tenant) => {
                self.set_enrolment(*tenant, Enrolment::heard(now.steady));
                out.push(Effect::Publish(*tenant));
            }
            Change::Disabled(tenant) => {
                self.set_enrolment(*tenant, Enrolment::Disabled);
                out.push(Effect::Publish(*tenant));
            }
            Change::Polled(machine) => self.polled(*machine, out),
            Change::BrakeSet(brake) => self.brake_set(*brake),
            Change::SettingsChanged(settings) => self.settings_changed(now, *settings, out),
        }
        effects
    }

    fn brake_set(&mut self, brake: Brake) {
        self.brake = brake;
        if brake == Brake::Off {
            self.retry_held(Hold::Brake);
            self.recheck_rollouts(|rollout| rollout.standing == Standing::Brake);
        }
    }

    /// Another rule of enrolment applies to every tenant at once. Tenants that it enrols are published.
    fn settings_changed(&mut self, now: Now, settings: Settings, out: &mut Vec<Effect>) {
        let rule = settings.enrolment;
        let is_new_rule = std::mem::replace(&mut self.settings, settings).enrolment != rule;
        if !is_new_rule {
            return;
        }
        let enrolments: Vec<_> = self.tenants.iter().map(|(id, tenant)| (id, tenant.enrolment)).collect();
        for (id, enrolment) in enrolments {
            self.set_enrolment(id, enrolment.under(rule, now.steady));
            if enrolment == Enrolment::Disabled && rule == EnrolmentRule::Always {
                out.push(Effect::Publish(id));
            }
        }
    }

    fn set_enrolment(&mut self, id: TenantId, enrolment: Enrolment) {
        self.forget_silence(id);
        if let Some(tenant) = self.tenants.get_mut(&id) {
            tenant.enrolment = enrolment;
        }
        self.await_silence(id);
    }

    /// Schedules a silence check for a tenant without visible events.
    fn await_silence(&mut self, id: TenantId) {
        if let Some(at) = self.silent_at(id)
            && self.tenants.get(&id).is_some_and(|tenant| tenant.events().is_empty())
        {
            self.agenda.add_silence(at, id);
        }
    }

    fn forget_silence(&mut self, id: TenantId) {
        if let Some(at) = self.silent_at(id) {
            self.agenda.remove_silence(at, id);
        }
    }

    fn silent_at(&self, id: TenantId) -> Option<Steady> {
        match self.tenants.get(&id)?.enrolment {
            Enrolment::Enabled { silent_at } => Some(silent_at),
            Enrolment::Disabled | Enrolment::BySetting => None,
        }
    }
}
