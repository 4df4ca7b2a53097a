//! Decisions: a table of contents of the rules.
//!
//! Reads the state, changes nothing, may refuse. An empty list of changes means that the state already is as requested.

mod approval;
mod capacity;
mod draft;
mod ending;
mod enrolment;
mod fencing;
mod fleet;
mod group;
mod health_gate;
mod host_mode;
mod host_step;
mod hosts;
mod notice;
mod outside;
mod rollouts;
mod scale_sets;
mod start;
mod tenant_windows;
mod unfinished;
mod user;

use forewarn_types::Now;

use crate::change::Change;
use crate::cluster::Cluster;
use crate::command::Command;
use crate::refusal::Refusal;

use draft::Draft;

impl Cluster {
    /// Decides the changes of a command.
    ///
    /// # Errors
    /// The rule that refuses the command, with a message for people.
    #[allow(clippy::too_many_lines, reason = "one arm for each command")]
    pub fn decide(&self, now: Now, command: &Command) -> Result<Vec<Change>, Refusal> {
        let mut draft = Draft::new(self, now);
        match command {
            Command::AdmitHost { name, zone, capacity } => draft.admit_host(name, *zone, *capacity),
            Command::RemoveHost(host) => draft.remove_host(*host),
            Command::AdmitStandalone { name, placement, priority, profile, policy } => {
                draft.admit_standalone(name, *placement, *priority, *profile, *policy)
            }
            Command::AdmitTenant { name, set, policy } => draft.admit_tenant(name, *set, *policy),
            Command::ChangePolicy { tenant, policy } => draft.change_policy(*tenant, *policy),
            Command::RemoveTenant(tenant) => draft.remove_tenant(*tenant),
            Command::AdmitMachine { tenant, name, placement, priority, profile } => {
                draft.admit_machine(*tenant, name, *placement, *priority, *profile)
            }
            Command::ChangeProfile { machine, profile } => draft.change_profile(*machine, *profile),
            Command::AdmitScaleSet { name, orchestration, priority, upgrade, model, policy, size } => {
                draft.admit_scale_set(name, (*orchestration, *size), *priority, *upgrade, *model, *policy)
            }
            Command::AdmitInstance { scale_set, placement, number } => {
                draft.admit_instance(*scale_set, *placement, *number)
            }
            Command::ChangeModel { scale_set, model } => draft.change_model(*scale_set, *model),
            Command::ReviseModel(scale_set) => draft.revise_model(*scale_set),
            Command::ChangeUpgradePolicy { scale_set, upgrade } => {
                draft.change_upgrade_policy(*scale_set, *upgrade)
            }
            Command::ChangeScaleSetPolicy { scale_set, policy } => {
                draft.change_scale_set_policy(*scale_set, *policy)
            }
            Command::ChangeWindows { owner, windows } => draft.change_windows(*owner, windows),
            Command::UpgradeInstance(machine) => draft.upgrade_instance(*machine),
            Command::Forget(machine) => draft.forget(*machine),
            Command::Move { machine, to, planned } => draft.record_move(*machine, *to, *planned),
            Command::ChangeCapacity { host, capacity } => draft.change_capacity(*host, *capacity),
            Command::Resize { machine, size } => draft.resize(*machine, *size),
            Command::ResizeInstances { scale_set, size } => draft.resize_instances(*scale_set, *size),
            Command::RemoveScaleSet(scale_set) => draft.remove_scale_set(*scale_set),
            Command::Restart(machine) => draft.restart(*machine),
            Command::Redeploy(machine) => draft.redeploy(*machine),
            Command::Delete(machine) => draft.delete(*machine),
            Command::Reimage(machine) => draft.reimage(*machine),
            Command::Evict(machine) => draft.evict(*machine),
            Command::ChangePower { machine, change } => draft.change_power(*machine, *change),
            Command::Rollout { work, hosts, terms } => draft.rollout(work, hosts, terms),
            Command::PauseRollout { rollout, announced } => draft.pause_rollout(*rollout, *announced),
            Command::ResumeRollout(rollout) => draft.resume_rollout(*rollout),
            Command::ChangeRollout { rollout, terms, add, remove } => {
                draft.change_rollout(*rollout, terms, add, remove)
            }
            Command::CancelRollout(rollout) => draft.cancel_rollout(*rollout),
            Command::DegradeHost { host, fails_in } => draft.degrade_host(*host, *fails_in),
            Command::FailHost(host) => draft.fail_host(*host),
            Command::FailUnfencedHost(host) => draft.fail_unfenced_host(*host),
            Command::FailFencedHost(host) => draft.fail_fenced_host(*host),
            Command::RecoverHost(host) => draft.recover_host(*host),
            Command::Approve { tenant, events, by } => draft.approve(*tenant, events, *by),
            Command::Cancel(maintenance) => draft.cancel(*maintenance),
            Command::ForceStart(maintenance) => draft.force_start(*maintenance),
            Command::Complete { maintenance, target, report } => {
                draft.complete(*maintenance, *target, *report)
            }
            Command::Suspend { maintenance, target } => draft.suspend(*maintenance, *target),
            Command::Retry(maintenance) => draft.retry(*maintenance),
            Command::GiveUp(maintenance) => draft.give_up(*maintenance),
            Command::RetryHost(host) => draft.retry_host(*host),
            Command::CompleteHost { host, report } => draft.complete_host(*host, *report),
            Command::ClearHost(host) => draft.clear_host(*host),
            Command::EnterMaintenance { host, leaving, seconds, step } => {
                draft.enter_maintenance(*host, *leaving, *seconds, step)
            }
            Command::ExitMaintenance { host, guests } => draft.exit_maintenance(*host, *guests),
            Command::Enrol(tenant) => draft.enrol(*tenant),
            Command::Heard { tenant, ago } => draft.heard(*tenant, *ago),
            Command::Silent(tenant) => draft.silent(*tenant),
            Command::Polled(machine) => draft.polled(*machine),
            Command::Brake(brake) => draft.set_brake(*brake),
            Command::ChangeSettings(settings) => draft.change_settings(*settings),
            Command::Tick => draft.tick(),
            Command::EnsureNotice { maintenances, exposure } => {
                draft.ensure_notice(maintenances, *exposure);
                Ok(())
            }
        }?;
        Ok(draft.changes)
    }
}
