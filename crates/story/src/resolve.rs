//! From the names of a story to the commands of the rules.

use forewarn_lifecycle::{
    Approve, Approver, Command, Event, EventId, FaultDomain, HostId, MachineId, MaintenanceId, Name,
    Placement, Policy, Profile, RolloutId, ScaleSetId, Shape, TenantId, UpdateDomain, Zone,
};

use crate::error::Mistake;
use crate::play::Player;
use crate::statement::{By, Deed, Named, Place, PolicyRule, Removed, Setting, Spot, Traits, UserDeed};

impl Player {
    /// The commands that do a deed, in order.
    pub(crate) fn commands(&self, place: &Place, deed: &Deed) -> Result<Vec<Command>, Mistake> {
        Ok(vec![match deed {
            Deed::Hosts { names, zone } => {
                let admit =
                    |name| Ok(Command::AdmitHost { name: new_name(place, name)?, zone: zone.map(Zone) });
                return names.iter().map(admit).collect();
            }
            Deed::Instances { scale_set, spot, times } => {
                let scale_set = self.scale_set(place, scale_set)?;
                let placement = self.placement(place, spot)?;
                let admit = Command::AdmitInstance { scale_set, placement, number: None };
                return Ok(vec![admit; usize::from(*times)]);
            }
            Deed::Vm { name, spot } => Command::AdmitStandalone {
                name: new_name(place, name)?,
                placement: self.placement(place, spot)?,
                priority: spot.traits.priority,
                profile: profile(spot.traits),
                policy: Policy::default(),
            },
            Deed::Set { name, shape } => {
                Command::AdmitTenant { name: new_name(place, name)?, set: *shape, policy: Policy::default() }
            }
            Deed::ScaleSet { name, orchestration, upgrade, traits } => Command::AdmitScaleSet {
                name: new_name(place, name)?,
                orchestration: *orchestration,
                priority: traits.priority,
                upgrade: *upgrade,
                model: profile(*traits),
                policy: Policy::default(),
            },
            Deed::Machine { name, tenant, spot } => Command::AdmitMachine {
                tenant: self.tenant(place, tenant)?,
                name: new_name(place, name)?,
                placement: self.placement(place, spot)?,
                priority: spot.traits.priority,
                profile: profile(spot.traits),
            },
            Deed::Remove { what, name } => self.removal(place, *what, name)?,
            Deed::User { what, machine } => user_command(*what, self.machine(place, machine)?),
            Deed::HostWork { work, hosts } => {
                let hosts = hosts.iter().map(|host| self.host(place, host)).collect::<Result<_, _>>()?;
                Command::Rollout { work: *work, hosts }
            }
            Deed::Degrade { host, fails_in } => {
                Command::DegradeHost { host: self.host(place, host)?, fails_in: *fails_in }
            }
            Deed::Fail(host) => Command::FailHost(self.host(place, host)?),
            Deed::Recover(host) => Command::RecoverHost(self.host(place, host)?),
            Deed::Approve { what, by } => self.approval(place, what, by)?,
            Deed::Cancel(event) => Command::Cancel(self.maintenance(place, event)?),
            Deed::CancelRollout => Command::CancelRollout(self.rollout(place)?),
            Deed::Force(event) => Command::ForceStart(self.maintenance(place, event)?),
            Deed::Brake(brake) => Command::Brake(*brake),
            Deed::Policy { tenant, rule, approve } => {
                self.policy(self.tenant(place, tenant)?, *rule, *approve)
            }
            Deed::Model { scale_set, terminate, os_image } => Command::ChangeModel {
                scale_set: self.scale_set(place, scale_set)?,
                model: Profile { terminate: *terminate, os_image: *os_image },
            },
            Deed::Profile { machine, terminate, os_image } => Command::ChangeProfile {
                machine: self.machine(place, machine)?,
                profile: Profile { terminate: *terminate, os_image: *os_image },
            },
            Deed::Upgrade(machine) => Command::UpgradeInstance(self.machine(place, machine)?),
            Deed::Choose(setting) => self.choice(*setting),
        }])
    }

    /// A tenant keeps its policy but for one rule; a placement group has that of its scale set.
    fn policy(&self, id: TenantId, rule: PolicyRule, approve: Approve) -> Command {
        let tenant = self.world.cluster.tenant(id);
        let mut policy = tenant.map(|tenant| tenant.policy).unwrap_or_default();
        match rule {
            PolicyRule::Restart => policy.user_restart = approve,
            PolicyRule::Redeploy => policy.user_redeploy = approve,
            PolicyRule::AllDown => policy.all_instances_down = approve,
        }
        match tenant.map(|tenant| tenant.shape) {
            Some(Shape::PlacementGroup(scale_set)) => Command::ChangeScaleSetPolicy { scale_set, policy },
            Some(Shape::StandaloneMachine | Shape::CloudService | Shape::AvailabilitySet) | None => {
                Command::ChangePolicy { tenant: id, policy }
            }
        }
    }

    fn choice(&self, setting: Setting) -> Command {
        let mut settings = self.world.cluster.settings();
        match setting {
            Setting::Unenrolled(unenrolled) => settings.unenrolled = unenrolled,
            Setting::UserOperations(max) => settings.user_operations_max = max,
            Setting::Failure(kind) => settings.failure = kind,
        }
        Command::ChangeSettings(settings)
    }

    fn removal(&self, place: &Place, what: Removed, name: &Named) -> Result<Command, Mistake> {
        Ok(match what {
            Removed::Host => Command::RemoveHost(self.host(place, name)?),
            Removed::Tenant => Command::RemoveTenant(self.tenant(place, name)?),
            Removed::ScaleSet => Command::RemoveScaleSet(self.scale_set(place, name)?),
        })
    }

    fn approval(&self, place: &Place, what: &[Named], by: &By) -> Result<Command, Mistake> {
        let (tenant, by) = match by {
            By::OwnerOf(tenant) => (self.tenant(place, tenant)?, Approver::Owner),
            By::Machine(machine) => {
                (self.tenant_of(place, machine)?, Approver::Machine(self.machine(place, machine)?))
            }
        };
        let mut events = Vec::new();
        for name in what {
            match self.transcript.event_called(name.as_str()) {
                Some(event) => events.push(event),
                None => events.extend(self.events_of(self.tenant(place, name)?)),
            }
        }
        Ok(Command::Approve { tenant, events, by })
    }

    fn events_of(&self, tenant: TenantId) -> Vec<EventId> {
        let tenant = self.world.cluster.tenant(tenant);
        tenant.map(|tenant| tenant.events().iter().map(Event::id).collect()).unwrap_or_default()
    }

    /// The work behind an event of the transcript.
    fn maintenance(&self, place: &Place, name: &Named) -> Result<MaintenanceId, Mistake> {
        let event = self.transcript.event_called(name.as_str());
        let event = event.ok_or_else(|| place.mistake(name, "no such event has appeared"))?;
        let found = self.world.cluster.event(event).map(|(_, event)| event.maintenance);
        found.ok_or_else(|| place.mistake(name, "this event is gone"))
    }

    fn rollout(&self, place: &Place) -> Result<RolloutId, Mistake> {
        let first = self.world.cluster.rollouts().next();
        first.map(|(id, _)| id).ok_or_else(|| place.mistake_here("no rollout is under way"))
    }

    fn host(&self, place: &Place, name: &Named) -> Result<HostId, Mistake> {
        let found = self.world.cluster.host_named(name.as_str());
        found.ok_or_else(|| place.mistake(name, "no such host"))
    }

    pub(crate) fn tenant(&self, place: &Place, name: &Named) -> Result<TenantId, Mistake> {
        let found = self.world.cluster.tenant_named(name.as_str());
        found.ok_or_else(|| place.mistake(name, "no such tenant"))
    }

    fn scale_set(&self, place: &Place, name: &Named) -> Result<ScaleSetId, Mistake> {
        let found = self.world.cluster.scale_set_named(name.as_str());
        found.ok_or_else(|| place.mistake(name, "no such scale set"))
    }

    /// A machine: its name where that is unique, else `tenant/name`.
    pub(crate) fn machine(&self, place: &Place, name: &Named) -> Result<MachineId, Mistake> {
        let cluster = &self.world.cluster;
        if let Some((tenant, machine)) = name.as_str().split_once('/') {
            let found =
                cluster.tenant_named(tenant).and_then(|tenant| cluster.machine_named(tenant, machine));
            return found.ok_or_else(|| place.mistake(name, "no such machine"));
        }
        let mut found = cluster.machines().filter(|(_, machine)| machine.name.as_str() == name.as_str());
        match (found.next(), found.next()) {
            (Some((id, _)), None) => Ok(id),
            (Some(_), Some(_)) => {
                Err(place.mistake(name, "several machines have this name; write tenant/name"))
            }
            (None, _) => Err(place.mistake(name, "no such machine")),
        }
    }

    pub(crate) fn tenant_of(&self, place: &Place, name: &Named) -> Result<TenantId, Mistake> {
        let machine = self.world.cluster.machine(self.machine(place, name)?);
        machine.map(|machine| machine.tenant).ok_or_else(|| place.mistake(name, "no such machine"))
    }

    fn placement(&self, place: &Place, spot: &Spot) -> Result<Placement, Mistake> {
        Ok(Placement {
            host: self.host(place, &spot.host)?,
            update_domain: UpdateDomain(spot.update_domain),
            fault_domain: FaultDomain(spot.fault_domain),
        })
    }
}

fn user_command(what: UserDeed, machine: MachineId) -> Command {
    match what {
        UserDeed::Restart => Command::Restart(machine),
        UserDeed::Redeploy => Command::Redeploy(machine),
        UserDeed::Delete => Command::Delete(machine),
        UserDeed::Reimage => Command::Reimage(machine),
        UserDeed::Evict => Command::Evict(machine),
        UserDeed::Power(change) => Command::ChangePower { machine, change },
    }
}

fn profile(traits: Traits) -> Profile {
    Profile { terminate: traits.terminate, os_image: traits.os_image }
}

fn new_name(place: &Place, name: &Named) -> Result<Name, Mistake> {
    Name::new(name.as_str()).map_err(|wrong| place.mistake(name, wrong.to_string()))
}
