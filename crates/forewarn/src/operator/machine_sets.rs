//! `forewarn availabilityset` and `forewarn cloudservice`: tenants whose machines are created one by one.

use anyhow::Result;
use clap::{Args, Subcommand};
use forewarn_control::{MachineSetSummary, MachineSetView, NamedCommand, PolicyEntry, SetEntry};
use forewarn_types::show_duration;

use super::Name;
use super::event_id::short;
use super::sentences::Wording;
use super::session::{Session, escaped};
use super::shared_args::{ApprovalArgs, NewMachineArgs};
use super::table::{Table, Width, listed};
use super::task::{self, Task};
use super::tenant::automatic;
use super::vm::eviction;

const EXAMPLES: &str = "\
Examples:
  forewarn availabilityset create db
  forewarn availabilityset add-vm db db-0 --host h1 --update-domain 0 --fault-domain 0
  forewarn availabilityset add-vm db db-1 --host h2 --update-domain 1 --fault-domain 1";

const CLOUD_EXAMPLES: &str = "\
Examples:
  forewarn cloudservice create shop
  forewarn cloudservice add-instance shop FrontEnd_IN_0 --host h1 --update-domain 0";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List availability sets
    Ls,
    /// Show an availability set and its machines
    Show {
        /// Availability set
        name: Name,
    },
    /// Create an availability set without machines
    #[command(before_help = EXAMPLES)]
    Create(CreateSetArgs),
    /// Create a machine in an availability set
    #[command(before_help = EXAMPLES, alias = "add")]
    AddVm(AddMachineArgs),
    /// Delete an empty availability set
    #[command(alias = "rm")]
    Delete {
        /// Availability set
        name: Name,
    },
}

#[derive(Subcommand)]
pub(crate) enum CloudServiceCommand {
    /// List cloud services
    Ls,
    /// Show a cloud service and its role instances
    Show {
        /// Cloud service
        name: Name,
    },
    /// Create a cloud service without role instances
    #[command(before_help = CLOUD_EXAMPLES)]
    Create(CreateSetArgs),
    /// Create a role instance in a cloud service
    #[command(before_help = CLOUD_EXAMPLES, alias = "add")]
    AddInstance(AddMachineArgs),
    /// Delete an empty cloud service
    #[command(alias = "rm")]
    Delete {
        /// Cloud service
        name: Name,
    },
}

#[derive(Args)]
pub(crate) struct CreateSetArgs {
    /// Name of the set
    name: Name,
    #[command(flatten)]
    approvals: ApprovalArgs,
}

#[derive(Args)]
pub(crate) struct AddMachineArgs {
    /// Set to add the machine to
    name: Name,
    /// Name of the machine
    #[arg(value_name = "VM")]
    machine: Name,
    #[command(flatten)]
    new: NewMachineArgs,
}

const AVAILABILITY_SETS: &str = "/v1/availabilitysets";
const CLOUD_SERVICES: &str = "/v1/cloudservices";

pub(super) fn run(session: &Session, command: Command) -> Result<()> {
    let task = match command {
        Command::Ls => return list(session, AVAILABILITY_SETS),
        Command::Show { name } => return show(session, AVAILABILITY_SETS, &name),
        Command::Create(new) => new.task("availability set", NamedCommand::AdmitAvailabilitySet),
        Command::AddVm(new) => new.task(),
        Command::Delete { name } => deletion("availability set", name),
    };
    task::run(session, &task).map(drop)
}

pub(super) fn cloud(session: &Session, command: CloudServiceCommand) -> Result<()> {
    let task = match command {
        CloudServiceCommand::Ls => return list(session, CLOUD_SERVICES),
        CloudServiceCommand::Show { name } => return show(session, CLOUD_SERVICES, &name),
        CloudServiceCommand::Create(new) => new.task("cloud service", NamedCommand::AdmitCloudService),
        CloudServiceCommand::AddInstance(new) => new.task(),
        CloudServiceCommand::Delete { name } => deletion("cloud service", name),
    };
    task::run(session, &task).map(drop)
}

fn list(session: &Session, path: &str) -> Result<()> {
    session.list(path, |sets: Vec<MachineSetSummary>| Ok(table(&sets, session.width())))
}

fn show(session: &Session, path: &str, Name(name): &Name) -> Result<()> {
    session.show(&format!("{path}/{}", escaped(name)), |set| Ok(facts(set, session.width())))
}

impl CreateSetArgs {
    fn task(self, kind: &str, make: impl FnOnce(SetEntry) -> NamedCommand) -> Task {
        let Name(name) = self.name;
        let policy = self.approvals.change().unwrap_or_default().apply(PolicyEntry::default());
        let wording = Wording::creation(kind, &name);
        Task::new(wording, make(SetEntry { name, policy, windows: Vec::new(), machines: Vec::new() }))
    }
}

impl AddMachineArgs {
    fn task(self) -> Task {
        let (Name(tenant), Name(name)) = (self.name, self.machine);
        let wording = Wording::creation("machine", &format!("{tenant}/{name}"));
        Task::new(wording, NamedCommand::AdmitMachine { tenant, machine: self.new.named(name) })
    }
}

fn deletion(kind: &str, Name(tenant): Name) -> Task {
    Task::new(Wording::deletion(kind, &tenant), NamedCommand::RemoveTenant { tenant })
}

fn table(sets: &[MachineSetSummary], width: Width) -> String {
    let usual = ["name", "machines", "update domains", "fault domains", "enrolled", "events"];
    let dropped = ["fault domains", "update domains", "enrolled", "events", "machines"];
    let mut table =
        Table::with_more(width, &usual, &["automatic approval", "ids of events"]).dropping(&dropped);
    for set in sets {
        let usual = [
            set.name.clone(),
            set.size.to_string(),
            set.update_domains.to_string(),
            set.fault_domains.to_string(),
            if set.enrolled { "yes" } else { "no" }.to_owned(),
            set.events.len().to_string(),
        ];
        table.row_with_more(usual, [automatic(set.policy), listed(&set.events)]);
    }
    table.to_string()
}

fn facts(set: MachineSetView, width: Width) -> String {
    let MachineSetView { summary, machines } = set;
    let facts = Table::facts([
        ("name", summary.name),
        ("enrolled", if summary.enrolled { "yes" } else { "no" }.to_owned()),
        ("automatic approval", automatic(summary.policy)),
        ("update domains", summary.update_domains.to_string()),
        ("fault domains", summary.fault_domains.to_string()),
        ("events", listed(summary.events)),
    ]);
    let headings = ["name", "host", "ud", "fd", "power", "spot", "notice of deletion", "events"];
    let dropped = ["spot", "fd", "ud", "notice of deletion", "power", "host", "events"];
    let mut table = Table::new(width, &headings).dropping(&dropped);
    for machine in machines {
        table.row([
            machine.name,
            machine.host,
            machine.update_domain.to_string(),
            machine.fault_domain.to_string(),
            if machine.leaving { format!("{}, leaving", machine.power) } else { machine.power },
            eviction(machine.spot),
            machine.terminate.map(|span| show_duration(span.0)).unwrap_or_default(),
            listed(machine.events.iter().map(|id| short(id))),
        ]);
    }
    format!("{facts}\n{table}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_availability_set_is_listed_and_shown_with_its_machines() {
        let set = || -> MachineSetView {
            serde_json::from_value(serde_json::json!({
                "name": "db", "enrolled": true, "policy": {}, "size": 1, "update_domains": 1,
                "fault_domains": 1, "events": [], "machines": [
                    {"name": "db-0", "tenant": "db", "host": "h2", "update_domain": 0, "fault_domain": 0,
                     "power": "running", "spot": null, "terminate": null, "os_image": false, "leaving": false,
                     "events": []}
                ]
            }))
            .unwrap()
        };
        assert_eq!(
            table(&[set().summary], Width::USUAL),
            "NAME  MACHINES  UPDATE DOMAINS  FAULT DOMAINS  ENROLLED  EVENTS\n\
             db    1         1               1              yes       0\n"
        );
        assert!(facts(set(), Width::USUAL).ends_with(
            "\n\nNAME  HOST  UD  FD  POWER    SPOT  NOTICE OF DELETION  EVENTS\n\
             db-0  h2    0   0   running  -     -                   -\n"
        ));
    }
}
