//! The reasons for which the rules refuse a command.

use std::borrow::Cow;

use forewarn_types::{EventId, Name, derived_name, derived_names};
use serde::{Deserialize, Serialize};

use crate::capacity::Size;
use crate::fleet::{Placement, Power};
use crate::limits;

/// The reason why a command was refused. The state is unchanged.
///
/// Its JSON form holds everything, as that of a command does: a refusal that crossed a connection equals the original.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the message explains each variant and names its fields")]
pub enum Refusal {
    #[error("no such host")]
    NoSuchHost,
    #[error("no such tenant")]
    NoSuchTenant,
    #[error("no such machine")]
    NoSuchMachine,
    #[error("no such scale set")]
    NoSuchScaleSet,
    #[error("no such rollout")]
    NoSuchRollout,
    #[error("no such maintenance: it has ended or never existed")]
    NoSuchMaintenance,
    #[error("the name is taken: {0}")]
    NameTaken(#[serde(with = "derived_name")] Name),
    #[error(
        "the host still has machines: {host}: {machines}\n  hint: `forewarn vm move` records that they run on another host, \
         `forewarn vm forget` stops managing them, `forewarn vm delete` destroys them"
    )]
    HostInUse {
        #[serde(with = "derived_name")]
        host: Name,
        machines: String,
    },
    #[error("the tenant still has machines or events: {0}")]
    TenantInUse(#[serde(with = "derived_name")] Name),
    #[error("the scale set still has instances or events: {0}")]
    ScaleSetInUse(#[serde(with = "derived_name")] Name),
    #[error("managed by its scale set: {0}")]
    PartOfScaleSet(#[serde(with = "derived_name")] Name),
    #[error("a standalone machine is its own tenant: {0}")]
    Standalone(#[serde(with = "derived_name")] Name),
    #[error(
        "the instance number has been used: {name}\n  hint: instance numbers are never reused; the next one is {next}"
    )]
    InstanceNumberPassed {
        #[serde(with = "derived_name")]
        name: Name,
        next: u32,
    },
    #[error("not an instance of a scale set: {0}")]
    NotAnInstance(#[serde(with = "derived_name")] Name),
    #[error(
        "on host {host}, {tenant} already has update domain {present}, so {update_domain} cannot go there"
    )]
    UpdateDomainClash {
        #[serde(with = "derived_name")]
        host: Name,
        #[serde(with = "derived_name")]
        tenant: Name,
        present: u16,
        update_domain: u16,
    },
    #[error("update and fault domains are numbered 0 to 999")]
    DomainOutOfRange,
    #[error("the host is not healthy: {0}")]
    HostNotHealthy(#[serde(with = "derived_name")] Name),
    #[error("the host has failed: {0}\n  hint: recover it first")]
    HostFailed(#[serde(with = "derived_name")] Name),
    #[error(
        "the host needs attention: {0}\n  hint: `forewarn host show` has the reason; examine the host, then run `forewarn host clear`"
    )]
    HostNeedsAttention(#[serde(with = "derived_name")] Name),
    #[error(
        "the failed host is not fenced, and its machines may still run: {0}\n  hint: `forewarn host fail --fenced` confirms that they \
         can no longer write to their disks"
    )]
    NotFenced(#[serde(with = "derived_name")] Name),
    #[error(
        "the host is being fenced: {0}\n  hint: wait for the end of the order, or end it with `forewarn host give-up`"
    )]
    BeingFenced(#[serde(with = "derived_name")] Name),
    #[error(
        "the host is in maintenance mode: {0}\n  hint: `forewarn host maintenance exit` ends it, `forewarn host show` has its progress"
    )]
    HostInMaintenance(#[serde(with = "derived_name")] Name),
    #[error(
        "the host is not in maintenance mode: {0}\n  hint: `forewarn host maintenance enter` has its machines leave"
    )]
    HostNotInMaintenance(#[serde(with = "derived_name")] Name),
    #[error(
        "machines are leaving the host, or work on the host itself is in progress: {0}\n  hint: wait until it has ended; \
         `forewarn host show` has its progress, `forewarn event give-up` or `forewarn host give-up` ends it"
    )]
    MaintenanceUnderWay(#[serde(with = "derived_name")] Name),
    #[error("the host cannot take the machines back now: {0}\n  hint: `forewarn host show` has its state")]
    NoReturn(#[serde(with = "derived_name")] Name),
    #[error("no work on the host itself is in progress: {0}")]
    NoStep(#[serde(with = "derived_name")] Name),
    #[error("no action of it is in progress")]
    NothingUnfinished,
    #[error("planned work on the host is announced or in progress: {0}")]
    HostBusy(#[serde(with = "derived_name")] Name),
    #[error(
        "planned work on a host is announced or in progress: {}\n  hint: wait until it has ended, or leave the host out; \
         with `--all` or `--zone`: {}",
        listed(.0),
        exclusions(.0)
    )]
    HostsInRollout(#[serde(with = "derived_names")] Vec<Name>),
    #[error(
        "no other host can take the machine: {0}\n  hint: it needs a healthy host in the same zone, without another update domain of its tenant"
    )]
    NoHost(#[serde(with = "derived_name")] Name),
    #[error(
        "no other host can take {machine}: it needs {size}; {hosts}\n  hint: free room on a host of its zone, or add a host"
    )]
    NoRoom {
        #[serde(with = "derived_name")]
        machine: Name,
        size: Size,
        hosts: String,
    },
    #[error(
        "the host has no room: the machine needs {size}; {free}\n  hint: choose another host, or free room on this one: {host}"
    )]
    HostFull {
        #[serde(with = "derived_name")]
        host: Name,
        size: Size,
        free: String,
    },
    #[error("terminate notification is not available for spot machines: {0}")]
    TerminateOnSpot(#[serde(with = "derived_name")] Name),
    #[error("not a spot machine: {0}")]
    NotSpot(#[serde(with = "derived_name")] Name),
    #[error("the machine is not running: {0}")]
    NotRunning(#[serde(with = "derived_name")] Name),
    #[error("the machine is deallocated: {0}\n  hint: start it first")]
    Deallocated(#[serde(with = "derived_name")] Name),
    #[error("an operation is already pending for {machine}: event {event}")]
    Pending {
        #[serde(with = "derived_name")]
        machine: Name,
        event: EventId,
    },
    #[error("an operation is already in progress for {0}")]
    UnderWay(#[serde(with = "derived_name")] Name),
    #[error(
        "the machine is part of planned work: {machine}{}\n  hint: cancel the work or wait until it ends; \
         `forewarn vm move --force` records the move anyway",
        the_event(*event)
    )]
    Planned {
        #[serde(with = "derived_name")]
        machine: Name,
        #[serde(deserialize_with = "Option::deserialize")]
        event: Option<EventId>,
    },
    #[error(
        "host {host} is not in the zone of the machine: {machine}\n  hint: machines never leave their zone"
    )]
    OtherZone {
        #[serde(with = "derived_name")]
        machine: Name,
        #[serde(with = "derived_name")]
        host: Name,
    },
    #[error("too many user operations are pending for {tenant}: the limit is {max}")]
    TooManyUserOperations {
        #[serde(with = "derived_name")]
        tenant: Name,
        max: u16,
    },
    #[error("unknown event id among the start requests")]
    UnknownEvent,
    #[error("no event id given")]
    NoEvents,
    #[error("the maintenance has started and cannot be cancelled")]
    AlreadyStarted,
    #[error("the brake is on, so nothing can start\n  hint: release the brake first")]
    BrakeOn,
    #[error("no hosts given")]
    NoHosts,
    #[error(
        "the host is not waiting in the rollout: {0}\n  hint: only hosts that have not been announced can be removed"
    )]
    NotWaiting(#[serde(with = "derived_name")] Name),
    #[error("the rollout has already processed the host: {0}")]
    AlreadyDone(#[serde(with = "derived_name")] Name),
    #[error(
        "the windows of the rollout and of the tenants on host {host} never overlap: {}\n  hint: leave the host out, or \
         change the windows of the rollout or of these tenants (`forewarn tenant set`)",
        listed(tenants)
    )]
    WindowsNeverMeet {
        #[serde(with = "derived_name")]
        host: Name,
        #[serde(with = "derived_names")]
        tenants: Vec<Name>,
    },
    #[error("the pause is too long: at most 7 days")]
    PauseTooLong,
    #[error("the expected failure is too far ahead: at most 7 days")]
    FailureTooFar,
    #[error("too many {what}: at most {max}")]
    TooMany { what: Cow<'static, str>, max: usize },
}

/// Names in a sentence: at most eight, and the number of the others.
fn listed(names: &[Name]) -> String {
    const NAMED_MAX: usize = 8;
    let named: Vec<_> = names.iter().take(NAMED_MAX).map(Name::as_str).collect();
    match names.len().saturating_sub(NAMED_MAX) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// The options that leave hosts out of a rollout.
fn exclusions(hosts: &[Name]) -> String {
    const NAMED_MAX: usize = 8;
    let options: Vec<_> = hosts.iter().take(NAMED_MAX).map(|host| format!("--except {host}")).collect();
    let more = if hosts.len() > NAMED_MAX { " …" } else { "" };
    format!("`{}{more}`", options.join(" "))
}

/// The event of planned work, as the end of a message.
fn the_event(event: Option<EventId>) -> String {
    event.map(|event| format!(", event {event}")).unwrap_or_default()
}

impl Refusal {
    /// The hosts that lack room for a machine, as a part of a sentence.
    pub(crate) fn lack_of_room(&self) -> Option<String> {
        let Self::NoRoom { machine, size, hosts } = self else { return None };
        Some(format!("{machine} needs {size}; {hosts}"))
    }

    pub(crate) fn check(count: usize, max: usize, what: &'static str) -> Result<(), Self> {
        if count > max { Err(Self::TooMany { what: what.into(), max }) } else { Ok(()) }
    }

    pub(crate) fn check_domains(placement: Placement) -> Result<(), Self> {
        let fits = placement.update_domain.0 < limits::UPDATE_DOMAINS_MAX
            && placement.fault_domain.0 < limits::FAULT_DOMAINS_MAX;
        if fits { Ok(()) } else { Err(Self::DomainOutOfRange) }
    }

    pub(crate) fn check_allocated(name: &Name, power: Power) -> Result<(), Self> {
        match power {
            Power::Deallocated => Err(Self::Deallocated(name.clone())),
            Power::Running | Power::Stopped => Ok(()),
        }
    }
}
