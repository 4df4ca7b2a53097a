//! The preparation of a test: its fleet, and what happens to it.

use std::net::SocketAddr;

use anyhow::{Context, Result, anyhow};
use forewarn_control::Fleet;
use forewarn_lifecycle::Timestamp;
use forewarn_server::{ClockPlan, Plan, Speed};
use forewarn_story::{NeedKind, Story};
use forewarn_types::EventKind;
use forewarn_url::OwnHosts;

use super::TestArgs;
use crate::exit_code::ExitError;
use crate::requested_events::{RequestedEvent, check_order, fleet_for};
use crate::server::local::{LocalServer, seed, wall};
use crate::server::read_fleet;
use crate::server::resources::take_files;
use crate::story::source;

/// Name of the machine of a test without a fleet.
const DEFAULT_MACHINE: &str = "svc";

/// The part of a test that the command line decides.
pub(super) struct Preparation {
    fleet: Fleet,
    pub(super) scenario: Scenario,
    /// Machine of COMMAND, and of events without a machine. None: the first one.
    pub(super) default: Option<String>,
}

/// Everything that happens in a test.
pub(super) enum Scenario {
    /// Events, one after the other.
    Events(Vec<RequestedEvent>),
    Story(ScenarioStory),
}

/// A story, and its programs.
#[derive(Clone)]
pub(super) struct ScenarioStory {
    pub(super) name: String,
    pub(super) story: Story,
    /// True if the story itself starts COMMAND.
    starts_command: bool,
    /// True if there is a COMMAND, and the story does not start it.
    pub(super) is_command_due: bool,
}

impl Scenario {
    /// The name of the test.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Events(events) => events.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
            Self::Story(story) => story.name.clone(),
        }
    }
}

impl Preparation {
    pub(super) fn new(arguments: &TestArgs) -> Result<Self> {
        if let Some(source) = &arguments.story {
            let story = ScenarioStory::read(arguments).with_context(|| source.display().to_string());
            let story = story.map_err(ExitError::usage)?;
            if story.starts_command && arguments.vm.is_some() {
                let error = anyhow!("--vm does not apply: the story itself says which machine COMMAND is");
                return Err(ExitError::usage(error).into());
            }
            let default = arguments.vm.clone().or_else(|| story.story.command_machine());
            return Ok(Self { fleet: Fleet::default(), scenario: Scenario::Story(story), default });
        }
        let mut events = arguments.event.clone();
        if events.is_empty() {
            events.push(RequestedEvent { kind: EventKind::Reboot, machine: None });
        }
        let (fleet, default) = match &arguments.fleet {
            Some(file) => {
                let fleet = read_fleet(file).map_err(ExitError::usage)?;
                let default = arguments.vm.clone().or_else(|| first_machine(&fleet));
                (fleet, default)
            }
            None => {
                let named = events.first().and_then(|event| event.machine.clone());
                let default = arguments.vm.clone().or(named).unwrap_or_else(|| DEFAULT_MACHINE.to_owned());
                (fleet_for(&events, &default).map_err(ExitError::usage)?, Some(default))
            }
        };
        check_order(&events, default.as_deref().unwrap_or_default()).map_err(ExitError::usage)?;
        Ok(Self { fleet, scenario: Scenario::Events(events), default })
    }

    /// The first moment of the test. Every story begins at the same one: windows in it have fixed hours.
    fn beginning(&self) -> Timestamp {
        match self.scenario {
            Scenario::Events(_) => wall(),
            Scenario::Story(_) => forewarn_story::BEGINNING,
        }
    }

    /// The number of programs of the test.
    pub(super) fn program_count(&self) -> usize {
        match &self.scenario {
            Scenario::Events(_) => 1,
            Scenario::Story(story) => story.story.program_count() + usize::from(story.is_command_due),
        }
    }

    pub(super) fn plan(&self, arguments: &TestArgs) -> Plan {
        let local = LocalServer {
            mode: "test",
            fleet: self.fleet.clone(),
            seed: seed(0),
            clock: ClockPlan::Virtual { start: Some(self.beginning()), speed: Speed(0) },
            metadata_listen: arguments.metadata_listen.0,
            api_listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            default_vm: self.default.clone(),
            hosts: OwnHosts { container_names: arguments.open.container_names(), ..OwnHosts::default() },
        };
        take_files(local.plan())
    }
}

/// The machine of a fleet file that joins first.
fn first_machine(fleet: &Fleet) -> Option<String> {
    let vm = fleet.vms.first().map(|vm| vm.name.clone());
    let mut sets = fleet.availability_sets.iter().chain(&fleet.cloud_services);
    let in_set = || sets.find_map(|set| Some(format!("{}/{}", set.name, set.machines.first()?.name)));
    let mut scale_sets = fleet.scale_sets.iter();
    let instance = || {
        let set =
            scale_sets.find(|set| !set.instances.is_empty() || set.count.is_some_and(|count| count > 0))?;
        Some(format!("{0}/{0}_0", set.name))
    };
    vm.or_else(in_set).or_else(instance)
}

impl ScenarioStory {
    fn read(arguments: &TestArgs) -> Result<Self> {
        let source = arguments.story.as_deref().context("no story")?;
        let story = forewarn_story::parse(&source::read(source)?)?;
        story.check_live()?;
        story.check()?;
        let needs = story.needs();
        let starts_command = needs.iter().any(|need| need.kind == NeedKind::GivenCommand);
        let has_programs = needs.iter().any(|need| need.kind == NeedKind::Program);
        if arguments.command.is_empty() && (starts_command || !has_programs) {
            return Err(anyhow!(
                "the story needs a COMMAND\n  hint: write it after --, such as -- ./service"
            ));
        }
        let name = source.file_stem().unwrap_or(source.as_os_str()).to_string_lossy().into_owned();
        let is_command_due = !starts_command && !arguments.command.is_empty();
        Ok(Self { name, story, starts_command, is_command_due })
    }
}
