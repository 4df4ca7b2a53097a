//! `forewarn vm`: machines.

use anyhow::Result;
use clap::{Args, Subcommand};
use forewarn_control::{Eviction, MachineView, NamedCommand, PolicyEntry, VmEntry};
use forewarn_types::show_duration;

use super::Name;
use super::confirmation::ConfirmationArgs;
use super::event_id::short;
use super::explain::{self, HistoryExtent};
use super::host;
use super::sentences::Wording;
use super::session::{Session, escaped};
use super::shared_args::{ApprovalArgs, NewMachineArgs};
use super::table::{Table, Width, listed, some};
use super::task::{self, NoticeRequirement, Task, WaitArgs};
use super::vm_set::{self, VmSetArgs};

const RESTART_EXAMPLES: &str = "\
Examples:
  forewarn vm restart web_0
  forewarn vm restart web_0 web_1 --wait";

const DELETE_EXAMPLES: &str = "\
Examples:
  forewarn vm delete web_0
  forewarn vm delete web/web_0          if several machines are named web_0";

const STOP_EXAMPLES: &str = "\
Example:
  forewarn vm stop web_0 --wait";

const LIST_EXAMPLES: &str = "\
Examples:
  forewarn vm ls --tenant web
  forewarn vm ls --output wide";

const FORGET_EXAMPLES: &str = "\
The machine itself does not change: there is no event, and the driver does nothing. Events that name only this \
machine are withdrawn.

Example:
  forewarn vm forget web_0";

const MOVE_EXAMPLES: &str = "\
This command moves nothing: it records the host of the machine, without an event and without the driver. To move a machine, \
use `forewarn vm redeploy`.

Examples:
  forewarn vm move web_0 --host h2
  forewarn vm move web_0 web_1 --host h2 --force    even if they have planned work";

const CREATE_EXAMPLES: &str = "\
Examples:
  forewarn vm create solo --host h1 --address 10.0.0.4
  forewarn vm create cheap --host h2 --spot deallocate
  forewarn vm create shop --host h3 --terminate-delay 10m --tag role=front";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  forewarn vm explain web_0             recent history: restarts, their reasons and their callers
  forewarn vm explain web/web_9 --all   all entries of the audit log, also for a deleted machine";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List machines
    #[command(before_help = LIST_EXAMPLES)]
    Ls {
        /// Only machines of this tenant
        #[arg(long)]
        tenant: Option<Name>,
    },
    /// Show a machine
    Show {
        /// Machine, as NAME or TENANT/NAME
        name: Name,
    },
    /// Create a standalone machine: a tenant with one machine
    #[command(before_help = CREATE_EXAMPLES)]
    Create {
        /// Name of the machine
        name: Name,
        #[command(flatten)]
        new: NewMachineArgs,
        #[command(flatten)]
        approvals: ApprovalArgs,
    },
    /// Set the addresses, tags, notices and size of a machine; omitted options keep their value
    #[command(before_help = vm_set::EXAMPLES, aliases = ["describe", "update"])]
    Set(VmSetArgs),
    /// Explain the past and planned operations on a machine, with reasons and callers; also of a deleted one
    #[command(before_help = EXPLAIN_EXAMPLES)]
    Explain {
        /// Machine, as NAME or TENANT/NAME
        name: Name,
        /// Print the complete history, not only the latest entries
        #[arg(long)]
        all: bool,
    },
    /// Restart machines; disks are kept, memory is lost
    #[command(before_help = RESTART_EXAMPLES, visible_alias = "reboot")]
    Restart(AnnouncedArgs),
    /// Redeploy machines to other hosts; memory and ephemeral disks are lost
    Redeploy(AnnouncedArgs),
    /// Reimage machines: reset the OS disk to its image
    Reimage(DestructiveArgs),
    /// Stop machines; they stay on their hosts
    #[command(before_help = STOP_EXAMPLES)]
    Stop(MachinesArgs),
    /// Start stopped or deallocated machines
    Start(MachinesArgs),
    /// Stop machines and release their hosts
    Deallocate(MachinesArgs),
    /// Delete machines
    #[command(before_help = DELETE_EXAMPLES)]
    Delete(DestructiveArgs),
    /// Evict spot machines
    Evict(DestructiveArgs),
    /// Stop managing machines, without changing them
    #[command(before_help = FORGET_EXAMPLES)]
    Forget {
        /// Machines, as NAME or TENANT/NAME
        #[arg(required = true, value_name = "NAME")]
        names: Vec<Name>,
    },
    /// Record that machines now run on another host, after a move outside of Forewarn
    #[command(before_help = MOVE_EXAMPLES)]
    Move {
        /// Machines, as NAME or TENANT/NAME
        #[arg(required = true, value_name = "NAME")]
        names: Vec<Name>,
        /// Host on which the machines run now
        #[arg(long, value_name = "HOST")]
        host: Name,
        /// Record the move even if the machines have planned work; work without machines is withdrawn
        #[arg(long)]
        force: bool,
    },
    /// Make the next operation on these machines fail (simulated machines only)
    Jam {
        /// Machines, as NAME or TENANT/NAME
        #[arg(required = true, value_name = "NAME")]
        names: Vec<Name>,
    },
}

#[derive(Args)]
pub(crate) struct MachinesArgs {
    /// Machines, as NAME or TENANT/NAME
    #[arg(required = true, value_name = "NAME")]
    names: Vec<Name>,
    #[command(flatten)]
    waiting: WaitArgs,
}

/// Arguments of a command that announces events.
#[derive(Args)]
pub(crate) struct AnnouncedArgs {
    #[command(flatten)]
    machines: MachinesArgs,
    #[command(flatten)]
    notice: NoticeRequirement,
}

/// Arguments of a command that destroys machines or their data.
#[derive(Args)]
pub(crate) struct DestructiveArgs {
    #[command(flatten)]
    announced: AnnouncedArgs,
    #[command(flatten)]
    confirmation: ConfirmationArgs,
}

impl DestructiveArgs {
    /// The machines, after the operator has confirmed the operation.
    fn confirmed(self, session: &Session, operation: &Operation) -> Result<AnnouncedArgs> {
        let names: Vec<_> = self.announced.machines.names.iter().map(|Name(name)| name.clone()).collect();
        self.confirmation.obtain(session, &format!("{} of {}", operation.noun, some(&names)))?;
        Ok(self.announced)
    }
}

/// An operation on one machine, with the words for it.
struct Operation {
    noun: &'static str,
    done: &'static str,
    unchanged: &'static str,
    command: fn(String) -> NamedCommand,
}

const RESTART: Operation = Operation {
    noun: "restart",
    done: "restarted",
    unchanged: "needs no restart",
    command: |machine| NamedCommand::Restart { machine },
};
const REDEPLOY: Operation = Operation {
    noun: "redeployment",
    done: "redeployed",
    unchanged: "needs no redeployment",
    command: |machine| NamedCommand::Redeploy { machine },
};
const REIMAGE: Operation = Operation {
    noun: "reimage",
    done: "reimaged",
    unchanged: "needs no reimage",
    command: |machine| NamedCommand::Reimage { machine },
};
const STOP: Operation = Operation {
    noun: "stop",
    done: "stopped",
    unchanged: "is already stopped",
    command: |machine| NamedCommand::Stop { machine },
};
const START: Operation = Operation {
    noun: "start",
    done: "started",
    unchanged: "is already running",
    command: |machine| NamedCommand::Start { machine },
};
const DEALLOCATE: Operation = Operation {
    noun: "deallocation",
    done: "deallocated",
    unchanged: "is already deallocated",
    command: |machine| NamedCommand::Deallocate { machine },
};
const DELETE: Operation = Operation {
    noun: "deletion",
    done: "deleted",
    unchanged: "is already being deleted",
    command: |machine| NamedCommand::Delete { machine },
};
const EVICT: Operation = Operation {
    noun: "eviction",
    done: "evicted",
    unchanged: "is already being evicted",
    command: |machine| NamedCommand::Evict { machine },
};
const JAM: Operation = Operation {
    noun: "failure of the next operation",
    done: "will fail in its next operation",
    unchanged: "already fails in its next operation",
    command: |machine| NamedCommand::Jam { machine },
};

impl Operation {
    fn task(&self, machine: String) -> Task {
        let Self { noun, done, unchanged, command } = self;
        let wording = Wording {
            noun: format!("{noun} of {machine}"),
            done: format!("{machine} {done}."),
            unchanged: format!("{machine} {unchanged}."),
        };
        Task::new(wording, command(machine.clone())).about(machine)
    }
}

pub(super) fn run(session: &Session, command: Command) -> Result<()> {
    let unannounced = |machines| AnnouncedArgs { machines, notice: NoticeRequirement::default() };
    let (AnnouncedArgs { machines, notice }, operation) = match command {
        Command::Ls { tenant } => return list(session, tenant.as_ref()),
        Command::Show { name } => return show(session, &name),
        Command::Create { name, new, approvals } => return create(session, name, new, approvals),
        Command::Set(set) => return vm_set::run(session, set),
        Command::Explain { name, all } => {
            let extent = if all { HistoryExtent::Whole } else { HistoryExtent::Newest };
            return explain::machine(session, &name, extent);
        }
        Command::Restart(machines) => (machines, &RESTART),
        Command::Redeploy(machines) => (machines, &REDEPLOY),
        Command::Reimage(machines) => (machines.confirmed(session, &REIMAGE)?, &REIMAGE),
        Command::Stop(machines) => (unannounced(machines), &STOP),
        Command::Start(machines) => (unannounced(machines), &START),
        Command::Deallocate(machines) => (unannounced(machines), &DEALLOCATE),
        Command::Delete(machines) => (machines.confirmed(session, &DELETE)?, &DELETE),
        Command::Evict(machines) => (machines.confirmed(session, &EVICT)?, &EVICT),
        Command::Forget { names } => return forget(session, names),
        Command::Move { names, host: Name(host), force } => {
            let record = |machine| NamedCommand::Move { machine, host: host.clone(), force };
            return record_moves(session, names, &host, record);
        }
        Command::Jam { names } => (unannounced(MachinesArgs { names, waiting: WaitArgs::NONE }), &JAM),
    };
    let tasks = machines.names.into_iter().map(|Name(name)| operation.task(name).requiring(notice));
    task::run_all(session, &tasks.collect::<Vec<_>>(), machines.waiting)
}

fn forget(session: &Session, names: Vec<Name>) -> Result<()> {
    let task = |Name(machine): Name| {
        let wording = Wording {
            noun: format!("removal of {machine} from management"),
            done: format!("{machine} is no longer managed."),
            unchanged: format!("{machine} is not managed."),
        };
        Task::new(wording, NamedCommand::Forget { machine })
    };
    let tasks: Vec<_> = names.into_iter().map(task).collect();
    task::run_all(session, &tasks, WaitArgs::NONE)
}

fn record_moves(
    session: &Session,
    names: Vec<Name>,
    host: &str,
    record: impl Fn(String) -> NamedCommand,
) -> Result<()> {
    let task = |Name(machine): Name| {
        let wording = Wording {
            noun: format!("move of {machine} to {host}"),
            done: format!("{machine} is recorded on {host}."),
            unchanged: format!("{machine} is already recorded on {host}."),
        };
        Task::new(wording, record(machine))
    };
    let tasks: Vec<_> = names.into_iter().map(task).collect();
    task::run_all(session, &tasks, WaitArgs::NONE)?;
    host::warn_if_exceeded(session, host)
}

fn create(session: &Session, Name(name): Name, new: NewMachineArgs, approvals: ApprovalArgs) -> Result<()> {
    let wording = Wording::creation("machine", &name);
    let policy = approvals.change().unwrap_or_default().apply(PolicyEntry::default());
    let entry = VmEntry::of(new.named(name), policy);
    task::run(session, &Task::new(wording, NamedCommand::AdmitVm(entry))).map(drop)
}

fn list(session: &Session, tenant: Option<&Name>) -> Result<()> {
    let query = tenant.map(|Name(name)| format!("?tenant={}", escaped(name))).unwrap_or_default();
    session.list(&format!("/v1/machines{query}"), |machines: Vec<MachineView>| {
        Ok(table(&machines, session.width()))
    })
}

fn table(machines: &[MachineView], width: Width) -> String {
    let usual = ["name", "tenant", "host", "ud", "fd", "power", "spot", "events"];
    let more = ["boots", "disk", "model", "notice of deletion", "addresses", "tags"];
    let dropped = ["spot", "fd", "ud", "power", "host", "tenant", "events"];
    let mut table = Table::with_more(width, &usual, &more).dropping(&dropped);
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

fn show(session: &Session, Name(name): &Name) -> Result<()> {
    // The name is one path segment: the server splits TENANT/NAME, and its error says what is wrong with it.
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
        ("cpus", machine.cpus.map(|cpus| cpus.to_string()).unwrap_or_default()),
        ("memory", machine.memory.map(|memory| memory.to_string()).unwrap_or_default()),
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
            table(&[machine(), spot], Width::USUAL),
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
