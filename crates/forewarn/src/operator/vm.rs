//! `forewarn vm`: machines.

use std::net::IpAddr;

use anyhow::{Result, bail};
use clap::{ArgGroup, Args, Subcommand};
use forewarn_control::{Eviction, MachineView, NamedCommand, PolicyEntry, VmEntry};
use forewarn_types::show_duration;

use super::Named;
use super::ask::{self, Errand, Patience};
use super::consent::Consent;
use super::explain::{self, Extent};
use super::identifier::short;
use super::session::{Session, escaped};
use super::table::{Table, Width, listed, some};
use super::wanted::{Approvals, NewMachine, Notices, Tag, tags};

const EXAMPLES: &str = "\
Examples:
  forewarn vm restart web_0
  forewarn vm restart web_0 web_1 --wait
  forewarn vm delete web/web_0          where several machines are called web_0";

const FORGET_EXAMPLES: &str = "\
The machine itself stays as it is: no event, no order to the driver. Events that name only it are withdrawn.

Example:
  forewarn vm forget web_0";

const MOVE_EXAMPLES: &str = "\
Nothing is moved: Forewarn takes note of where the machine runs, without an event and without an order to the driver. `forewarn
vm redeploy` moves a machine.

Examples:
  forewarn vm move web_0 --host h2
  forewarn vm move web_0 web_1 --host h2 --force    although planned work names them";

const CREATE_EXAMPLES: &str = "\
Examples:
  forewarn vm create solo --host h1 --address 10.0.0.4
  forewarn vm create cheap --host h2 --spot deallocate
  forewarn vm create shop --host h3 --terminate-delay 10m --tag role=front";

const DESCRIBE_EXAMPLES: &str = "\
Examples:
  forewarn vm describe web_0 --address 10.0.0.4 --address 10.0.0.5
  forewarn vm describe web_0 --tag role=front --tag owner=shop
  forewarn vm describe web_0 --no-addresses";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  forewarn vm explain web_0             who has restarted it, and why
  forewarn vm explain web/web_9 --all   also where it is gone: all that the trail has of it";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List machines.
    Ls {
        /// Only those of this tenant.
        #[arg(long)]
        tenant: Option<Named>,
    },
    /// Show a machine.
    Show {
        /// Its name, or tenant/name.
        name: Named,
    },
    /// Make a machine of its own: a tenant with one machine.
    #[command(after_help = CREATE_EXAMPLES)]
    Create {
        /// Its name.
        name: Named,
        #[command(flatten)]
        new: NewMachine,
        #[command(flatten)]
        approvals: Approvals,
    },
    /// Say from where a machine calls, and what its owner notes of it; what is not said stays.
    #[command(after_help = DESCRIBE_EXAMPLES)]
    Describe(Describe),
    /// Change what a machine is told of its deletion and of new images; what is not said stays.
    Update {
        /// Its name, or tenant/name.
        name: Named,
        #[command(flatten)]
        notices: Notices,
    },
    /// Explain a machine: what has happened to it and who asked for that, what is coming. Also one that is gone.
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain {
        /// Its name, or tenant/name.
        name: Named,
        /// Its whole history, not only the newest of it.
        #[arg(long)]
        all: bool,
    },
    /// Restart machines: disks stay, memory is lost.
    #[command(after_help = EXAMPLES)]
    Restart(Machines),
    /// Move machines to other hosts: memory and ephemeral disks are lost.
    Redeploy(Machines),
    /// Give machines their operating-system image anew.
    Reimage(Doomed),
    /// Stop machines; they keep their hosts.
    Stop(Machines),
    /// Start machines that are stopped or deallocated.
    Start(Machines),
    /// Stop machines and take them from their hosts.
    Deallocate(Machines),
    /// Delete machines.
    #[command(after_help = EXAMPLES)]
    Delete(Doomed),
    /// Evict spot machines.
    Evict(Doomed),
    /// Stop managing machines without touching them.
    #[command(after_help = FORGET_EXAMPLES)]
    Forget {
        /// Their names, or tenant/name.
        #[arg(required = true, value_name = "NAME")]
        names: Vec<Named>,
    },
    /// Record that machines run on another host, to which they were moved by other means.
    #[command(after_help = MOVE_EXAMPLES)]
    Move {
        /// Their names, or tenant/name.
        #[arg(required = true, value_name = "NAME")]
        names: Vec<Named>,
        /// The host they run on now.
        #[arg(long, value_name = "HOST")]
        host: Named,
        /// Record it although planned work names them; work that concerns no machine any more is withdrawn.
        #[arg(long)]
        force: bool,
    },
    /// Have the next thing fail that is done to machines; only where they pretend.
    Jam(Machines),
}

#[derive(Args)]
#[command(group = ArgGroup::new("what").required(true).multiple(true))]
pub(crate) struct Describe {
    /// Its name, or tenant/name.
    name: Named,
    /// An address from which it calls, and no others than those that are said.
    #[arg(long = "address", value_name = "IP", group = "what")]
    addresses: Vec<IpAddr>,
    /// It calls from nowhere.
    #[arg(long, conflicts_with = "addresses", group = "what")]
    no_addresses: bool,
    /// A name and a value of its owner, and no others than those that are said.
    #[arg(long = "tag", value_name = "NAME=VALUE", group = "what")]
    tags: Vec<Tag>,
    /// Its owner notes nothing of it.
    #[arg(long, conflicts_with = "tags", group = "what")]
    no_tags: bool,
}

#[derive(Args)]
pub(crate) struct Machines {
    /// Their names, or tenant/name.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<Named>,
    #[command(flatten)]
    patience: Patience,
}

/// Machines that lose themselves or their data.
#[derive(Args)]
pub(crate) struct Doomed {
    #[command(flatten)]
    machines: Machines,
    #[command(flatten)]
    consent: Consent,
}

impl Doomed {
    /// The machines, once the operator has confirmed what is done to them.
    fn confirmed(self, session: &Session, verb: &str) -> Result<Machines> {
        let names: Vec<_> = self.machines.names.iter().map(|Named(name)| name.clone()).collect();
        self.consent.obtain(session, &format!("{verb} of {}", some(&names)))?;
        Ok(self.machines)
    }
}

pub(super) fn run(session: &Session, command: Command) -> Result<()> {
    let (machines, verb, make): (_, _, fn(String) -> NamedCommand) = match command {
        Command::Ls { tenant } => return list(session, tenant.as_ref()),
        Command::Show { name } => return show(session, &name),
        Command::Create { name, new, approvals } => return create(session, name, new, approvals),
        Command::Describe(described) => return describe(session, described),
        Command::Update { name, notices } => return update(session, &name, notices),
        Command::Explain { name, all } => {
            let extent = if all { Extent::Whole } else { Extent::Newest };
            return explain::machine(session, &name, extent);
        }
        Command::Restart(machines) => (machines, "restart", |machine| NamedCommand::Restart { machine }),
        Command::Redeploy(machines) => (machines, "redeploy", |machine| NamedCommand::Redeploy { machine }),
        Command::Reimage(doomed) => {
            (doomed.confirmed(session, "reimage")?, "reimage", |machine| NamedCommand::Reimage { machine })
        }
        Command::Stop(machines) => (machines, "stop", |machine| NamedCommand::Stop { machine }),
        Command::Start(machines) => (machines, "start", |machine| NamedCommand::Start { machine }),
        Command::Deallocate(machines) => {
            (machines, "deallocation", |machine| NamedCommand::Deallocate { machine })
        }
        Command::Delete(doomed) => {
            (doomed.confirmed(session, "delete")?, "delete", |machine| NamedCommand::Delete { machine })
        }
        Command::Evict(doomed) => {
            (doomed.confirmed(session, "eviction")?, "eviction", |machine| NamedCommand::Evict { machine })
        }
        Command::Forget { names } => return forget(session, names),
        Command::Move { names, host: Named(host), force } => {
            let record = |machine| NamedCommand::Move { machine, host: host.clone(), force };
            return record_moves(session, names, &host, record);
        }
        Command::Jam(machines) => (machines, "jam", |machine| NamedCommand::Jam { machine }),
    };
    let errands = machines
        .names
        .into_iter()
        .map(|Named(name)| Errand::new(format!("{verb} of {name}"), make(name.clone())).about(name));
    ask::all(session, &errands.collect::<Vec<_>>(), machines.patience)
}

fn forget(session: &Session, names: Vec<Named>) -> Result<()> {
    let errand = |Named(machine): Named| {
        let phrase = format!("removal of {machine} from management");
        Errand::new(phrase, NamedCommand::Forget { machine })
    };
    let errands: Vec<_> = names.into_iter().map(errand).collect();
    ask::all(session, &errands, Patience::NONE)
}

fn record_moves(
    session: &Session,
    names: Vec<Named>,
    host: &str,
    record: impl Fn(String) -> NamedCommand,
) -> Result<()> {
    let errand = |Named(machine): Named| Errand::new(format!("move of {machine} to {host}"), record(machine));
    let errands: Vec<_> = names.into_iter().map(errand).collect();
    ask::all(session, &errands, Patience::NONE)
}

fn create(session: &Session, Named(name): Named, new: NewMachine, approvals: Approvals) -> Result<()> {
    let phrase = format!("machine {name}");
    let machine = new.named(name);
    let entry = VmEntry {
        name: machine.name,
        host: machine.host,
        update_domain: machine.update_domain,
        fault_domain: machine.fault_domain,
        spot: machine.spot,
        terminate: machine.terminate,
        os_image: machine.os_image,
        policy: approvals.change().unwrap_or_default().apply(PolicyEntry::default()),
        addresses: machine.addresses,
        tags: machine.tags,
    };
    ask::one(session, &Errand::new(phrase, NamedCommand::AdmitVm(entry))).map(drop)
}

fn describe(session: &Session, described: Describe) -> Result<()> {
    let Named(machine) = described.name;
    let phrase = format!("description of {machine}");
    let addresses =
        (described.no_addresses || !described.addresses.is_empty()).then_some(described.addresses);
    let tags = (described.no_tags || !described.tags.is_empty()).then(|| tags(described.tags));
    ask::one(session, &Errand::new(phrase, NamedCommand::Describe { machine, addresses, tags })).map(drop)
}

fn update(session: &Session, Named(name): &Named, notices: Notices) -> Result<()> {
    if notices.is_empty() {
        bail!("nothing to change\n  hint: forewarn vm update --help");
    }
    let now: MachineView = session.get(&format!("/v1/machines/{}", escaped(name)))?;
    let command = NamedCommand::ChangeProfile {
        machine: format!("{}/{}", now.tenant, now.name),
        terminate: notices.terminate(now.terminate).unwrap_or(now.terminate),
        os_image: notices.os_image().unwrap_or(now.os_image),
    };
    ask::one(session, &Errand::new(format!("update of {name}"), command)).map(drop)
}

fn list(session: &Session, tenant: Option<&Named>) -> Result<()> {
    let query = tenant.map(|Named(name)| format!("?tenant={}", escaped(name))).unwrap_or_default();
    session.list(&format!("/v1/machines{query}"), |machines: Vec<MachineView>| {
        Ok(table(&machines, session.width()))
    })
}

fn table(machines: &[MachineView], width: Width) -> String {
    let usual = ["name", "tenant", "host", "ud", "fd", "power", "spot", "events"];
    let more = ["boots", "disk", "model", "notice of deletion", "addresses", "tags"];
    let mut table = Table::with_more(width, &usual, &more);
    for machine in machines {
        let usual = [
            machine.name.clone(),
            machine.tenant.clone(),
            machine.host.clone(),
            machine.update_domain.to_string(),
            machine.fault_domain.to_string(),
            machine.power.clone(),
            eviction(machine.spot),
            listed(machine.events.iter().map(|id| short(id))),
        ];
        let more = [
            machine.boots.to_string(),
            machine.disk.to_string(),
            machine.model.to_string(),
            machine.terminate.map(|span| show_duration(span.0)).unwrap_or_default(),
            listed(machine.addresses.iter().map(ToString::to_string)),
            listed(machine.tags.iter().map(|(name, value)| format!("{name}={value}"))),
        ];
        table.row_with_more(usual, more);
    }
    table.to_string()
}

fn show(session: &Session, Named(name): &Named) -> Result<()> {
    // The whole name as one part of the path: the server takes it apart, and knows what to say where that fails.
    session.show(&format!("/v1/machines/{}", escaped(name)), |machine| Ok(facts(machine)))
}

fn facts(machine: MachineView) -> String {
    let facts = [
        ("name", machine.name),
        ("tenant", machine.tenant),
        ("host", machine.host),
        ("update domain", machine.update_domain.to_string()),
        ("fault domain", machine.fault_domain.to_string()),
        ("power", machine.power),
        ("boots", machine.boots.to_string()),
        ("ephemeral disk", machine.disk.to_string()),
        ("spot", eviction(machine.spot)),
        ("notice of deletion", machine.terminate.map(|span| show_duration(span.0)).unwrap_or_default()),
        ("notice of images", if machine.os_image { "15m" } else { "" }.to_owned()),
        ("model", machine.model.to_string()),
        ("addresses", listed(machine.addresses.iter().map(ToString::to_string))),
        ("tags", listed(machine.tags.iter().map(|(name, value)| format!("{name}={value}")))),
        ("events", listed(machine.events)),
    ];
    Table::facts(facts).to_string()
}

pub(super) fn eviction(spot: Option<Eviction>) -> String {
    match spot {
        Some(Eviction::Delete) => "delete",
        Some(Eviction::Deallocate) => "deallocate",
        None => "",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> MachineView {
        serde_json::from_value(serde_json::json!({
            "name": "web_0", "tenant": "web", "host": "h1", "update_domain": 0, "fault_domain": 2,
            "power": "running", "boots": 1, "disk": 1, "spot": null, "terminate": "5m", "os_image": false,
            "model": 1, "addresses": ["10.0.0.4"], "tags": {"role": "front"},
            "events": ["28512AF7-C957-4500-9BC4-842D6FB531E4"]
        }))
        .unwrap()
    }

    #[test]
    fn machines_are_listed_one_a_line() {
        let spot = MachineView { spot: Some(Eviction::Delete), events: Vec::new(), ..machine() };
        assert_eq!(
            table(&[machine(), spot], Width::Usual),
            "NAME   TENANT  HOST  UD  FD  POWER    SPOT    EVENTS\n\
             web_0  web     h1    0   2   running  -       28512AF7\n\
             web_0  web     h1    0   2   running  delete  -\n"
        );
    }

    #[test]
    fn a_wide_list_of_machines_has_the_rest() {
        assert_eq!(
            table(&[machine()], Width::Wide),
            "NAME   TENANT  HOST  UD  FD  POWER    SPOT  EVENTS    BOOTS  DISK  MODEL  NOTICE OF DELETION  ADDRESSES  TAGS\n\
             web_0  web     h1    0   2   running  -     28512AF7  1      1     1      5m                  10.0.0.4   role=front\n"
        );
    }

    #[test]
    fn a_machine_is_shown_whole() {
        let shown = facts(machine());
        assert!(shown.contains("notice of deletion  5m\n"), "{shown}");
        assert!(shown.contains("tags                role=front\n"), "{shown}");
        assert!(shown.ends_with("events              28512AF7-C957-4500-9BC4-842D6FB531E4\n"), "{shown}");
    }
}
