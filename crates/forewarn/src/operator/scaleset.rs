//! `forewarn scaleset`: machines made from one model.

use anyhow::{Result, bail};
use clap::{ArgGroup, Args, Subcommand};
use forewarn_control::{
    AllWord, DeleteInstances, INSTANCES_MAX, InstanceSelection, NamedCommand, NewScaleSet, OrchestrationWord,
    PolicyEntry, Scale, ScaleSetChange, ScaleSetSummary, ScaleSetView, Upgrade, UpgradeWord,
};
use forewarn_lifecycle::limits::FAULT_DOMAINS_MAX;
use forewarn_types::{Span, show_duration};

use super::ask::{self, Errand, Patience};
use super::consent::Consent;
use super::identifier::short;
use super::say::date;
use super::session::{Session, escaped};
use super::table::{Table, Width, listed, some};
use super::tenant::automatic;
use super::vm::eviction;
use super::wanted::{Approvals, Grouping, Notices, Spot, Upgrades};
use super::{Named, explain};

const CREATE_EXAMPLES: &str = "\
Instances are spread over 5 update domains, 3 fault domains, and the healthy hosts that have the fewest of them.

Examples:
  forewarn scaleset create web --instances 6 --terminate-delay 10m
  forewarn scaleset create batch --instances 20 --spot delete --hosts h1 h2 h3
  forewarn scaleset create db --instances 6 --zones 1 2 3";

const SCALE_EXAMPLES: &str = "\
When there are too many, the newest go of the zone and the fault domain that have the most. Those that are being deleted
already do not count.

Examples:
  forewarn scaleset scale web 10
  forewarn scaleset scale web 4 --wait";

const UPDATE_EXAMPLES: &str = "\
Where instances are upgraded by hand, those that are there keep what they have until then: forewarn scaleset upgrade
With --upgrade automatic all get the latest model at once, with --upgrade rolling batch by batch, in the order of their numbers.

Examples:
  forewarn scaleset update web --terminate-notification on --terminate-delay 10m
  forewarn scaleset update web --terminate-notification off --os-image on
  forewarn scaleset update web --upgrade rolling --batch-percent 25 --batch-pause 10m
  forewarn scaleset update web --restart automatic";

const UPGRADE_EXAMPLES: &str = "\
Examples:
  forewarn scaleset upgrade web 0 1     by number, or by name: web_0 web_1
  forewarn scaleset upgrade web --all";

const DELETE_EXAMPLES: &str = "\
Example:
  forewarn scaleset delete-instances web 3 4 --wait";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List scale sets.
    Ls,
    /// Show a scale set and its instances.
    Show {
        /// Its name.
        name: Named,
    },
    /// Explain a scale set: what its instances are told of their deletion, what is unusual, what was refused.
    Explain {
        /// Its name.
        name: Named,
    },
    /// Make a scale set, with its instances.
    #[command(after_help = CREATE_EXAMPLES)]
    Create(Create),
    /// Have so many instances.
    #[command(after_help = SCALE_EXAMPLES)]
    Scale {
        /// The scale set.
        name: Named,
        /// How many.
        #[arg(value_name = "N", value_parser = clap::value_parser!(u16).range(..=i64::from(INSTANCES_MAX)))]
        capacity: u16,
        #[command(flatten)]
        bounds: Bounds,
        #[command(flatten)]
        patience: Patience,
        #[command(flatten)]
        consent: Consent,
    },
    /// Change the model or the policy of a scale set; what is not said stays.
    #[command(after_help = UPDATE_EXAMPLES)]
    Update {
        /// The scale set.
        name: Named,
        #[command(flatten)]
        notices: Notices,
        #[command(flatten)]
        upgrades: Upgrades,
        #[command(flatten)]
        approvals: Approvals,
    },
    /// Give instances the latest model.
    #[command(after_help = UPGRADE_EXAMPLES, group = ArgGroup::new("which").required(true))]
    Upgrade {
        /// The scale set.
        name: Named,
        /// The instances: their numbers or names.
        #[arg(value_name = "INSTANCE", group = "which")]
        instances: Vec<Named>,
        /// All that have an older one.
        #[arg(long, group = "which")]
        all: bool,
    },
    /// Delete instances; announced, if the model that they have says so.
    #[command(after_help = DELETE_EXAMPLES)]
    DeleteInstances {
        /// The scale set.
        name: Named,
        /// Their numbers or names.
        #[arg(value_name = "INSTANCE", required = true)]
        instances: Vec<Named>,
        #[command(flatten)]
        patience: Patience,
        #[command(flatten)]
        consent: Consent,
    },
    /// Remove a scale set that has no instances.
    Rm {
        /// Its name.
        name: Named,
    },
}

#[derive(Args)]
pub(crate) struct Create {
    /// Its name.
    name: Named,
    /// How many instances it has.
    #[arg(long, value_name = "N", default_value_t = 0,
        value_parser = clap::value_parser!(u16).range(..=i64::from(INSTANCES_MAX)))]
    instances: u16,
    /// They are spot machines, and that is what eviction does to them.
    #[arg(long, value_enum, value_name = "WHAT")]
    spot: Option<Spot>,
    /// How they are grouped into tenants.
    #[arg(long, value_enum, value_name = "HOW", default_value_t = Grouping::Uniform)]
    orchestration: Grouping,
    #[command(flatten)]
    upgrades: Upgrades,
    #[command(flatten)]
    notices: Notices,
    #[command(flatten)]
    approvals: Approvals,
    #[command(flatten)]
    bounds: Bounds,
}

/// Where new instances may be.
#[derive(Args)]
pub(crate) struct Bounds {
    /// The hosts on which new instances may be; any, if not said.
    #[arg(long, value_name = "HOST", num_args = 1..)]
    hosts: Vec<Named>,
    /// The zones over which new instances are spread; any, if not said.
    #[arg(long, value_name = "ZONE", num_args = 1..)]
    zones: Vec<u16>,
    /// The fault domains over which new instances are spread; 3, if not said, or more, if there are more.
    #[arg(long, value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=i64::from(FAULT_DOMAINS_MAX)))]
    fault_domains: Option<u16>,
}

pub(super) fn run(session: &Session, command: Command) -> Result<()> {
    match command {
        Command::Ls => {
            session.list("/v1/scalesets", |sets: Vec<ScaleSetSummary>| Ok(table(&sets, session.width())))
        }
        Command::Show { name: Named(name) } => session.show(&place(&name, ""), |set| Ok(facts(set))),
        Command::Explain { name } => explain::scale_set(session, &name),
        Command::Create(wanted) => create(session, wanted),
        Command::Scale { name: Named(name), capacity, bounds, patience, consent } => {
            let phrase = format!("scaling of {name} to {capacity}");
            // Only a set that shrinks loses machines.
            let shrinks = || {
                let now: ScaleSetSummary = session.get(&place(&name, ""))?;
                Ok(usize::from(capacity) < now.capacity)
            };
            consent.obtain_if(session, &phrase, shrinks)?;
            let Bounds { hosts, zones, fault_domains } = bounds;
            let body = Scale { capacity, hosts: few(hosts), zones, fault_domains };
            ask::all(session, &[Errand::post(phrase, place(&name, "/scale"), &body)?], patience)
        }
        Command::Update { name: Named(name), notices, upgrades, approvals } => {
            update(session, &name, notices, upgrades, approvals)
        }
        Command::Upgrade { name: Named(name), instances, all } => {
            let (instances, what) = match (names(instances), all) {
                (instances, false) => (InstanceSelection::Named(instances.clone()), some(&instances)),
                (_, true) => (InstanceSelection::Every(AllWord::All), "all instances".to_owned()),
            };
            let phrase = format!("upgrade of {what} of {name}");
            let errand = Errand::post(phrase, place(&name, "/upgrade"), &Upgrade { instances })?;
            ask::one(session, &errand).map(drop)
        }
        Command::DeleteInstances { name: Named(name), instances, patience, consent } => {
            let instances = names(instances);
            let phrase = format!("delete of {} of {name}", some(&instances));
            consent.obtain(session, &phrase)?;
            let body = DeleteInstances { instances };
            ask::all(session, &[Errand::post(phrase, place(&name, "/delete-instances"), &body)?], patience)
        }
        Command::Rm { name: Named(scale_set) } => {
            let phrase = format!("removal of scale set {scale_set}");
            ask::one(session, &Errand::new(phrase, NamedCommand::RemoveScaleSet { scale_set })).map(drop)
        }
    }
}

fn create(session: &Session, wanted: Create) -> Result<()> {
    let Named(name) = wanted.name;
    let phrase = format!("scale set {name} with {} instances", wanted.instances);
    let Bounds { hosts, zones, fault_domains } = wanted.bounds;
    let body = NewScaleSet {
        name,
        orchestration: wanted.orchestration.into(),
        upgrade: wanted.upgrades.change(UpgradeWord::Manual).unwrap_or_default(),
        spot: wanted.spot.map(Into::into),
        terminate: wanted.notices.new_terminate(),
        os_image: wanted.notices.os_image().unwrap_or(false),
        policy: wanted.approvals.change().unwrap_or_default().apply(PolicyEntry::default()),
        instances: wanted.instances,
        hosts: few(hosts),
        zones,
        fault_domains,
    };
    ask::one(session, &Errand::post(phrase, "/v1/scalesets".to_owned(), &body)?).map(drop)
}

fn update(
    session: &Session,
    name: &str,
    notices: Notices,
    upgrades: Upgrades,
    approvals: Approvals,
) -> Result<()> {
    if notices.is_empty() && upgrades.is_empty() && approvals.change().is_none() {
        bail!("nothing to change\n  hint: forewarn scaleset update --help");
    }
    let now: ScaleSetSummary = session.get(&place(name, ""))?;
    let change = ScaleSetChange {
        terminate: notices.terminate(now.terminate),
        os_image: notices.os_image(),
        upgrade: upgrades.change(now.upgrade),
        policy: approvals.change(),
    };
    ask::one(session, &Errand::patch(format!("update of {name}"), place(name, ""), &change)?).map(drop)
}

fn place(name: &str, more: &str) -> String {
    format!("/v1/scalesets/{}{more}", escaped(name))
}

fn names(named: Vec<Named>) -> Vec<String> {
    named.into_iter().map(|Named(name)| name).collect()
}

/// Some of them, if any are named.
fn few(named: Vec<Named>) -> Option<Vec<String>> {
    Some(names(named)).filter(|names| !names.is_empty())
}

fn table(sets: &[ScaleSetSummary], width: Width) -> String {
    let usual = ["name", "instances", "leaving", "model", "outdated", "spot", "notice of deletion"];
    let more = ["orchestration", "upgrade", "notice of images", "approves itself", "tenants"];
    let mut table = Table::with_more(width, &usual, &more);
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

fn facts(set: ScaleSetView) -> String {
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
        ("approves itself", automatic(summary.policy)),
        ("tenants", listed(summary.tenants)),
    ]);
    let mut table = Table::new(&[
        "name",
        "tenant",
        "host",
        "ud",
        "fd",
        "power",
        "model",
        "latest",
        "notice of deletion",
        "events",
    ]);
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
            table(&sets, Width::Usual),
            "NAME  INSTANCES  LEAVING  MODEL  OUTDATED  SPOT  NOTICE OF DELETION\n\
             web   1          1        2      1         -     10m\n"
        );
        assert!(table(&sets, Width::Wide).lines().next().unwrap().ends_with("  TENANTS"));
    }

    #[test]
    fn a_scale_set_is_shown_with_its_instances() {
        let shown = facts(set());
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
