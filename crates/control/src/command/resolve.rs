//! Translation of commands by name into commands of the rules.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;

use forewarn_lifecycle::{
    Announced, Approver, BadName, Brake, Cluster, Command, Event, EventId, FailureKind, FaultDomain,
    GuestReturn, HostId, HostWork, MachineId, Name, Placement, PlannedWork as Planned, PowerChange, Profile,
    Report, RolloutId, RolloutTerms, ScaleSetId, SetShape, Shape, Size, TenantId, Unenrolled, UpdateDomain,
    WindowOwner, WorkText, Zone,
};
use serde::{Deserialize, Serialize};

use crate::command::check::{self, ControlCharacterError};
use crate::command::entry::{
    self, HostEntry, InstanceEntry, MachineEntry, ScaleSetEntry, SetEntry, Site, VmEntry,
};
use crate::command::host_mode::MaintenanceEntry;
use crate::command::host_work::{HostWorkEntry, HostWorkError};
use crate::command::limits::{ADDRESSES_MAX, TAG_CHARS_MAX, TAGS_MAX};
use crate::command::lookup::{LookupError, find_event, find_host, find_machine, find_scale_set, find_tenant};
use crate::command::machine_details::{MachineDetails, MachineDetailsChange};
use crate::command::named::{
    EventSelection, FailureWord, NamedCommand, SettingsChange, SiteChange, UnenrolledWord,
};
use crate::command::size::size;
use crate::command::terms::{AllWord, RolloutEntry, TermsEntry, TermsError, WindowSelection, find_hosts};
use crate::command::time_zone::TimeZoneError;
use crate::command::upgrade::{BatchSizeError, UpgradeWord};
use crate::command::window::WindowEntry;
use forewarn_types::Span;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// A command of the rules.
    Rules(Command),
    /// A command of the rules that admits a machine, and the details of that machine.
    Admit(Command, MachineDetails),
    /// A change of the details of a machine, which the rules do not know.
    Describe(MachineId, MachineDetailsChange),
    /// A change of the site, which all machines show.
    Site(SiteChange),
    /// A command of the rules by which actions fail, and the reason.
    Fail(Command, String),
    /// The next action on a simulated machine fails.
    Jam(MachineId),
}

impl Resolved {
    /// The machine that the command is about, if it is about one.
    #[must_use]
    pub fn machine(&self) -> Option<MachineId> {
        let command = match self {
            Self::Describe(machine, _) | Self::Jam(machine) => return Some(*machine),
            Self::Rules(command) | Self::Fail(command, _) => command,
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
        | Command::Resize { machine, .. }
        | Command::Move { machine, .. } = command
        {
            Some(*machine)
        } else {
            None
        }
    }
}

/// The reason why a command by name is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(deny_unknown_fields)]
pub enum CommandError {
    /// A name was not found.
    #[error(transparent)]
    Unknown(#[from] LookupError),
    /// A new name is invalid.
    #[error("invalid name {name:?}: {why}")]
    Name { name: String, why: BadName },
    /// The notice of a deletion is too short or too long.
    #[error("notice of deletion must be 5 to 15 minutes, not {}", forewarn_types::show_duration(.0.0))]
    Notice(Span),
    /// A batch is too small or too large.
    #[error(transparent)]
    Batch(#[from] BatchSizeError),
    /// A set must be admitted without its machines.
    #[error("{0} must be admitted without machines\n  hint: add its machines with commands of their own")]
    WithMachines(String),
    /// A tenant must be admitted without its windows.
    #[error("{0} must be admitted without windows\n  hint: set its windows with `change_windows`")]
    WithWindows(String),
    /// A text is not an event id.
    #[error("not an event id: {0:?}\n  hint: `forewarn event ls` shows them")]
    EventId(String),
    /// More addresses or tags than a machine may have.
    #[error("too many {what} for {machine}: at most {max}")]
    TooMany { what: Cow<'static, str>, machine: String, max: usize },
    /// The terms of a rollout are invalid.
    #[error(transparent)]
    RolloutTerms(#[from] TermsError),
    /// The time zone of a window is unknown.
    #[error(transparent)]
    TimeZone(#[from] TimeZoneError),
    /// Work on hosts is invalid.
    #[error(transparent)]
    HostWork(#[from] HostWorkError),
    /// A text has control characters.
    #[error(transparent)]
    Control(#[from] ControlCharacterError),
}

impl NamedCommand {
    /// Resolves the command in the current state of a cluster.
    ///
    /// # Errors
    /// Fails if a name is not found, or a new name or a number is invalid.
    #[allow(clippy::too_many_lines, reason = "one arm for each command")]
    pub fn resolve(&self, cluster: &Cluster) -> Result<Resolved, CommandError> {
        let machine = |name: &str| find_machine(cluster, name);
        let host = |name: &str| find_host(cluster, name);
        let set = |name: &str| find_scale_set(cluster, name);
        let power = |name: &str, change| {
            Ok::<_, LookupError>(Command::ChangePower { machine: find_machine(cluster, name)?, change })
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
            Self::ChangeWindows { tenant, windows } => change_windows(cluster, tenant, windows)?,
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
            // Removing a host does not call the driver: the rules treat forgetting and removing a host alike.
            Self::ForgetHost { host: name } => Command::RemoveHost(host(name)?),
            Self::Move { machine, host, force: true } => moved(cluster, machine, host, Planned::GivesWay)?,
            Self::Move { machine, host, force: false } => moved(cluster, machine, host, Planned::Refuses)?,
            Self::ChangeCapacity { host: name, cpus, memory } => {
                Command::ChangeCapacity { host: host(name)?, capacity: size(*cpus, *memory) }
            }
            Self::Resize { machine: name, cpus, memory } => {
                Command::Resize { machine: machine(name)?, size: size(*cpus, *memory) }
            }
            Self::ResizeInstances { scale_set, cpus, memory } => {
                Command::ResizeInstances { scale_set: set(scale_set)?, size: size(*cpus, *memory) }
            }
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
            Self::UpdateHosts(entry) => rollout(cluster, HostWork::Update, entry)?,
            Self::UpdateNetwork(entry) => rollout(cluster, HostWork::NetworkUpdate, entry)?,
            Self::MigrateHosts(entry) => rollout(cluster, HostWork::Migration, entry)?,
            Self::RebootHosts(entry) => rollout(cluster, HostWork::Restart, entry)?,
            Self::StartRollout(entry) => start_rollout(cluster, entry)?,
            Self::PauseRollout { rollout, take_back: true } => pause(*rollout, Announced::TakenBack),
            Self::PauseRollout { rollout, take_back: false } => pause(*rollout, Announced::Stays),
            Self::ResumeRollout { rollout } => Command::ResumeRollout(RolloutId(*rollout)),
            Self::ChangeRollout { rollout, terms, add, remove } => {
                change_rollout(cluster, RolloutId(*rollout), terms, add, remove)?
            }
            Self::CancelRollout { rollout } => Command::CancelRollout(RolloutId(*rollout)),
            Self::DegradeHost { host: name, fails_in } => degrade(host(name)?, *fails_in),
            Self::FailHost { host: name, fenced: false } => Command::FailHost(host(name)?),
            Self::FailHost { host: name, fenced: true } => Command::FailFencedHost(host(name)?),
            Self::RecoverHost { host: name } => Command::RecoverHost(host(name)?),
            Self::Approve { tenant, events } => approve(cluster, find_tenant(cluster, tenant)?, events)?,
            Self::Cancel { event } => Command::Cancel(find_event(cluster, event)?.1.maintenance),
            Self::ForceStart { event } => Command::ForceStart(find_event(cluster, event)?.1.maintenance),
            Self::CompleteHost { host: name, failed: None } => {
                Command::CompleteHost { host: host(name)?, report: Report::Done }
            }
            Self::CompleteHost { host: name, failed: Some(why) } => return fail_host_step(host(name)?, why),
            Self::RetryHost { host: name } => Command::RetryHost(host(name)?),
            Self::GiveUpHost { host: name } => return fail_host_step(host(name)?, GIVEN_UP),
            Self::ClearHost { host: name } => Command::ClearHost(host(name)?),
            Self::EnterMaintenance(entry) => enter_maintenance(cluster, entry)?,
            Self::ExitMaintenance { host: name, return_guests: true } => {
                Command::ExitMaintenance { host: host(name)?, guests: GuestReturn::Return }
            }
            Self::ExitMaintenance { host: name, return_guests: false } => {
                Command::ExitMaintenance { host: host(name)?, guests: GuestReturn::Stay }
            }
            Self::Retry { event } => Command::Retry(find_event(cluster, event)?.1.maintenance),
            Self::GiveUp { event } => {
                let command = Command::GiveUp(find_event(cluster, event)?.1.maintenance);
                return Ok(Resolved::Fail(command, GIVEN_UP.to_owned()));
            }
            Self::BrakeOn {} => Command::Brake(Brake::On),
            Self::BrakeOff {} => Command::Brake(Brake::Off),
            Self::ChangeSettings(change) => change_settings(cluster, change),
            Self::Jam { machine: name } => return Ok(Resolved::Jam(machine(name)?)),
        };
        Ok(Resolved::Rules(rules))
    }
}

/// The reason of actions that an operator has given up.
const GIVEN_UP: &str = "given up by an operator";

fn fail_host_step(host: HostId, why: &str) -> Result<Resolved, CommandError> {
    let why = WorkText::new(why).ok_or(HostWorkError::Text)?;
    let command = Command::CompleteHost { host, report: Report::Failed };
    Ok(Resolved::Fail(command, why.into()))
}

fn enter_maintenance(cluster: &Cluster, entry: &MaintenanceEntry) -> Result<Command, CommandError> {
    let (host, (step, seconds)) = (find_host(cluster, &entry.host)?, entry.step()?);
    Ok(Command::EnterMaintenance { host, leaving: entry.leaving.into(), seconds, step })
}

fn admit_host(entry: &HostEntry) -> Result<Command, CommandError> {
    let capacity = size(entry.cpus, entry.memory);
    Ok(Command::AdmitHost { name: new_name(&entry.name)?, zone: entry.zone.map(Zone), capacity })
}

fn degrade(host: HostId, fails_in: Option<Span>) -> Command {
    Command::DegradeHost { host, fails_in: fails_in.map(|Span(span)| span) }
}

fn without_windows(name: &str, windows: &[WindowEntry]) -> Result<(), CommandError> {
    if windows.is_empty() { Ok(()) } else { Err(CommandError::WithWindows(name.to_owned())) }
}

fn admit_vm(cluster: &Cluster, entry: &VmEntry) -> Result<Resolved, CommandError> {
    without_windows(&entry.name, &entry.windows)?;
    let command = Command::AdmitStandalone {
        name: new_name(&entry.name)?,
        placement: Placement {
            size: size(entry.cpus, entry.memory),
            ..placement(cluster, &entry.host, entry.update_domain, entry.fault_domain)?
        },
        priority: entry::priority(entry.spot),
        profile: profile(entry.terminate, entry.os_image)?,
        policy: entry.policy.into(),
    };
    Ok(Resolved::Admit(command, details(&entry.name, &entry.addresses, &entry.tags)?))
}

fn admit_set(entry: &SetEntry, set: SetShape) -> Result<Command, CommandError> {
    without_windows(&entry.name, &entry.windows)?;
    if !entry.machines.is_empty() {
        return Err(CommandError::WithMachines(entry.name.clone()));
    }
    Ok(Command::AdmitTenant { name: new_name(&entry.name)?, set, policy: entry.policy.into() })
}

fn admit_machine(cluster: &Cluster, tenant: &str, entry: &MachineEntry) -> Result<Resolved, CommandError> {
    let command = Command::AdmitMachine {
        tenant: find_tenant(cluster, tenant)?,
        name: new_name(&entry.name)?,
        placement: Placement {
            size: size(entry.cpus, entry.memory),
            ..placement(cluster, &entry.host, entry.update_domain, entry.fault_domain)?
        },
        priority: entry::priority(entry.spot),
        profile: profile(entry.terminate, entry.os_image)?,
    };
    Ok(Resolved::Admit(command, details(&entry.name, &entry.addresses, &entry.tags)?))
}

fn admit_scale_set(entry: &ScaleSetEntry) -> Result<Command, CommandError> {
    without_windows(&entry.name, &entry.windows)?;
    if !entry.instances.is_empty() || entry.count.is_some() || entry.placement.is_some() {
        return Err(CommandError::WithMachines(entry.name.clone()));
    }
    Ok(Command::AdmitScaleSet {
        name: new_name(&entry.name)?,
        orchestration: entry.orchestration.into(),
        priority: entry::priority(entry.spot),
        upgrade: entry.upgrade.try_into()?,
        model: profile(entry.terminate, entry.os_image)?,
        policy: entry.policy.into(),
        size: size(entry.cpus, entry.memory),
    })
}

fn admit_instance(cluster: &Cluster, set: &str, entry: &InstanceEntry) -> Result<Resolved, CommandError> {
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
) -> Result<Command, LookupError> {
    let id = find_tenant(cluster, tenant)?;
    Ok(match cluster.tenant(id).map(|tenant| tenant.shape) {
        Some(Shape::PlacementGroup(scale_set)) => Command::ChangeScaleSetPolicy { scale_set, policy },
        Some(Shape::StandaloneMachine | Shape::CloudService | Shape::AvailabilitySet) | None => {
            Command::ChangePolicy { tenant: id, policy }
        }
    })
}

/// Windows belong to a tenant, or to a scale set for all its placement groups.
fn change_windows(cluster: &Cluster, name: &str, windows: &WindowSelection) -> Result<Command, CommandError> {
    let set = cluster.scale_set_named(name).filter(|_| cluster.tenant_named(name).is_none());
    let owner = match set {
        Some(set) => WindowOwner::ScaleSet(set),
        None => {
            let tenant = find_tenant(cluster, name)?;
            cluster.window_owner(tenant).unwrap_or(WindowOwner::Tenant(tenant))
        }
    };
    Ok(Command::ChangeWindows { owner, windows: windows.resolve()? })
}

fn upgrading(scale_set: ScaleSetId, upgrade: UpgradeWord) -> Result<Command, BatchSizeError> {
    Ok(Command::ChangeUpgradePolicy { scale_set, upgrade: upgrade.try_into()? })
}

fn describe(
    cluster: &Cluster,
    name: &str,
    addresses: Option<&[IpAddr]>,
    tags: Option<&BTreeMap<String, String>>,
) -> Result<Resolved, CommandError> {
    let change =
        MachineDetailsChange { addresses: addresses.map(<[_]>::to_vec), tags: tags.cloned(), home: None };
    let MachineDetails { addresses, tags, home: _ } = change.apply(&MachineDetails::default());
    details(name, &addresses, &tags)?;
    Ok(Resolved::Describe(find_machine(cluster, name)?, change))
}

fn change_site(site: &SiteChange) -> Result<Resolved, CommandError> {
    check::site(&site.apply(&Site::default()))?;
    Ok(Resolved::Site(site.clone()))
}

fn moved(cluster: &Cluster, machine: &str, host: &str, planned: Planned) -> Result<Command, LookupError> {
    Ok(Command::Move { machine: find_machine(cluster, machine)?, to: find_host(cluster, host)?, planned })
}

fn pause(rollout: u64, announced: Announced) -> Command {
    Command::PauseRollout { rollout: RolloutId(rollout), announced }
}

fn start_rollout(cluster: &Cluster, entry: &RolloutEntry) -> Result<Command, CommandError> {
    let (hosts, terms) = (entry.resolve_hosts(cluster)?, entry.terms.apply(&RolloutTerms::default())?);
    Ok(Command::Rollout { work: entry.task()?, hosts, terms })
}

fn rollout(cluster: &Cluster, kind: HostWork, entry: &HostWorkEntry) -> Result<Command, CommandError> {
    let (work, hosts) = (entry.options().task(kind)?, find_hosts(cluster, &entry.hosts)?);
    Ok(Command::Rollout { work, hosts, terms: RolloutTerms::default() })
}

fn change_rollout(
    cluster: &Cluster,
    rollout: RolloutId,
    terms: &TermsEntry,
    add: &[String],
    remove: &[String],
) -> Result<Command, CommandError> {
    // The rules refuse a missing rollout, whatever its terms.
    let known = cluster.rollout(rollout).map(|known| known.terms.clone()).unwrap_or_default();
    let (add, remove) = (find_hosts(cluster, add)?, find_hosts(cluster, remove)?);
    Ok(Command::ChangeRollout { rollout, terms: terms.apply(&known)?, add, remove })
}

fn approve(cluster: &Cluster, tenant: TenantId, which: &EventSelection) -> Result<Command, CommandError> {
    let events = match which {
        EventSelection::Every(AllWord::All) => {
            let seen = cluster.tenant(tenant).map_or(&[][..], forewarn_lifecycle::Tenant::events);
            seen.iter().map(Event::id).collect()
        }
        EventSelection::Ids(ids) => {
            let parse = |id: &String| EventId::parse(id).ok_or_else(|| CommandError::EventId(id.clone()));
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
    if let Some(word) = change.enrolment {
        settings.enrolment = word.into();
    }
    Command::ChangeSettings(settings)
}

fn new_name(text: &str) -> Result<Name, CommandError> {
    Name::new(text).map_err(|why| CommandError::Name { name: text.chars().take(100).collect(), why })
}

fn placement(
    cluster: &Cluster,
    host: &str,
    update_domain: u16,
    fault_domain: u16,
) -> Result<Placement, LookupError> {
    let host = find_host(cluster, host)?;
    Ok(Placement {
        host,
        update_domain: UpdateDomain(update_domain),
        fault_domain: FaultDomain(fault_domain),
        size: Size::NONE,
    })
}

fn profile(terminate: Option<Span>, os_image: bool) -> Result<Profile, CommandError> {
    let wrong = || CommandError::Notice(terminate.unwrap_or(Span(std::time::Duration::ZERO)));
    entry::profile(terminate, os_image).ok_or_else(wrong)
}

fn details(
    machine: &str,
    addresses: &[IpAddr],
    tags: &BTreeMap<String, String>,
) -> Result<MachineDetails, CommandError> {
    let check = |what: &'static str, count, max| {
        let too_many = || CommandError::TooMany { what: what.into(), machine: machine.to_owned(), max };
        if count > max { Err(too_many()) } else { Ok(()) }
    };
    check("addresses", addresses.len(), ADDRESSES_MAX)?;
    check("tags", tags.len(), TAGS_MAX)?;
    let longest = tags.iter().flat_map(|(name, value)| [name, value]).map(|text| text.chars().count()).max();
    check("characters in a tag", longest.unwrap_or(0), TAG_CHARS_MAX)?;
    check::tags(tags)?;
    Ok(MachineDetails { addresses: addresses.to_vec(), tags: tags.clone(), home: None })
}
