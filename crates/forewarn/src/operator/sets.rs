//! `forewarn availabilityset` and `forewarn cloudservice`: machines that are told of events together.

use anyhow::Result;
use clap::{Args, Subcommand};
use forewarn_control::{AvailabilitySetSummary, AvailabilitySetView, NamedCommand, PolicyEntry, SetEntry};
use forewarn_types::show_duration;

use super::Named;
use super::ask::{self, Errand};
use super::identifier::short;
use super::session::{Session, escaped};
use super::table::{Table, Width, listed};
use super::tenant::automatic;
use super::vm::eviction;
use super::wanted::{Approvals, NewMachine};

const EXAMPLES: &str = "\
Example:
  forewarn availabilityset create db
  forewarn availabilityset add db db-0 --host h1 --update-domain 0 --fault-domain 0
  forewarn availabilityset add db db-1 --host h2 --update-domain 1 --fault-domain 1";

const CLOUD_EXAMPLES: &str = "\
Example:
  forewarn cloudservice create shop
  forewarn cloudservice add shop FrontEnd_IN_0 --host h1 --update-domain 0";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List availability sets.
    Ls,
    /// Show an availability set and its machines.
    Show {
        /// Its name.
        name: Named,
    },
    /// Make an availability set; its machines come one by one.
    #[command(after_help = EXAMPLES)]
    Create(Create),
    /// Make a machine of an availability set.
    #[command(after_help = EXAMPLES)]
    Add(Add),
    /// Remove an availability set that has no machines.
    Rm {
        /// Its name.
        name: Named,
    },
}

#[derive(Subcommand)]
pub(crate) enum CloudCommand {
    /// Make a cloud service; its role instances come one by one.
    #[command(after_help = CLOUD_EXAMPLES)]
    Create(Create),
    /// Make a role instance of a cloud service.
    #[command(after_help = CLOUD_EXAMPLES)]
    Add(Add),
    /// Remove a cloud service that has no role instances.
    Rm {
        /// Its name.
        name: Named,
    },
}

#[derive(Args)]
pub(crate) struct Create {
    /// Its name.
    name: Named,
    #[command(flatten)]
    approvals: Approvals,
}

#[derive(Args)]
pub(crate) struct Add {
    /// The set.
    name: Named,
    /// The machine.
    #[arg(value_name = "VM")]
    machine: Named,
    #[command(flatten)]
    new: NewMachine,
}

pub(super) fn run(session: &Session, command: Command) -> Result<()> {
    let errand = match command {
        Command::Ls => {
            let table = |sets: Vec<AvailabilitySetSummary>| Ok(table(&sets, session.width()));
            return session.list("/v1/availabilitysets", table);
        }
        Command::Show { name: Named(name) } => {
            return session.show(&format!("/v1/availabilitysets/{}", escaped(&name)), |set| Ok(facts(set)));
        }
        Command::Create(wanted) => wanted.errand("availability set", NamedCommand::AdmitAvailabilitySet),
        Command::Add(wanted) => wanted.errand(),
        Command::Rm { name } => removal("availability set", name),
    };
    ask::one(session, &errand).map(drop)
}

pub(super) fn cloud(session: &Session, command: CloudCommand) -> Result<()> {
    let errand = match command {
        CloudCommand::Create(wanted) => wanted.errand("cloud service", NamedCommand::AdmitCloudService),
        CloudCommand::Add(wanted) => wanted.errand(),
        CloudCommand::Rm { name } => removal("cloud service", name),
    };
    ask::one(session, &errand).map(drop)
}

impl Create {
    fn errand(self, what: &str, make: impl FnOnce(SetEntry) -> NamedCommand) -> Errand {
        let Named(name) = self.name;
        let policy = self.approvals.change().unwrap_or_default().apply(PolicyEntry::default());
        let phrase = format!("{what} {name}");
        Errand::new(phrase, make(SetEntry { name, policy, machines: Vec::new() }))
    }
}

impl Add {
    fn errand(self) -> Errand {
        let (Named(tenant), Named(name)) = (self.name, self.machine);
        let phrase = format!("machine {name} of {tenant}");
        Errand::new(phrase, NamedCommand::AdmitMachine { tenant, machine: self.new.named(name) })
    }
}

fn removal(what: &str, Named(tenant): Named) -> Errand {
    Errand::new(format!("removal of {what} {tenant}"), NamedCommand::RemoveTenant { tenant })
}

fn table(sets: &[AvailabilitySetSummary], width: Width) -> String {
    let usual = ["name", "machines", "update domains", "fault domains", "enrolled", "events"];
    let mut table = Table::with_more(width, &usual, &["approves itself", "ids of events"]);
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

fn facts(set: AvailabilitySetView) -> String {
    let AvailabilitySetView { summary, machines } = set;
    let facts = Table::facts([
        ("name", summary.name),
        ("enrolled", if summary.enrolled { "yes" } else { "no" }.to_owned()),
        ("approves itself", automatic(summary.policy)),
        ("update domains", summary.update_domains.to_string()),
        ("fault domains", summary.fault_domains.to_string()),
        ("events", listed(summary.events)),
    ]);
    let mut table =
        Table::new(&["name", "host", "ud", "fd", "power", "spot", "notice of deletion", "events"]);
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
        let set = || -> AvailabilitySetView {
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
            table(&[set().summary], Width::Usual),
            "NAME  MACHINES  UPDATE DOMAINS  FAULT DOMAINS  ENROLLED  EVENTS\n\
             db    1         1               1              yes       0\n"
        );
        assert!(facts(set()).ends_with(
            "\n\nNAME  HOST  UD  FD  POWER    SPOT  NOTICE OF DELETION  EVENTS\n\
             db-0  h2    0   0   running  -     -                   -\n"
        ));
    }
}
