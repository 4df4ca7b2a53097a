//! `forewarn vm set`: the addresses, tags, notices and size of a machine.

use std::net::IpAddr;

use anyhow::Result;
use clap::{ArgGroup, Args};
use forewarn_control::{MachineView, NamedCommand};

use super::Name;
use super::sentences::Wording;
use super::session::{Session, escaped};
use super::shared_args::{NoticeArgs, Tag, tags};
use super::size_args::SizeChangeArgs;
use super::task::{self, Task, WaitArgs};

pub(super) const EXAMPLES: &str = "\
Addresses and tags, notices, and the size are three changes: one that is rejected does not stop the others.

Examples:
  forewarn vm set web_0 --address 10.0.0.4 --address 10.0.0.5
  forewarn vm set web_0 --tag role=front --tag owner=shop
  forewarn vm set web_0 --terminate-notification on --terminate-delay 10m
  forewarn vm set solo --cpus 4 --memory 8GiB
  forewarn vm set web_0 --no-addresses";

const OPTIONS: [&str; 9] = [
    "addresses",
    "no_addresses",
    "tags",
    "no_tags",
    "terminate_notification",
    "terminate_delay",
    "os_image",
    "cpus",
    "memory",
];

#[derive(Args)]
#[command(group = ArgGroup::new("what").required(true).multiple(true).args(OPTIONS))]
pub(crate) struct VmSetArgs {
    /// Machine, as NAME or TENANT/NAME
    name: Name,
    /// Source address of the machine's requests; repeatable; replaces all addresses
    #[arg(long = "address", value_name = "IP")]
    addresses: Vec<IpAddr>,
    /// Remove all addresses
    #[arg(long, conflicts_with = "addresses")]
    no_addresses: bool,
    /// Tag, as NAME=VALUE; repeatable; replaces all tags
    #[arg(long = "tag", value_name = "NAME=VALUE")]
    tags: Vec<Tag>,
    /// Remove all tags
    #[arg(long, conflicts_with = "tags")]
    no_tags: bool,
    #[command(flatten)]
    notices: NoticeArgs,
    #[command(flatten)]
    size: SizeChangeArgs,
}

pub(super) fn run(session: &Session, set: VmSetArgs) -> Result<()> {
    let Name(name) = &set.name;
    let now: MachineView = session.get(&format!("/v1/machines/{}", escaped(name)))?;
    let changes = [set.notice_change(&now), set.size_change(&now), set.description()];
    let tasks: Vec<_> = changes.into_iter().flatten().collect();
    task::run_all(session, &tasks, WaitArgs::NONE)
}

impl VmSetArgs {
    fn description(self) -> Option<Task> {
        let Name(machine) = self.name;
        let addresses = (self.no_addresses || !self.addresses.is_empty()).then_some(self.addresses);
        let tags = (self.no_tags || !self.tags.is_empty()).then(|| tags(self.tags));
        let wording = Wording {
            noun: format!("description of {machine}"),
            done: format!("Addresses and tags of {machine} changed."),
            unchanged: format!("{machine} already has these addresses and tags."),
        };
        let is_change = addresses.is_some() || tags.is_some();
        is_change.then(|| Task::new(wording, NamedCommand::Describe { machine, addresses, tags }))
    }

    fn notice_change(&self, now: &MachineView) -> Option<Task> {
        let command = NamedCommand::ChangeProfile {
            machine: full_name(now),
            terminate: self.notices.terminate(now.terminate).unwrap_or(now.terminate),
            os_image: self.notices.os_image().unwrap_or(now.os_image),
        };
        (!self.notices.is_empty()).then(|| Task::new(Wording::update(&self.name.0), command))
    }

    fn size_change(&self, now: &MachineView) -> Option<Task> {
        let (cpus, memory) = self.size.change((now.cpus, now.memory))?;
        let Name(name) = &self.name;
        let wording = Wording {
            noun: format!("size of {name}"),
            done: format!("Size of {name} changed."),
            unchanged: format!("{name} already has this size."),
        };
        Some(Task::new(wording, NamedCommand::Resize { machine: full_name(now), cpus, memory }))
    }
}

fn full_name(machine: &MachineView) -> String {
    format!("{}/{}", machine.tenant, machine.name)
}
