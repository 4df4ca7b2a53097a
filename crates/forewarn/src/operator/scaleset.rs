//! `forewarn scaleset`: machines that are created from one model.

use anyhow::{Result, bail};
use clap::{ArgGroup, Args, Subcommand};
use forewarn_control::{
    AllWord, DeleteInstances, INSTANCES_MAX, InstanceSelection, NamedCommand, NewScaleSet, OrchestrationWord,
    PolicyEntry, Scale, ScaleSetChange, ScaleSetSummary, ScaleSetView, Upgrade, UpgradeWord,
};
use forewarn_lifecycle::limits::FAULT_DOMAINS_MAX;
use forewarn_types::{Span, show_duration};

use super::confirmation::ConfirmationArgs;
use super::event_id::short;
use super::sentences::{Wording, date};
use super::session::{Session, escaped};
use super::shared_args::{ApprovalArgs, EvictionArg, NoticeArgs, OrchestrationArg, UpgradeArgs};
use super::size_args::{SizeArgs, SizeChangeArgs};
use super::table::{Table, Width, listed, some};
use super::task::{self, NoticeRequirement, Task, WaitArgs};
use super::tenant::automatic;
use super::vm::eviction;
use super::{Name, explain};

const CREATE_EXAMPLES: &str = "\
New instances are spread over 5 update domains, 3 fault domains, and the healthy hosts with the fewest instances of the set.

Examples:
  forewarn scaleset create web --instances 6 --terminate-delay 10m
  forewarn scaleset create batch --instances 20 --spot delete --hosts h1 h2 h3
  forewarn scaleset create db --instances 6 --zones 1 2 3";

const SCALE_EXAMPLES: &str = "\
A scale-in deletes the newest instances of the zone and fault domain with the most instances. Instances that \
are already being deleted do not count.

Examples:
  forewarn scaleset scale web 10
  forewarn scaleset scale web 4 --wait";

const SET_EXAMPLES: &str = "\
With --upgrade manual, existing instances keep their model until `forewarn scaleset upgrade`. With --upgrade \
automatic, all instances get the latest model at once; with --upgrade rolling, batch by batch in the order of their numbers.

Examples:
  forewarn scaleset set web --terminate-notification on --terminate-delay 10m
  forewarn scaleset set web --terminate-notification off --os-image on
  forewarn scaleset set web --upgrade rolling --batch-percent 25 --batch-pause 10m
  forewarn scaleset set web --restart automatic
  forewarn scaleset set web --cpus 4 --memory 8GiB     existing instances, too";

const UPGRADE_EXAMPLES: &str = "\
Examples:
  forewarn scaleset upgrade web 0 1     by number, or by name: web_0 web_1
  forewarn scaleset upgrade web --all";

const DELETE_INSTANCES_EXAMPLES: &str = "\
Example:
  forewarn scaleset delete-instances web 3 4 --wait";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List scale sets
    Ls,
    /// Show a scale set and its instances
    Show {
        /// Scale set
        name: Name,
    },
    /// Explain a scale set: deletion notices, planned deletions, rejected requests
    Explain {
        /// Scale set
        name: Name,
    },
    /// Create a scale set with instances
    #[command(before_help = CREATE_EXAMPLES)]
    Create(CreateScaleSetArgs),
    /// Change the number of instances of a scale set
    #[command(before_help = SCALE_EXAMPLES)]
    Scale {
        /// Scale set
        name: Name,
        /// Number of instances
        #[arg(value_name = "N", value_parser = clap::value_parser!(u16).range(..=i64::from(INSTANCES_MAX)))]
        capacity: u16,
        #[command(flatten)]
        placement: PlacementArgs,
        #[command(flatten)]
        waiting: WaitArgs,
        #[command(flatten)]
        notice: NoticeRequirement,
        #[command(flatten)]
        confirmation: ConfirmationArgs,
    },
    /// Set the model, the approval policy and the size of instances of a scale set; omitted options keep their value
    #[command(before_help = SET_EXAMPLES, alias = "update")]
    Set {
        /// Scale set
        name: Name,
        #[command(flatten)]
        change: ScaleSetChangeArgs,
    },
    /// Upgrade instances to the latest model
    #[command(before_help = UPGRADE_EXAMPLES, group = ArgGroup::new("which").required(true))]
    Upgrade {
        /// Scale set
        name: Name,
        /// Instances, by number or name
        #[arg(value_name = "INSTANCE", group = "which")]
        instances: Vec<Name>,
        /// Upgrade all instances with an older model
        #[arg(long, group = "which")]
        all: bool,
    },
    /// Delete instances, with a notice if their model has one
    #[command(before_help = DELETE_INSTANCES_EXAMPLES)]
    DeleteInstances {
        /// Scale set
        name: Name,
        /// Instances, by number or name
        #[arg(value_name = "INSTANCE", required = true)]
        instances: Vec<Name>,
        #[command(flatten)]
        waiting: WaitArgs,
        #[command(flatten)]
        notice: NoticeRequirement,
        #[command(flatten)]
        confirmation: ConfirmationArgs,
    },
    /// Delete an empty scale set
    #[command(alias = "rm")]
    Delete {
        /// Scale set
        name: Name,
    },
}

/// A change of a scale set.
#[derive(Args)]
pub(crate) struct ScaleSetChangeArgs {
    #[command(flatten)]
    notices: NoticeArgs,
    #[command(flatten)]
    upgrades: UpgradeArgs,
    #[command(flatten)]
    approvals: ApprovalArgs,
    #[command(flatten)]
    size: SizeChangeArgs,
}

#[derive(Args)]
pub(crate) struct CreateScaleSetArgs {
    /// Name of the scale set
    name: Name,
    /// Number of instances
    #[arg(long, value_name = "N", default_value_t = 0,
        value_parser = clap::value_parser!(u16).range(..=i64::from(INSTANCES_MAX)))]
    instances: u16,
    #[command(flatten)]
    size: SizeArgs,
    /// Create spot machines, with this effect of an eviction
    #[arg(long, value_enum, value_name = "EVICTION")]
    spot: Option<EvictionArg>,
    /// Grouping of instances into tenants
    #[arg(long, value_enum, value_name = "MODE", default_value_t = OrchestrationArg::Uniform)]
    orchestration: OrchestrationArg,
    #[command(flatten)]
    upgrades: UpgradeArgs,
    #[command(flatten)]
    notices: NoticeArgs,
    #[command(flatten)]
    approvals: ApprovalArgs,
    #[command(flatten)]
    placement: PlacementArgs,
}

/// Hosts, zones and fault domains of new instances.
#[derive(Args)]
pub(crate) struct PlacementArgs {
    /// Hosts for new instances [default: all]
    #[arg(long, value_name = "HOST", num_args = 1..)]
    hosts: Vec<Name>,
    /// Zones over which new instances are spread [default: all]
    #[arg(long, value_name = "ZONE", num_args = 1..)]
    zones: Vec<u16>,
    /// Number of fault domains over which new instances are spread [default: 3, or the existing number if higher]
    #[arg(long, value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=i64::from(FAULT_DOMAINS_MAX)))]
    fault_domains: Option<u16>,
}

pub(super) fn run(session: &Session, command: Command) -> Result<()> {
    match command {
        Command::Ls => {
            session.list("/v1/scalesets", |sets: Vec<ScaleSetSummary>| Ok(table(&sets, session.width())))
        }
        Command::Show { name: Name(name) } => {
            session.show(&path(&name, ""), |set| Ok(facts(set, session.width())))
        }
        Command::Explain { name } => explain::scale_set(session, &name),
        Command::Create(new) => create(session, new),
        Command::Scale { name: Name(name), capacity, placement, waiting, notice, confirmation } => {
            let wording = Wording {
                noun: format!("scaling of {name} to {capacity}"),
                done: format!("{name} scaled to {capacity} instances."),
                unchanged: format!("{name} already has {capacity} instances."),
            };
            // Only a scale-in deletes machines.
            let shrinks = || {
                let now: ScaleSetSummary = session.get(&path(&name, ""))?;
                Ok(usize::from(capacity) < now.capacity)
            };
            confirmation.obtain_if(session, &wording.noun, shrinks)?;
            let PlacementArgs { hosts, zones, fault_domains } = placement;
            let body = Scale { capacity, hosts: some_names(hosts), zones, fault_domains };
            let task = Task::post(wording, path(&name, "/scale"), &body)?;
            task::run_all(session, &[task.requiring(notice)], waiting)
        }
        Command::Set { name: Name(name), change } => set(session, &name, &change),
        Command::Upgrade { name: Name(name), instances, all } => {
            let (instances, what) = match (names(instances), all) {
                (instances, false) => (InstanceSelection::Named(instances.clone()), some(&instances)),
                (_, true) => (InstanceSelection::Every(AllWord::All), "all instances".to_owned()),
            };
            let wording = Wording {
                noun: format!("upgrade of {what} of {name}"),
                done: format!("Upgraded {what} of {name}."),
                unchanged: format!("Nothing to upgrade: {what} of {name} have the latest model."),
            };
            let task = Task::post(wording, path(&name, "/upgrade"), &Upgrade { instances })?;
            task::run(session, &task).map(drop)
        }
        Command::DeleteInstances { name: Name(name), instances, waiting, notice, confirmation } => {
            let instances = names(instances);
            let list = some(&instances);
            let wording = Wording {
                noun: format!("deletion of {list} of {name}"),
                done: format!("Deleted {list} of {name}."),
                unchanged: format!("Already being deleted: {list} of {name}."),
            };
            confirmation.obtain(session, &wording.noun)?;
            let body = DeleteInstances { instances };
            let task = Task::post(wording, path(&name, "/delete-instances"), &body)?;
            task::run_all(session, &[task.requiring(notice)], waiting)
        }
        Command::Delete { name: Name(scale_set) } => {
            let wording = Wording::deletion("scale set", &scale_set);
            task::run(session, &Task::new(wording, NamedCommand::RemoveScaleSet { scale_set })).map(drop)
        }
    }
}

fn create(session: &Session, new: CreateScaleSetArgs) -> Result<()> {
    let Name(name) = new.name;
    let wording = Wording {
        done: format!("Scale set {name} created with {} instances.", new.instances),
        ..Wording::creation("scale set", &name)
    };
    let PlacementArgs { hosts, zones, fault_domains } = new.placement;
    let body = NewScaleSet {
        name,
        orchestration: new.orchestration.into(),
        upgrade: new.upgrades.change(UpgradeWord::Manual).unwrap_or_default(),
        cpus: new.size.cpus,
        memory: new.size.memory,
        spot: new.spot.map(Into::into),
        terminate: new.notices.new_terminate(),
        os_image: new.notices.os_image().unwrap_or(false),
        policy: new.approvals.change().unwrap_or_default().apply(PolicyEntry::default()),
        instances: new.instances,
        hosts: some_names(hosts),
        zones,
        fault_domains,
    };
    task::run(session, &Task::post(wording, "/v1/scalesets".to_owned(), &body)?).map(drop)
}

fn set(session: &Session, name: &str, arguments: &ScaleSetChangeArgs) -> Result<()> {
    let ScaleSetChangeArgs { notices, upgrades, approvals, size } = arguments;
    let now: ScaleSetSummary = session.get(&path(name, ""))?;
    let mut tasks = Vec::new();
    if !(notices.is_empty() && upgrades.is_empty() && approvals.change().is_none()) {
        let change = ScaleSetChange {
            terminate: notices.terminate(now.terminate),
            os_image: notices.os_image(),
            upgrade: upgrades.change(now.upgrade),
            policy: approvals.change(),
        };
        tasks.push(Task::patch(Wording::update(name), path(name, ""), &change)?);
    }
    if let Some((cpus, memory)) = size.change((now.cpus, now.memory)) {
        let wording = Wording {
            noun: format!("size of the instances of {name}"),
            done: format!("Size of the instances of {name} changed."),
            unchanged: format!("The instances of {name} already have this size."),
        };
        let command = NamedCommand::ResizeInstances { scale_set: name.to_owned(), cpus, memory };
        tasks.push(Task::new(wording, command));
    }
    if tasks.is_empty() {
        bail!("nothing to change\n  hint: forewarn scaleset set --help");
    }
    task::run_all(session, &tasks, WaitArgs::NONE)
}

fn path(name: &str, more: &str) -> String {
    format!("/v1/scalesets/{}{more}", escaped(name))
}

fn names(names: Vec<Name>) -> Vec<String> {
    names.into_iter().map(|Name(name)| name).collect()
}

/// The names. None without names.
fn some_names(list: Vec<Name>) -> Option<Vec<String>> {
    Some(names(list)).filter(|names| !names.is_empty())
}

fn table(sets: &[ScaleSetSummary], width: Width) -> String {
    let usual = ["name", "instances", "leaving", "model", "outdated", "spot", "notice of deletion"];
    let more = ["orchestration", "upgrade", "notice of images", "automatic approval", "tenants"];
    let dropped = ["spot", "leaving", "model", "notice of deletion", "outdated", "instances"];
    let mut table = Table::with_more(width, &usual, &more).dropping(&dropped);
    for set in sets {
        let usual = [
            set.name.clone(),
            set.capacity.to_string(),
            set.leaving.to_string(),
            set.model.to_string(),
            set.outdated.to_string(),
            eviction(set.spot),
            span(set.terminate),
        ];
        let more = [
            orchestration(set.orchestration).to_owned(),
            set.upgrade.to_string(),
            images(set.os_image),
            automatic(set.policy),
            listed(&set.tenants),
        ];
        table.row_with_more(usual, more);
    }
    table.to_string()
}

fn facts(set: ScaleSetView, width: Width) -> String {
    let ScaleSetView { summary, instances } = set;
    let facts = Table::facts([
        ("name", summary.name),
        ("instances", summary.capacity.to_string()),
        ("leaving", summary.leaving.to_string()),
        ("orchestration", orchestration(summary.orchestration).to_owned()),
        ("spot", eviction(summary.spot)),
        ("upgrade", summary.upgrade.to_string()),
        ("next batch", summary.next_batch.map(date).unwrap_or_default()),
        ("model", summary.model.to_string()),
        ("notice of deletion", span(summary.terminate)),
        ("notice of images", images(summary.os_image)),
        ("automatic approval", automatic(summary.policy)),
        ("tenants", listed(summary.tenants)),
    ]);
    let headings =
        ["name", "tenant", "host", "ud", "fd", "power", "model", "latest", "notice of deletion", "events"];
    let dropped = ["model", "fd", "tenant", "ud", "notice of deletion", "latest", "power", "host", "events"];
    let mut table = Table::new(width, &headings).dropping(&dropped);
    for instance in instances {
        let member = instance.member;
        table.row([
            member.name,
            member.tenant,
            member.host,
            member.update_domain.to_string(),
            member.fault_domain.to_string(),
            if member.leaving { format!("{}, leaving", member.power) } else { member.power },
            instance.model.to_string(),
            if instance.latest { "yes" } else { "no" }.to_owned(),
            span(member.terminate),
            listed(member.events.iter().map(|id| short(id))),
        ]);
    }
    format!("{facts}\n{table}")
}

fn span(span: Option<Span>) -> String {
    span.map(|Span(span)| show_duration(span)).unwrap_or_default()
}

fn images(announced: bool) -> String {
    if announced { "15m" } else { "" }.to_owned()
}

fn orchestration(word: OrchestrationWord) -> &'static str {
    match word {
        OrchestrationWord::Uniform => "uniform",
        OrchestrationWord::Flexible => "flexible",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set() -> ScaleSetView {
        serde_json::from_value(serde_json::json!({
            "name": "web", "capacity": 1, "leaving": 1, "outdated": 1, "orchestration": "uniform",
            "upgrade": "manual", "spot": null, "model": 2, "terminate": "10m", "os_image": true, "policy": {},
            "tenants": ["web"], "instances": [
                {"id": 0, "model": 2, "latest": true, "name": "web_0", "tenant": "web", "host": "h1",
                 "update_domain": 0, "fault_domain": 0, "power": "running", "spot": null, "terminate": "10m",
                 "os_image": true, "leaving": false, "events": []},
                {"id": 1, "model": 1, "latest": false, "name": "web_1", "tenant": "web", "host": "h2",
                 "update_domain": 1, "fault_domain": 1, "power": "running", "spot": null, "terminate": null,
                 "os_image": false, "leaving": true, "events": ["28512AF7-C957-4500-9BC4-842D6FB531E4"]}
            ]
        }))
        .unwrap()
    }

    #[test]
    fn scale_sets_are_listed_one_a_line() {
        let sets = [set().summary];
        assert_eq!(
            table(&sets, Width::USUAL),
            "NAME  INSTANCES  LEAVING  MODEL  OUTDATED  SPOT  NOTICE OF DELETION\n\
             web   1          1        2      1         -     10m\n"
        );
        assert!(table(&sets, Width::Wide).lines().next().unwrap().ends_with("  TENANTS"));
    }

    #[test]
    fn a_scale_set_is_shown_with_its_instances() {
        let shown = facts(set(), Width::Wide);
        assert!(shown.contains("notice of images    15m\n"), "{shown}");
        let table = shown.split("\n\n").nth(1).unwrap();
        assert_eq!(
            table,
            "NAME   TENANT  HOST  UD  FD  POWER             MODEL  LATEST  NOTICE OF DELETION  EVENTS\n\
             web_0  web     h1    0   0   running           2      yes     10m                 -\n\
             web_1  web     h2    1   1   running, leaving  1      no      -                   28512AF7\n"
        );
    }
}
