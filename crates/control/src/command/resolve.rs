//! From commands by name to commands of the rules.

use std::collections::BTreeMap;
use std::net::IpAddr;

use forewarn_lifecycle::{
    Announced, Approver, BadName, Brake, Cluster, Command, Event, EventId, FailureKind, FaultDomain, HostId,
    HostWork, MachineId, Name, Placement, PlannedWork as Planned, PowerChange, Profile, RolloutId,
    RolloutTerms, ScaleSetId, SetShape, Shape, TenantId, Unenrolled, UpdateDomain, Zone,
};

use crate::command::check::{self, ControlCharacter};
use crate::command::entry::{
    self, HostEntry, InstanceEntry, MachineEntry, ScaleSetEntry, SetEntry, Site, VmEntry,
};
use crate::command::find::{Unknown, find_event, find_host, find_machine, find_scale_set, find_tenant};
use crate::command::limits::{ADDRESSES_MAX, TAG_CHARS_MAX, TAGS_MAX};
use crate::command::named::{
    EventSelection, FailureWord, NamedCommand, SettingsChange, SiteChange, UnenrolledWord,
};
use crate::command::terms::{AllWord, BadTerms, RolloutEntry, TermsEntry, find_hosts};
use crate::command::upgrade::{BadBatch, UpgradeWord};
use forewarn_types::Span;

/// What a command by name comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// A command of the rules.
    Rules(Command),
    /// A command of the rules that admits a machine, and what is known of that machine besides.
    Admit(Command, MachineDetails),
    /// Something is known of a machine that the rules need not know.
    Describe(MachineId, MachineDetailsChange),
    /// All machines are told something else of where they are.
    Site(SiteChange),
    /// The next thing that is done to a pretend machine fails.
    Jam(MachineId),
}

impl Resolved {
    /// The machine that the command is about, if it is about one.
    #[must_use]
    pub fn machine(&self) -> Option<MachineId> {
        let command = match self {
            Self::Describe(machine, _) | Self::Jam(machine) => return Some(*machine),
            Self::Rules(command) => command,
            Self::Admit(..) | Self::Site(_) => return None,
        };
        if let Command::Restart(machine)
        | Command::Redeploy(machine)
        | Command::Delete(machine)
        | Command::Reimage(machine)
        | Command::Evict(machine)
        | Command::UpgradeInstance(machine)
        | Command::Forget(machine)
        | Command::ChangePower { machine, .. }
        | Command::ChangeProfile { machine, .. }
        | Command::Move { machine, .. } = command
        {
            Some(*machine)
        } else {
            None
        }
    }
}

/// What the shell knows of a machine and the rules do not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineDetails {
    /// The addresses from which it calls.
    pub addresses: Vec<IpAddr>,
    /// Names and values of its owner.
    pub tags: BTreeMap<String, String>,
    /// Where it is told to be, if not where its cluster is.
    pub home: Option<ResourceGroupRef>,
}

/// A resource group of a machine that is not the one of its cluster. Neither fleet files nor operators speak of it: a
/// machine has it from whoever put it there through Azure Resource Manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceGroupRef {
    /// The name of the group.
    pub resource_group: String,
    /// The region.
    pub location: String,
}

/// What is known of a machine from now on; what is not said stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineDetailsChange {
    /// The addresses from which it calls.
    pub addresses: Option<Vec<IpAddr>>,
    /// Names and values of its owner.
    pub tags: Option<BTreeMap<String, String>>,
    /// Where it is told to be.
    pub home: Option<ResourceGroupRef>,
}

impl MachineDetailsChange {
    /// Details, changed so.
    #[must_use]
    pub fn apply(&self, details: &MachineDetails) -> MachineDetails {
        MachineDetails {
            addresses: self.addresses.as_ref().unwrap_or(&details.addresses).clone(),
            tags: self.tags.as_ref().unwrap_or(&details.tags).clone(),
            home: self.home.as_ref().or(details.home.as_ref()).cloned(),
        }
    }
}

/// Why a command by name is not one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadCommand {
    /// Something named in it is not there.
    #[error(transparent)]
    Unknown(#[from] Unknown),
    /// A new name is none.
    #[error("not a name: {name:?}: {why}")]
    Name {
        /// The text.
        name: String,
        /// What is wrong with it.
        why: BadName,
    },
    /// The notice of a deletion is too short or too long.
    #[error("the notice of a deletion is 5 to 15 minutes, not {}", forewarn_types::show_duration(.0.0))]
    Notice(Span),
    /// A batch is too small or too large.
    #[error(transparent)]
    Batch(#[from] BadBatch),
    /// A set was to be admitted with its machines in one command.
    #[error("machines join with commands of their own: {0} is admitted without any")]
    WithMachines(String),
    /// A text is no event id.
    #[error("not an event id: {0:?}\n  hint: `forewarn event ls` shows them")]
    EventId(String),
    /// More addresses or tags than a machine may have.
    #[error("too many {what} for {machine}: at most {max}")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// Whose.
        machine: String,
        /// How many there may be.
        max: usize,
    },
    /// The terms of a rollout are none.
    #[error(transparent)]
    RolloutTerms(#[from] BadTerms),
    /// A text that cannot be read without harm.
    #[error(transparent)]
    Control(#[from] ControlCharacter),
}

impl NamedCommand {
    /// What this comes to in a cluster as it is now.
    ///
    /// # Errors
    /// When something that is named is not there, or a new name or a number is not allowed.
    pub fn resolve(&self, cluster: &Cluster) -> Result<Resolved, BadCommand> {
        let machine = |name: &str| find_machine(cluster, name);
        let host = |name: &str| find_host(cluster, name);
        let set = |name: &str| find_scale_set(cluster, name);
        let power = |name: &str, change| {
            Ok::<_, Unknown>(Command::ChangePower { machine: find_machine(cluster, name)?, change })
        };
        let rules = match self {
            Self::AdmitHost(entry) => admit_host(entry)?,
            Self::RemoveHost { host: name } => Command::RemoveHost(host(name)?),
            Self::AdmitVm(entry) => return admit_vm(cluster, entry),
            Self::AdmitAvailabilitySet(entry) => admit_set(entry, SetShape::AvailabilitySet)?,
            Self::AdmitCloudService(entry) => admit_set(entry, SetShape::CloudService)?,
            Self::AdmitMachine { tenant, machine } => return admit_machine(cluster, tenant, machine),
            Self::AdmitScaleSet(entry) => admit_scale_set(entry)?,
            Self::AdmitInstance { scale_set, instance } => {
                return admit_instance(cluster, scale_set, instance);
            }
            Self::RemoveTenant { tenant } => Command::RemoveTenant(find_tenant(cluster, tenant)?),
            Self::RemoveScaleSet { scale_set } => Command::RemoveScaleSet(set(scale_set)?),
            Self::ChangePolicy { tenant, policy } => change_policy(cluster, tenant, (*policy).into())?,
            Self::ChangeModel { scale_set, terminate, os_image } => {
                Command::ChangeModel { scale_set: set(scale_set)?, model: profile(*terminate, *os_image)? }
            }
            Self::ReviseModel { scale_set } => Command::ReviseModel(set(scale_set)?),
            Self::ChangeUpgradePolicy { scale_set, upgrade } => upgrading(set(scale_set)?, *upgrade)?,
            Self::ChangeProfile { machine: name, terminate, os_image } => {
                Command::ChangeProfile { machine: machine(name)?, profile: profile(*terminate, *os_image)? }
            }
            Self::UpgradeInstance { machine: name } => Command::UpgradeInstance(machine(name)?),
            Self::Forget { machine: name } => Command::Forget(machine(name)?),
            // Removing a host orders nothing: to forget it and to remove it are the same to the rules.
            Self::ForgetHost { host: name } => Command::RemoveHost(host(name)?),
            Self::Move { machine, host, force: true } => moved(cluster, machine, host, Planned::GivesWay)?,
            Self::Move { machine, host, force: false } => moved(cluster, machine, host, Planned::Refuses)?,
            Self::Describe { machine: name, addresses, tags } => {
                return describe(cluster, name, addresses.as_deref(), tags.as_ref());
            }
            Self::ChangeSite(site) => return change_site(site),
            Self::Restart { machine: name } => Command::Restart(machine(name)?),
            Self::Redeploy { machine: name } => Command::Redeploy(machine(name)?),
            Self::Delete { machine: name } => Command::Delete(machine(name)?),
            Self::Reimage { machine: name } => Command::Reimage(machine(name)?),
            Self::Evict { machine: name } => Command::Evict(machine(name)?),
            Self::Stop { machine: name } => power(name, PowerChange::Stop)?,
            Self::Start { machine: name } => power(name, PowerChange::Start)?,
            Self::Deallocate { machine: name } => power(name, PowerChange::Deallocate)?,
            Self::UpdateHosts { hosts } => rollout(cluster, HostWork::Update, hosts)?,
            Self::UpdateNetwork { hosts } => rollout(cluster, HostWork::NetworkUpdate, hosts)?,
            Self::MigrateHosts { hosts } => rollout(cluster, HostWork::Migration, hosts)?,
            Self::RebootHosts { hosts } => rollout(cluster, HostWork::Restart, hosts)?,
            Self::StartRollout(entry) => start_rollout(cluster, entry)?,
            Self::PauseRollout { rollout, take_back: true } => pause(*rollout, Announced::TakenBack),
            Self::PauseRollout { rollout, take_back: false } => pause(*rollout, Announced::Stays),
            Self::ResumeRollout { rollout } => Command::ResumeRollout(RolloutId(*rollout)),
            Self::ChangeRollout { rollout, terms, add, remove } => {
                change_rollout(cluster, RolloutId(*rollout), terms, add, remove)?
            }
            Self::CancelRollout { rollout } => Command::CancelRollout(RolloutId(*rollout)),
            Self::DegradeHost { host: name, fails_in } => degrade(host(name)?, *fails_in),
            Self::FailHost { host: name } => Command::FailHost(host(name)?),
            Self::RecoverHost { host: name } => Command::RecoverHost(host(name)?),
            Self::Approve { tenant, events } => approve(cluster, find_tenant(cluster, tenant)?, events)?,
            Self::Cancel { event } => Command::Cancel(find_event(cluster, event)?.1.maintenance),
            Self::ForceStart { event } => Command::ForceStart(find_event(cluster, event)?.1.maintenance),
            Self::BrakeOn {} => Command::Brake(Brake::On),
            Self::BrakeOff {} => Command::Brake(Brake::Off),
            Self::ChangeSettings(change) => change_settings(cluster, change),
            Self::Jam { machine: name } => return Ok(Resolved::Jam(machine(name)?)),
        };
        Ok(Resolved::Rules(rules))
    }
}

fn admit_host(entry: &HostEntry) -> Result<Command, BadCommand> {
    Ok(Command::AdmitHost { name: new_name(&entry.name)?, zone: entry.zone.map(Zone) })
}

fn degrade(host: HostId, fails_in: Option<Span>) -> Command {
    Command::DegradeHost { host, fails_in: fails_in.map(|Span(span)| span) }
}

fn admit_vm(cluster: &Cluster, entry: &VmEntry) -> Result<Resolved, BadCommand> {
    let command = Command::AdmitStandalone {
        name: new_name(&entry.name)?,
        placement: placement(cluster, &entry.host, entry.update_domain, entry.fault_domain)?,
        priority: entry::priority(entry.spot),
        profile: profile(entry.terminate, entry.os_image)?,
        policy: entry.policy.into(),
    };
    Ok(Resolved::Admit(command, details(&entry.name, &entry.addresses, &entry.tags)?))
}

fn admit_set(entry: &SetEntry, set: SetShape) -> Result<Command, BadCommand> {
    if !entry.machines.is_empty() {
        return Err(BadCommand::WithMachines(entry.name.clone()));
    }
    Ok(Command::AdmitTenant { name: new_name(&entry.name)?, set, policy: entry.policy.into() })
}

fn admit_machine(cluster: &Cluster, tenant: &str, entry: &MachineEntry) -> Result<Resolved, BadCommand> {
    let command = Command::AdmitMachine {
        tenant: find_tenant(cluster, tenant)?,
        name: new_name(&entry.name)?,
        placement: placement(cluster, &entry.host, entry.update_domain, entry.fault_domain)?,
        priority: entry::priority(entry.spot),
        profile: profile(entry.terminate, entry.os_image)?,
    };
    Ok(Resolved::Admit(command, details(&entry.name, &entry.addresses, &entry.tags)?))
}

fn admit_scale_set(entry: &ScaleSetEntry) -> Result<Command, BadCommand> {
    if !entry.instances.is_empty() {
        return Err(BadCommand::WithMachines(entry.name.clone()));
    }
    Ok(Command::AdmitScaleSet {
        name: new_name(&entry.name)?,
        orchestration: entry.orchestration.into(),
        priority: entry::priority(entry.spot),
        upgrade: entry.upgrade.try_into()?,
        model: profile(entry.terminate, entry.os_image)?,
        policy: entry.policy.into(),
    })
}

fn admit_instance(cluster: &Cluster, set: &str, entry: &InstanceEntry) -> Result<Resolved, BadCommand> {
    let command = Command::AdmitInstance {
        scale_set: find_scale_set(cluster, set)?,
        placement: placement(cluster, &entry.host, entry.update_domain, entry.fault_domain)?,
        number: entry.id,
    };
    Ok(Resolved::Admit(command, details(set, &entry.addresses, &entry.tags)?))
}

fn change_policy(
    cluster: &Cluster,
    tenant: &str,
    policy: forewarn_lifecycle::Policy,
) -> Result<Command, Unknown> {
    let id = find_tenant(cluster, tenant)?;
    Ok(match cluster.tenant(id).map(|tenant| tenant.shape) {
        Some(Shape::PlacementGroup(scale_set)) => Command::ChangeScaleSetPolicy { scale_set, policy },
        Some(Shape::StandaloneMachine | Shape::CloudService | Shape::AvailabilitySet) | None => {
            Command::ChangePolicy { tenant: id, policy }
        }
    })
}

fn upgrading(scale_set: ScaleSetId, upgrade: UpgradeWord) -> Result<Command, BadBatch> {
    Ok(Command::ChangeUpgradePolicy { scale_set, upgrade: upgrade.try_into()? })
}

fn describe(
    cluster: &Cluster,
    name: &str,
    addresses: Option<&[IpAddr]>,
    tags: Option<&BTreeMap<String, String>>,
) -> Result<Resolved, BadCommand> {
    let change =
        MachineDetailsChange { addresses: addresses.map(<[_]>::to_vec), tags: tags.cloned(), home: None };
    let MachineDetails { addresses, tags, home: _ } = change.apply(&MachineDetails::default());
    details(name, &addresses, &tags)?;
    Ok(Resolved::Describe(find_machine(cluster, name)?, change))
}

fn change_site(site: &SiteChange) -> Result<Resolved, BadCommand> {
    check::site(&site.apply(&Site::default()))?;
    Ok(Resolved::Site(site.clone()))
}

fn moved(cluster: &Cluster, machine: &str, host: &str, planned: Planned) -> Result<Command, Unknown> {
    Ok(Command::Move { machine: find_machine(cluster, machine)?, to: find_host(cluster, host)?, planned })
}

fn pause(rollout: u64, announced: Announced) -> Command {
    Command::PauseRollout { rollout: RolloutId(rollout), announced }
}

fn start_rollout(cluster: &Cluster, entry: &RolloutEntry) -> Result<Command, BadCommand> {
    let (hosts, terms) = (entry.hosts.resolve(cluster)?, entry.terms.apply(&RolloutTerms::default())?);
    Ok(Command::Rollout { work: entry.work.into(), hosts, terms })
}

fn rollout(cluster: &Cluster, work: HostWork, hosts: &[String]) -> Result<Command, Unknown> {
    Ok(Command::Rollout { work, hosts: find_hosts(cluster, hosts)?, terms: RolloutTerms::default() })
}

fn change_rollout(
    cluster: &Cluster,
    rollout: RolloutId,
    terms: &TermsEntry,
    add: &[String],
    remove: &[String],
) -> Result<Command, BadCommand> {
    // One that is not there is refused by the rules, whatever its terms.
    let known = cluster.rollout(rollout).map(|known| known.terms.clone()).unwrap_or_default();
    let (add, remove) = (find_hosts(cluster, add)?, find_hosts(cluster, remove)?);
    Ok(Command::ChangeRollout { rollout, terms: terms.apply(&known)?, add, remove })
}

fn approve(cluster: &Cluster, tenant: TenantId, which: &EventSelection) -> Result<Command, BadCommand> {
    let events = match which {
        EventSelection::Every(AllWord::All) => {
            let seen = cluster.tenant(tenant).map_or(&[][..], forewarn_lifecycle::Tenant::events);
            seen.iter().map(Event::id).collect()
        }
        EventSelection::Ids(ids) => {
            let parse = |id: &String| EventId::parse(id).ok_or_else(|| BadCommand::EventId(id.clone()));
            ids.iter().map(parse).collect::<Result<_, _>>()?
        }
    };
    Ok(Command::Approve { tenant, events, by: Approver::Owner })
}

fn change_settings(cluster: &Cluster, change: &SettingsChange) -> Command {
    let mut settings = cluster.settings();
    if let Some(word) = change.unenrolled {
        settings.unenrolled = match word {
            UnenrolledWord::Runs => Unenrolled::RunAtOnce,
            UnenrolledWord::Waits => Unenrolled::WaitAnyway,
        };
    }
    if let Some(max) = change.user_operations_max {
        settings.user_operations_max = (max > 0).then_some(max);
    }
    if let Some(word) = change.failure {
        settings.failure = match word {
            FailureWord::Reboot => FailureKind::Reboot,
            FailureWord::Redeploy => FailureKind::Redeploy,
        };
    }
    Command::ChangeSettings(settings)
}

fn new_name(text: &str) -> Result<Name, BadCommand> {
    Name::new(text).map_err(|why| BadCommand::Name { name: text.chars().take(100).collect(), why })
}

fn placement(
    cluster: &Cluster,
    host: &str,
    update_domain: u16,
    fault_domain: u16,
) -> Result<Placement, Unknown> {
    let host = find_host(cluster, host)?;
    Ok(Placement {
        host,
        update_domain: UpdateDomain(update_domain),
        fault_domain: FaultDomain(fault_domain),
    })
}

fn profile(terminate: Option<Span>, os_image: bool) -> Result<Profile, BadCommand> {
    let wrong = || BadCommand::Notice(terminate.unwrap_or(Span(std::time::Duration::ZERO)));
    entry::profile(terminate, os_image).ok_or_else(wrong)
}

fn details(
    machine: &str,
    addresses: &[IpAddr],
    tags: &BTreeMap<String, String>,
) -> Result<MachineDetails, BadCommand> {
    let check = |what, count, max| {
        let machine = machine.to_owned();
        if count > max { Err(BadCommand::TooMany { what, machine, max }) } else { Ok(()) }
    };
    check("addresses", addresses.len(), ADDRESSES_MAX)?;
    check("tags", tags.len(), TAGS_MAX)?;
    let longest = tags.iter().flat_map(|(name, value)| [name, value]).map(|text| text.chars().count()).max();
    check("characters in a tag", longest.unwrap_or(0), TAG_CHARS_MAX)?;
    check::tags(tags)?;
    Ok(MachineDetails { addresses: addresses.to_vec(), tags: tags.clone(), home: None })
}
