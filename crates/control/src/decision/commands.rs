//! Commands by name: all of them are carried out, or none.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use forewarn_lifecycle::{Change, MachineId};

use super::HypervisorKind;
use super::draft::Draft;
use crate::command::{MachineDetails, NamedCommand, Resolved};
use crate::error::{ControlError, RefusedCommand};
use crate::placement::ScaleSetCommand;
use crate::record::{ClusterEntry, Entry, Record};
use crate::request::{CommandBatch, HostNames, PermitCheck, Reply, RequestContext};
use crate::state::{ClusterState, ControlState, Effect};
use crate::stream::{ClusterId, Stream};
use crate::view::{Outcome, outcome};

/// Details of a machine that commands have set.
struct DetailsDraft {
    /// Index of the command.
    command: usize,
    details: MachineDetails,
}

impl Draft<'_> {
    /// Carries out commands by name, and their immediate consequences.
    pub(super) fn command_batch(
        &mut self,
        id: ClusterId,
        batch: &CommandBatch,
    ) -> Result<Reply, ControlError> {
        let CommandBatch { commands, context } = batch;
        self.check_token(context)?;
        let single = self.resolve_single(id, commands);
        self.check_permit(id, commands, single.as_ref(), context)?;
        if let Some(outcome) = self.receipt(Stream::Cluster(id), context)? {
            return Ok(Reply::Repeated(outcome));
        }
        self.check_revision(context)?;
        Ok(Reply::Outcome(self.carry_out_for(id, commands, single.transpose()?, context)?))
    }

    /// Turns a change of a scale set into commands, and carries them out.
    pub(super) fn scale_set_command(
        &mut self,
        id: ClusterId,
        command: &ScaleSetCommand,
        context: &RequestContext,
    ) -> Result<Reply, ControlError> {
        self.check_token(context)?;
        if let Some(outcome) = self.receipt(Stream::Cluster(id), context)? {
            return Ok(Reply::Repeated(outcome));
        }
        self.check_revision(context)?;
        let rules = self.rules(id)?;
        if let Some(PermitCheck { permit, .. }) = &context.permit {
            command.hosts().iter().try_for_each(|host| permit.check_host(rules, host))?;
        }
        let commands = command.commands(rules)?;
        let single = self.resolve_single(id, &commands);
        self.check_permit(id, &commands, single.as_ref(), context)?;
        Ok(Reply::Outcome(self.carry_out_for(id, &commands, single.transpose()?, context)?))
    }

    /// Resolves a command that is alone in its request: the permit, the audit entry and the decision use the same
    /// result. Several commands are resolved one after the other, because each may name objects that earlier ones
    /// have made.
    pub(super) fn resolve_single(
        &self,
        id: ClusterId,
        commands: &[NamedCommand],
    ) -> Option<Result<Resolved, ControlError>> {
        let [only] = commands else { return None };
        Some(self.resolve(id, only))
    }

    /// Carries out commands of a caller, with an entry of the audit log and a receipt.
    pub(super) fn carry_out_for(
        &mut self,
        id: ClusterId,
        commands: &[NamedCommand],
        single: Option<Resolved>,
        context: &RequestContext,
    ) -> Result<Outcome, ControlError> {
        let entry = self.audit_commands(id, commands, single.as_ref().and_then(Resolved::machine), context);
        let own = self.carry_out_all(id, commands, single).map_err(|refused| refused.error)?;
        self.settle(id)?;
        self.attribution = super::attribution::Attribution::default();
        let decided = self.records.iter().filter_map(|record| change_of(id, record));
        let changes: Vec<_> = decided.cloned().collect();
        let outcome = outcome(self.rules(id)?, self.now(), &changes);
        let outcome = Outcome { changes: outcome.changes + own, entry, ..outcome };
        self.keep_receipt(Stream::Cluster(id), context, &outcome)?;
        Ok(outcome)
    }

    /// Carries out commands one after the other; the first may be resolved already. Returns the number of changes
    /// that the rules know nothing of.
    pub(super) fn carry_out_all(
        &mut self,
        id: ClusterId,
        commands: &[NamedCommand],
        mut first: Option<Resolved>,
    ) -> Result<usize, RefusedCommand> {
        let before = self.state.clone();
        let (mut described, mut changes) = (BTreeMap::new(), 0);
        for (index, command) in commands.iter().enumerate() {
            let refused = |error| RefusedCommand { index, error };
            let resolved = match first.take() {
                Some(resolved) => resolved,
                None => self.resolve(id, command).map_err(refused)?,
            };
            changes += self.carry_out(id, index, resolved, &mut described).map_err(refused)?;
        }
        self.check_addresses(&before, id, &described)?;
        Ok(changes)
    }

    fn resolve(&self, id: ClusterId, command: &NamedCommand) -> Result<Resolved, ControlError> {
        Ok(command.resolve(self.rules(id)?)?)
    }

    fn carry_out(
        &mut self,
        id: ClusterId,
        index: usize,
        resolved: Resolved,
        described: &mut BTreeMap<MachineId, DetailsDraft>,
    ) -> Result<usize, ControlError> {
        let cluster = self.cluster(id)?;
        match resolved {
            Resolved::Rules(command) => drop(self.change(id, &command)?),
            Resolved::Admit(command, details) => {
                for change in self.change(id, &command)? {
                    if let Change::MachineAdmitted { machine, .. } = change {
                        let details = MachineDetails { home: self.home_of(id, machine), ..details.clone() };
                        described.insert(machine, DetailsDraft { command: index, details: details.clone() });
                        self.write_in_cluster(id, ClusterEntry::Described { machine, details });
                    }
                }
            }
            Resolved::Describe(machine, change) => {
                let known = cluster.details_of(machine);
                let details = change.apply(known);
                if *known != details {
                    described.insert(machine, DetailsDraft { command: index, details: details.clone() });
                    self.write_in_cluster(id, ClusterEntry::Described { machine, details });
                    return Ok(1);
                }
            }
            Resolved::Site(change) => {
                let site = self.changed_site(id, cluster.site(), &change)?;
                if site != *cluster.site() {
                    self.write_in_cluster(id, ClusterEntry::Site(site));
                    return Ok(1);
                }
            }
            Resolved::Jam(machine) => return self.jam(id, machine),
        }
        Ok(0)
    }

    fn jam(&mut self, id: ClusterId, machine: MachineId) -> Result<usize, ControlError> {
        match self.environment.hypervisor {
            HypervisorKind::Program => Err(ControlError::NotPretending),
            HypervisorKind::Simulated => {
                self.effects.push(Effect::Jam(id, machine));
                Ok(usize::from(!self.environment.jammed.contains(&machine)))
            }
        }
    }

    /// Rejects a request whose token was revoked or has expired since the request arrived.
    pub(super) fn check_token(&self, context: &RequestContext) -> Result<(), ControlError> {
        let Some(number) = context.token else { return Ok(()) };
        let token = self.state.shared().find_token(number);
        let token = token.filter(|token| !token.is_expired(self.now().wall));
        token.map(drop).ok_or(ControlError::TokenGone)
    }

    /// Rejects a request that was planned for another state of the cluster.
    pub(super) fn check_revision(&self, context: &RequestContext) -> Result<(), ControlError> {
        match context.if_revision {
            Some(revision) if revision != self.environment.revision => Err(ControlError::Outdated),
            Some(_) | None => Ok(()),
        }
    }

    fn check_permit(
        &self,
        id: ClusterId,
        commands: &[NamedCommand],
        single: Option<&Result<Resolved, ControlError>>,
        context: &RequestContext,
    ) -> Result<(), ControlError> {
        let Some(PermitCheck { permit, hosts }) = &context.permit else { return Ok(()) };
        let rules = self.rules(id)?;
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
        before: &ControlState,
        id: ClusterId,
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
                match before.machine_at(&address) {
                    // The caller may not know of that cluster.
                    Some((other, _)) if other != id => {
                        return taken("a machine of another cluster".to_owned());
                    }
                    // A machine that was removed, or is described again, has released it.
                    Some((_, holder)) if holder != *machine && !again.contains(&holder) => {
                        let rules = self.state.cluster(id).map(ClusterState::rules);
                        if let Some(holder) = rules.and_then(|rules| rules.machine(holder)) {
                            return taken(holder.name.to_string());
                        }
                    }
                    Some(_) | None => {}
                }
            }
        }
        Ok(())
    }
}

/// The change of the rules of that cluster in a record.
fn change_of(id: ClusterId, record: &Record) -> Option<&Change> {
    match &record.entry {
        Entry::Cluster(of, ClusterEntry::Rules(change)) if *of == id => Some(change),
        Entry::Cluster(..) | Entry::Shared(_) => None,
    }
}
