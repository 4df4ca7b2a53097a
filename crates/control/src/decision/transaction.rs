//! Transactions: commands, resources and an operation in one commit.

use forewarn_lifecycle::{EventId, MachineId, MaintenanceId, Stage};

use super::draft::{ClusterDraft, check_token};
use crate::command::{CommandError, MachineDetails, find_machine, find_scale_set, find_tenant};
use crate::error::ControlError;
use crate::limits::OPERATION_WAITS_MAX;
use crate::record::ClusterEntry;
use crate::refusal::Refusal;
use crate::request::{LinkTarget, Reply, RequestContext, ResourceWrite, Transaction, TransactionOutcome};
use crate::resources::{Leaving, Link, NewOperation, Operation, ResourceCommand};

/// Names of operations are made like ids of events, of a secret of their own.
const OPERATIONS: u8 = 3;

impl ClusterDraft<'_> {
    pub(super) fn transaction(
        &mut self,
        transaction: &Transaction,
        context: &RequestContext,
    ) -> Result<Reply, ControlError> {
        check_token(self.shared, self.now(), context)?;
        // A request that was carried out has changed the revision.
        if let Some(repeated) = self.receipt_of_transaction(context)? {
            return Ok(Reply::Transacted(repeated));
        }
        self.draft.check_revision(context)?;
        let Transaction { commands, writes, asked, operation } = transaction;
        self.check_room(writes)?;
        if let Some(about) = operation {
            self.cluster().resources().check_room_for_operation(about, commands.len())?;
        }
        let context = RequestContext { asked: asked.clone(), ..context.clone() };
        let single = self.resolve_single(commands).transpose()?;
        let outcome = self.carry_out_for(commands, single, &context)?;
        writes.iter().try_for_each(|write| self.write_resource(write))?;
        let open = |about: &String| self.open_operation((about, context.token), &outcome.work);
        let operation = operation.as_ref().map(open).transpose()?;
        self.keep_receipt(&context, &outcome, operation.as_ref())?;
        Ok(Reply::Transacted(TransactionOutcome { outcome, operation }))
    }

    fn check_room(&self, writes: &[ResourceWrite]) -> Result<(), Refusal> {
        let put = writes.iter().filter_map(|write| match write {
            ResourceWrite::Put { id, body, notes, .. } => Some((id, body, notes)),
            ResourceWrite::Remove(_) | ResourceWrite::Leave(_) => None,
        });
        self.cluster().resources().check_room(put)
    }

    fn write_resource(&mut self, write: &ResourceWrite) -> Result<(), ControlError> {
        let (command, link) = match write {
            ResourceWrite::Put { id, link, body, notes } => {
                self.check_claim_of_resource(id, body)?;
                let link = link.as_ref().map(|link| self.linked(link)).transpose()?;
                let (id, body, notes) = (id.clone(), body.clone(), notes.clone());
                (ResourceCommand::Put { id, link, body, notes }, link)
            }
            ResourceWrite::Remove(id) => (ResourceCommand::Remove(id.clone()), None),
            ResourceWrite::Leave(id) => {
                (ResourceCommand::Mark { id: id.clone(), leaving: Leaving::Leaves }, None)
            }
        };
        self.change_resources(&command)?;
        link.into_iter().try_for_each(|link| self.set_resource_groups(link))
    }

    /// Machines show the resource group of their own resource, or of that of their scale set.
    fn set_resource_groups(&mut self, link: Link) -> Result<(), ControlError> {
        for machine in self.machines_of(link)? {
            let known = self.cluster().details_of(machine);
            let home = self.home_of(machine);
            if home.is_some() && known.home != home {
                let details = MachineDetails { home, ..known.clone() };
                self.write(ClusterEntry::Described { machine, details });
            }
        }
        Ok(())
    }

    fn machines_of(&self, link: Link) -> Result<Vec<MachineId>, ControlError> {
        let rules = self.rules();
        Ok(match link {
            Link::Machine(machine) => vec![machine],
            Link::Tenant(_) => Vec::new(),
            Link::ScaleSet(set) => {
                let groups = rules.scale_set(set).map_or(&[][..], |set| &set.groups);
                let tenants = groups.iter().filter_map(|group| rules.tenant(*group));
                tenants.flat_map(|tenant| tenant.machines().iter().copied()).collect()
            }
        })
    }

    fn linked(&self, link: &LinkTarget) -> Result<Link, ControlError> {
        let rules = self.rules();
        let unknown = |unknown| ControlError::from(CommandError::Unknown(unknown));
        Ok(match link {
            LinkTarget::Known(link) => *link,
            LinkTarget::Machine(name) => Link::Machine(find_machine(rules, name).map_err(unknown)?),
            LinkTarget::Tenant(name) => Link::Tenant(find_tenant(rules, name).map_err(unknown)?),
            LinkTarget::ScaleSet(name) => Link::ScaleSet(find_scale_set(rules, name).map_err(unknown)?),
        })
    }

    fn open_operation(
        &mut self,
        (about, token): (&str, Option<u32>),
        work: &[u64],
    ) -> Result<Operation, ControlError> {
        let rules = self.rules();
        let waits = |id: &MaintenanceId| {
            let work = rules.maintenance(*id);
            work.is_some_and(|work| matches!(work.stage, Stage::Waiting(_)) && work.plan.cause.is_requested())
        };
        let waits = work.iter().copied().map(MaintenanceId).filter(waits).take(OPERATION_WAITS_MAX).collect();
        let (number, name) = self.new_operation_name()?;
        let about = about.to_owned();
        let new = NewOperation { number, name: name.clone(), about, waits, token };
        self.change_resources(&ResourceCommand::Open(new))?;
        self.cluster().resources().operation(&name).cloned().ok_or(ControlError::Unavailable)
    }

    /// The number and the name of the next operation.
    fn new_operation_name(&self) -> Result<(u64, String), ControlError> {
        let mut secret = self.rules().seed();
        secret.0[0] ^= OPERATIONS;
        let name = |number| EventId::nth(&secret, number).to_string().to_lowercase();
        let resources = self.cluster().resources();
        let mut numbers = (resources.next_operation()..).map(|number| (number, name(number)));
        numbers.find(|(_, name)| resources.operation(name).is_none()).ok_or(ControlError::Unavailable)
    }
}
