//! Commands by name: all of them are carried out, or none.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use forewarn_lifecycle::{Change, Command, MachineId};

use super::draft::{ClusterDraft, check_token};
use super::{Fencing, HypervisorKind};
use crate::command::{MachineDetails, NamedCommand, Resolved};
use crate::effect::Effect;
use crate::error::{ControlError, RefusedCommand};
use crate::placement::ScaleSetCommand;
use crate::record::{ClusterEntry, Entry, Record};
use crate::request::{CommandBatch, HostNames, LARGE_COMMANDS_MIN, PermitCheck, Reply, RequestContext};
use crate::state::ClusterState;
use crate::view::{Outcome, outcome};

/// Details of a machine that commands have set.
struct DetailsDraft {
    /// Index of the command.
    command: usize,
    details: MachineDetails,
}

impl ClusterDraft<'_> {
    /// Carries out commands by name, and their immediate consequences.
    pub(super) fn command_batch(&mut self, batch: &CommandBatch) -> Result<Reply, ControlError> {
        let CommandBatch { commands, context } = batch;
        check_token(self.shared, self.now(), context)?;
        let single = self.resolve_single(commands);
        self.check_permit(commands, single.as_ref(), context)?;
        if let Some(outcome) = self.receipt(context)? {
            return Ok(Reply::Repeated(outcome));
        }
        self.draft.check_revision(context)?;
        self.carry_out_once(commands, single.transpose()?, context)
    }

    /// Turns a change of a scale set into commands, and carries them out.
    pub(super) fn scale_set_command(
        &mut self,
        command: &ScaleSetCommand,
        context: &RequestContext,
    ) -> Result<Reply, ControlError> {
        check_token(self.shared, self.now(), context)?;
        if let Some(outcome) = self.receipt(context)? {
            return Ok(Reply::Repeated(outcome));
        }
        self.draft.check_revision(context)?;
        let rules = self.rules();
        if let Some(PermitCheck { permit, .. }) = &context.permit {
            command.hosts().iter().try_for_each(|host| permit.check_host(rules, host))?;
        }
        let commands = command.commands(rules)?;
        let single = self.resolve_single(&commands);
        self.check_permit(&commands, single.as_ref(), context)?;
        self.carry_out_once(&commands, single.transpose()?, context)
    }

    /// Resolves a command that is alone in its request: the permit, the audit entry and the decision use the same
    /// result. Several commands are resolved one after the other, because each may name objects that earlier ones
    /// have made.
    pub(super) fn resolve_single(&self, commands: &[NamedCommand]) -> Option<Result<Resolved, ControlError>> {
        let [only] = commands else { return None };
        Some(self.resolve(only))
    }

    /// Carries out commands of a caller, with an entry of the audit log and a receipt.
    fn carry_out_once(
        &mut self,
        commands: &[NamedCommand],
        single: Option<Resolved>,
        context: &RequestContext,
    ) -> Result<Reply, ControlError> {
        let outcome = self.carry_out_for(commands, single, context)?;
        self.keep_receipt(context, &outcome, None)?;
        Ok(Reply::Outcome(outcome))
    }

    /// Carries out commands of a caller, with an entry of the audit log.
    pub(super) fn carry_out_for(
        &mut self,
        commands: &[NamedCommand],
        single: Option<Resolved>,
        context: &RequestContext,
    ) -> Result<Outcome, ControlError> {
        let entry = self.audit_commands(commands, single.as_ref().and_then(Resolved::machine), context);
        if commands.len() >= LARGE_COMMANDS_MIN {
            self.collect_admissions();
        }
        let own = self.carry_out_all(commands, single).map_err(|refused| refused.error)?;
        self.audit_admissions();
        self.settle()?;
        self.check_notice(context)?;
        self.draft.attribution = super::attribution::Attribution::default();
        let changes = self.draft.records.iter().filter_map(change_of);
        let (rules, permit) = (self.rules(), context.permit.as_ref());
        let sees = |tenant| permit.is_none_or(|check| check.permit.sees(rules, tenant));
        let outcome = outcome(rules, self.now(), changes, &sees);
        Ok(Outcome { changes: outcome.changes + own, entry, ..outcome })
    }

    /// Carries out commands one after the other; the first may be resolved already. Returns the number of changes
    /// that the rules know nothing of.
    pub(super) fn carry_out_all(
        &mut self,
        commands: &[NamedCommand],
        mut first: Option<Resolved>,
    ) -> Result<usize, RefusedCommand> {
        let before = Arc::clone(&self.draft.state);
        let (mut described, mut changes) = (BTreeMap::new(), 0);
        for (index, command) in commands.iter().enumerate() {
            let refused = |error| RefusedCommand { index, error };
            let resolved = match first.take() {
                Some(resolved) => resolved,
                None => self.resolve(command).map_err(refused)?,
            };
            changes += self.carry_out(index, resolved, &mut described).map_err(refused)?;
        }
        self.check_addresses(&before, &described)?;
        Ok(changes)
    }

    fn resolve(&self, command: &NamedCommand) -> Result<Resolved, ControlError> {
        let resolved = command.resolve(self.rules())?;
        let needs_fence = self.draft.environment.hypervisor == HypervisorKind::Program(Fencing::Required);
        if let Resolved::Rules(Command::FailHost(host)) = &resolved
            && needs_fence
        {
            return Ok(Resolved::Rules(Command::FailUnfencedHost(*host)));
        }
        Ok(resolved)
    }

    fn carry_out(
        &mut self,
        index: usize,
        resolved: Resolved,
        described: &mut BTreeMap<MachineId, DetailsDraft>,
    ) -> Result<usize, ControlError> {
        let cluster = self.cluster();
        match resolved {
            Resolved::Rules(command) => drop(self.change(&command)?),
            Resolved::Fail(command, reason) => {
                let reason = self.draft.attribution.reason.replace(reason);
                self.change(&command)?;
                self.draft.attribution.reason = reason;
            }
            Resolved::Admit(command, details) => {
                for change in self.change(&command)? {
                    if let Change::MachineAdmitted { machine, .. } = change {
                        let details = MachineDetails { home: self.home_of(machine), ..details.clone() };
                        // Most instances of large sets have none: their record would be as large as the machine.
                        if details != MachineDetails::default() {
                            described
                                .insert(machine, DetailsDraft { command: index, details: details.clone() });
                            self.write(ClusterEntry::Described { machine, details });
                        }
                    }
                }
            }
            Resolved::Describe(machine, change) => {
                let known = cluster.details_of(machine);
                let details = change.apply(known);
                if *known != details {
                    described.insert(machine, DetailsDraft { command: index, details: details.clone() });
                    self.write(ClusterEntry::Described { machine, details });
                    return Ok(1);
                }
            }
            Resolved::Site(change) => {
                let site = self.changed_site(cluster.site(), &change)?;
                if site != *cluster.site() {
                    self.write(ClusterEntry::Site(site));
                    return Ok(1);
                }
            }
            Resolved::Jam(machine) => return self.jam(machine),
        }
        Ok(0)
    }

    fn jam(&mut self, machine: MachineId) -> Result<usize, ControlError> {
        match self.draft.environment.hypervisor {
            HypervisorKind::Program(_) => Err(ControlError::NotPretending),
            HypervisorKind::Simulated => {
                self.draft.effects.push(Effect::Jam(self.id, machine));
                Ok(usize::from(!self.draft.environment.jammed.contains(&machine)))
            }
        }
    }

    fn check_permit(
        &self,
        commands: &[NamedCommand],
        single: Option<&Result<Resolved, ControlError>>,
        context: &RequestContext,
    ) -> Result<(), ControlError> {
        let Some(PermitCheck { permit, hosts }) = &context.permit else { return Ok(()) };
        let rules = self.rules();
        if let ([only], Some(Ok(resolved))) = (commands, single) {
            permit.check_resolved(only, resolved, rules)?;
            return match hosts {
                HostNames::FromCaller => Ok(permit.check_resolved_host(resolved, rules)?),
                HostNames::ChosenHere => Ok(()),
            };
        }
        let check = |command: &NamedCommand| match hosts {
            HostNames::FromCaller => permit.check_request(command, rules),
            HostNames::ChosenHere => permit.check_command(command, rules),
        };
        Ok(commands.iter().try_for_each(check)?)
    }

    /// Checks that each address belongs to one machine after all commands.
    fn check_addresses(
        &self,
        before: &ClusterState,
        described: &BTreeMap<MachineId, DetailsDraft>,
    ) -> Result<(), RefusedCommand> {
        let mut claimed: BTreeMap<IpAddr, MachineId> = BTreeMap::new();
        let again: BTreeSet<_> = described.keys().copied().collect();
        for (machine, DetailsDraft { command, details }) in described {
            for address in details.addresses.iter().map(IpAddr::to_canonical) {
                let taken = |machine: String| {
                    let error = ControlError::AddressTaken { address, machine };
                    Err(RefusedCommand { index: *command, error })
                };
                if claimed.insert(address, *machine).is_some_and(|other| other != *machine) {
                    return taken("another machine of the same request".to_owned());
                }
                // A machine that was removed, or is described again, has released it.
                if let Some(holder) = before.machine_at(&address)
                    && holder != *machine
                    && !again.contains(&holder)
                    && let Some(holder) = self.rules().machine(holder)
                {
                    return taken(holder.name.to_string());
                }
            }
        }
        Ok(())
    }
}

/// The change of the rules in a record.
pub(super) fn change_of(record: &Record) -> Option<&Change> {
    match &record.entry {
        Entry::Cluster(_, ClusterEntry::Rules(change)) => Some(change),
        Entry::Cluster(..) | Entry::Shared(_) => None,
    }
}
