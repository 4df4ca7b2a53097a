//! Events that `--event` requests, of `forewarn test` and `forewarn dev`: their fleet, and their commands.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use forewarn_control::{
    Eviction, Fleet, HostEntry, HostWorkEntry, NamedCommand, Outcome, VmEntry, WorkNotice, find_machine,
    full_name,
};
use forewarn_lifecycle::{MachineId, Name};
use forewarn_server::{ControlHandle, State};
use forewarn_types::{EventKind, Span};

use crate::event_pattern::{EventPattern, not_a_type};

/// Events on one command line.
pub(crate) const EVENTS_MAX: usize = 100;

/// Notice of a deletion in a fleet that is made for requested events: the shortest.
const TERMINATE_NOTICE: Duration = Duration::from_mins(5);

/// The longest time until an event.
const AFTER_MAX: Duration = Duration::from_hours(24 * 30);

/// Reads the time until an event.
pub(crate) fn parse_after(text: &str) -> Result<Duration, String> {
    let after = forewarn_types::parse_duration(text).filter(|after| *after <= AFTER_MAX);
    after.ok_or_else(|| "not a duration of at most 30d: write 10s, 5m".to_owned())
}

/// Pause between two looks at the state.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// An event that is requested by its type and its machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestedEvent {
    pub(crate) kind: EventKind,
    /// Name of the machine. None: the default machine.
    pub(crate) machine: Option<String>,
}

impl FromStr for RequestedEvent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let EventPattern { kind, machine } = text.parse()?;
        Ok(Self { kind: kind.ok_or_else(not_a_type)?, machine })
    }
}

impl fmt::Display for RequestedEvent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.machine {
            Some(machine) => write!(out, "{}:{machine}", self.kind.as_str()),
            None => write!(out, "{}", self.kind.as_str()),
        }
    }
}

impl RequestedEvent {
    /// Name of its machine.
    pub(crate) fn machine<'a>(&'a self, default: &'a str) -> &'a str {
        self.machine.as_deref().unwrap_or(default)
    }

    /// The command that makes the event.
    fn command(&self, state: &State<'_>, id: MachineId) -> Option<NamedCommand> {
        let machine = full_name(state.cluster, id);
        Some(match self.kind {
            EventKind::Reboot => NamedCommand::Restart { machine },
            EventKind::Redeploy => NamedCommand::Redeploy { machine },
            EventKind::Terminate => NamedCommand::Delete { machine },
            EventKind::Preempt => NamedCommand::Evict { machine },
            EventKind::Freeze => {
                let host = state.cluster.host(state.cluster.machine(id)?.host)?.name.to_string();
                let hosts = vec![host];
                NamedCommand::UpdateHosts(HostWorkEntry { hosts, work: None, no_work: false, duration: None })
            }
        })
    }

    /// Requests the event. Fails if the rules refuse it, or make another event or none.
    pub(crate) async fn announce(&self, control: &ControlHandle, default: &str) -> Result<Outcome> {
        let name = self.machine(default);
        let found = control.look(|state| {
            let id = find_machine(state.cluster, name)?;
            Ok::<_, anyhow::Error>(self.command(state, id))
        })?;
        let command = found.with_context(|| format!("--event {self}"))?.context("the machine has no host")?;
        let outcome = control.run_commands(vec![command]).await;
        let outcome = outcome.with_context(|| format!("--event {self}: refused"))?;
        if outcome.events.iter().any(|event| event.kind == self.kind.as_str()) {
            return Ok(outcome);
        }
        let starts = &outcome.starts;
        if starts.iter().any(|start| start.notice == WorkNotice::Unenrolled) {
            bail!("--event {self}: it is not announced: the tenant of {name} is not enrolled");
        }
        if self.kind == EventKind::Terminate && starts.iter().any(|start| start.remedy.is_some()) {
            bail!(
                "--event {self}: {name} has no terminate notification, so its deletion is not announced\n  \
                 hint: `terminate = \"5m\"` in the fleet file, or no --fleet"
            );
        }
        bail!("--event {self}: the request made no event of this type for {name}")
    }

    /// Waits until the tenant of the machine is enrolled, and then for a time on the clock; then requests the event and
    /// waits for its end.
    pub(crate) async fn happen(&self, control: &ControlHandle, default: &str, after: Duration) -> Result<()> {
        let name = self.machine(default);
        let is_enrolled = |state: &State<'_>| {
            let machine = find_machine(state.cluster, name)?;
            let tenant = state.cluster.machine(machine).and_then(|known| state.cluster.tenant(known.tenant));
            Ok::<_, anyhow::Error>(tenant.is_some_and(forewarn_lifecycle::Tenant::is_enrolled))
        };
        while !control.look(is_enrolled)?.with_context(|| format!("--event {self}"))? {
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
        let due = control.clock().now().steady.plus(after);
        while control.clock().now().steady < due {
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
        let outcome = self.announce(control, default).await?;
        let is_left = |state: &State<'_>| {
            let mut all = state.cluster.maintenances();
            all.any(|one| outcome.work.contains(&one.plan.id.0))
        };
        while control.look(is_left)? {
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
        Ok(())
    }
}

/// A fleet for events: one VM for each machine that they name, each on its own host, and a host without machines.
pub(crate) fn fleet_for(events: &[RequestedEvent], default: &str) -> Result<Fleet> {
    let mut names = vec![default];
    for event in events {
        if let Some(name) = event.machine.as_deref()
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
    // A default machine that no event names is not needed.
    if !events.is_empty()
        && events.iter().all(|event| event.machine.as_deref().is_some_and(|name| name != default))
    {
        names.remove(0);
    }
    for name in &names {
        Name::new(name).with_context(|| format!("invalid name of a machine: {name:?}"))?;
    }
    let host = |number: usize| HostEntry { name: format!("h{number}"), zone: None, cpus: None, memory: None };
    let hosts = (1..=names.len() + 1).map(host).collect();
    let vms = (1..).zip(names).map(|(number, name)| vm_for(events, default, name, number));
    Ok(Fleet { hosts, vms: vms.collect::<Result<_>>()?, ..Fleet::default() })
}

fn vm_for(events: &[RequestedEvent], default: &str, name: &str, number: usize) -> Result<VmEntry> {
    let kinds: Vec<_> =
        events.iter().filter(|event| event.machine(default) == name).map(|event| event.kind).collect();
    let has = |kind: EventKind| kinds.contains(&kind);
    ensure!(
        !(has(EventKind::Preempt) && has(EventKind::Terminate)),
        "{name} cannot get both Preempt and Terminate: each of them is its end\n  \
         hint: name two machines: --event Preempt:a --event Terminate:b"
    );
    Ok(VmEntry {
        name: name.to_owned(),
        host: format!("h{number}"),
        spot: has(EventKind::Preempt).then_some(Eviction::Deallocate),
        terminate: has(EventKind::Terminate).then_some(Span(TERMINATE_NOTICE)),
        ..toml::from_str(&format!("name = {name:?}\nhost = \"h{number}\""))
            .with_context(|| format!("invalid name of a machine: {name:?}"))?
    })
}

/// Checks that no event follows the end of its machine.
pub(crate) fn check_order(events: &[RequestedEvent], default: &str) -> Result<()> {
    ensure!(events.len() <= EVENTS_MAX, "too many events: at most {EVENTS_MAX}");
    for (place, event) in events.iter().enumerate() {
        let is_end = matches!(event.kind, EventKind::Preempt | EventKind::Terminate);
        let name = event.machine(default);
        if is_end && events[place + 1..].iter().any(|later| later.machine(default) == name) {
            let kind = event.kind.as_str();
            bail!(
                "{name} gets another event after its {kind}, which is its end\n  \
                 hint: give --event {kind} last, or name another machine: --event {kind}:NAME"
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(texts: &[&str]) -> Vec<RequestedEvent> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn an_event_is_a_type_and_perhaps_a_machine() {
        let event: RequestedEvent = "reboot:web_0".parse().unwrap();
        assert_eq!((event.kind, event.machine("svc")), (EventKind::Reboot, "web_0"));
        let event: RequestedEvent = "Freeze".parse().unwrap();
        assert_eq!((event.to_string().as_str(), event.machine("svc")), ("Freeze", "svc"));
        for wrong in ["", "Thaw", "Reboot:", ":web_0"] {
            assert!(wrong.parse::<RequestedEvent>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_fleet_has_the_machines_that_events_name_and_what_they_need() {
        let fleet = fleet_for(&events(&["Reboot", "Preempt:cheap", "Terminate:shop"]), "svc").unwrap();
        let names: Vec<_> = fleet.vms.iter().map(|vm| vm.name.as_str()).collect();
        assert_eq!(names, ["svc", "cheap", "shop"]);
        assert_eq!(fleet.hosts.len(), 4);
        assert_eq!(fleet.vms[1].spot, Some(Eviction::Deallocate));
        assert_eq!(fleet.vms[2].terminate, Some(Span(TERMINATE_NOTICE)));
        assert_eq!((fleet.vms[0].spot, fleet.vms[0].terminate), (None, None));
        let fleet = fleet_for(&events(&["Reboot:a"]), "svc").unwrap();
        assert_eq!(fleet.vms.len(), 1);
        assert_eq!(fleet_for(&[], "svc").unwrap().vms[0].name, "svc");
    }

    #[test]
    fn a_machine_has_one_end_and_nothing_after_it() {
        let both = fleet_for(&events(&["Preempt", "Terminate"]), "svc").unwrap_err().to_string();
        assert!(both.contains("hint: name two machines"), "{both}");
        assert!(check_order(&events(&["Reboot", "Terminate"]), "svc").is_ok());
        assert!(check_order(&events(&["Preempt:a", "Reboot:b"]), "svc").is_ok());
        let late = check_order(&events(&["Terminate", "Reboot:svc"]), "svc").unwrap_err().to_string();
        assert!(late.contains("another event after its Terminate"), "{late}");
    }
}
