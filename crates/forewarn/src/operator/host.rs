//! `forewarn host`: hosts, and work on them.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;
use clap::{ArgGroup, Args, Subcommand};
use forewarn_control::{HostEntry, HostView, HostWorkEntry, NamedCommand};
use forewarn_types::{Moment, Span, show_duration};

use super::Name;
use super::confirmation::ConfirmationArgs;
use super::host_mode::{ModeCommand, state_word};
use super::sentences::Wording;
use super::session::{Session, escaped};
use super::size_args::{CapacityArgs, SizeChangeArgs, memory_of_mib};
use super::step_args::StepArgs;
use super::table::{Table, Width, listed, some};
use super::task::{self, NoticeRequirement, Task, WaitArgs};

const UPDATE_EXAMPLES: &str = "\
Examples:
  forewarn host update h1 h2            in groups: never two update domains of a tenant at once
  forewarn host update h1 --work 'kernel 6.12.9' --duration 45s
  forewarn host update --network h1 --wait";

const CREATE_EXAMPLES: &str = "\
Examples:
  forewarn host create h11
  forewarn host create h12 --zone 2
  forewarn host create h13 --cpus 64 --memory 256GiB";

const SET_EXAMPLES: &str = "\
Examples:
  forewarn host set h13 --cpus 128 --memory 512GiB
  forewarn host set h13 --cpus none     no limit";

const MIGRATE_EXAMPLES: &str = "\
Example:
  forewarn host migrate h1 --wait";

const FAIL_EXAMPLES: &str = "\
Examples:
  forewarn host fail h1                 the driver fences it, then its machines start elsewhere
  forewarn host fail h1 --fenced        its power is off: they start elsewhere at once";

const DONE_EXAMPLES: &str = "\
Examples:
  forewarn host done h1
  forewarn host done h1 --failed 'does not boot the new kernel'";

const DEGRADE_EXAMPLES: &str = "\
Example:
  forewarn host degrade h1 --fails-in 3d";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List hosts
    Ls,
    /// Show a host
    Show {
        /// Host
        host: Name,
    },
    /// Create a host
    #[command(before_help = CREATE_EXAMPLES, alias = "add")]
    Create {
        /// Name of the host
        host: Name,
        /// Zone of the host; machines never leave their zone [default: none]
        #[arg(long, value_name = "ZONE")]
        zone: Option<u16>,
        #[command(flatten)]
        capacity: CapacityArgs,
    },
    /// Set the capacity of a host; omitted options keep their value
    #[command(before_help = SET_EXAMPLES, group = ArgGroup::new("what").required(true).multiple(true).args(["cpus", "memory"]))]
    Set {
        /// Host
        host: Name,
        #[command(flatten)]
        capacity: SizeChangeArgs,
    },
    /// Delete hosts without machines
    #[command(alias = "rm")]
    Delete {
        /// Hosts
        #[arg(required = true, value_name = "HOST")]
        hosts: Vec<Name>,
    },
    /// Stop managing hosts, without changing them; forget or move their machines first
    Forget {
        /// Hosts
        #[arg(required = true, value_name = "HOST")]
        hosts: Vec<Name>,
    },
    /// Update hosts; their machines are paused for some seconds
    #[command(before_help = UPDATE_EXAMPLES)]
    Update {
        /// Update only the network; machines lose their connections for a moment
        #[arg(long)]
        network: bool,
        #[command(flatten)]
        hosts: HostsArgs,
    },
    /// Restart hosts; their machines are stopped before and started afterwards
    Reboot(HostsArgs),
    /// Migrate all machines of hosts live to other hosts; with `--work`, the hosts are then updated
    #[command(before_help = MIGRATE_EXAMPLES)]
    Migrate(HostsArgs),
    /// Have machines leave a host and keep it closed, until it is opened again
    #[command(subcommand)]
    Maintenance(ModeCommand),
    /// Mark a host as degraded: its machines are moved away before it fails
    #[command(before_help = DEGRADE_EXAMPLES)]
    Degrade {
        #[command(flatten)]
        host: HostArgs,
        /// Time until the expected failure [default: 7d]
        #[arg(long, value_name = "DURATION")]
        fails_in: Option<Span>,
        #[command(flatten)]
        notice: NoticeRequirement,
    },
    /// Mark a host as failed: its machines are restarted on other hosts, once it is fenced
    #[command(before_help = FAIL_EXAMPLES)]
    Fail {
        /// Confirm that machines of the host can no longer write to their disks, now or after an earlier `host fail`
        #[arg(long)]
        fenced: bool,
        #[command(flatten)]
        host: HostArgs,
        #[command(flatten)]
        notice: NoticeRequirement,
        #[command(flatten)]
        confirmation: ConfirmationArgs,
    },
    /// Mark a host as healthy again
    Recover {
        /// Host
        host: Name,
    },
    /// Report that the work on a host is done; its machines return
    #[command(before_help = DONE_EXAMPLES)]
    Done {
        /// Host
        host: Name,
        /// The work failed, for this reason: the machines return, and the host needs attention
        #[arg(long, value_name = "WHY")]
        failed: Option<String>,
    },
    /// Repeat the work on a host, or its fence, now; also if it waits for an operator
    Retry {
        /// Host
        host: Name,
    },
    /// Count the work on a host, or its fence, as failed: its machines return, and the host needs attention
    GiveUp {
        /// Host
        host: Name,
    },
    /// Let a host that needed attention have machines and work again
    Clear {
        /// Host
        host: Name,
    },
}

#[derive(Args)]
pub(crate) struct HostsArgs {
    /// Hosts
    #[arg(required = true, value_name = "HOST")]
    hosts: Vec<Name>,
    #[command(flatten)]
    step: StepArgs,
    #[command(flatten)]
    waiting: WaitArgs,
    #[command(flatten)]
    notice: NoticeRequirement,
}

#[derive(Args)]
pub(crate) struct HostArgs {
    /// Host
    host: Name,
    #[command(flatten)]
    waiting: WaitArgs,
}

pub(super) fn run(session: &Session, command: Command) -> Result<()> {
    let (task, waiting) = match command {
        Command::Ls => return list(session),
        Command::Show { host } => return show(session, &host),
        Command::Create { host: Name(name), zone, capacity: CapacityArgs { cpus, memory } } => {
            let wording = Wording::creation("host", &name);
            let task = Task::new(wording, NamedCommand::AdmitHost(HostEntry { name, zone, cpus, memory }));
            return task::run(session, &task).map(drop);
        }
        Command::Set { host, capacity } => return set(session, host, capacity),
        Command::Delete { hosts } => {
            let wording = |host: &str| Wording::deletion("host", host);
            return each(session, hosts, wording, |host| NamedCommand::RemoveHost { host });
        }
        Command::Forget { hosts } => {
            let wording = |host: &str| Wording {
                noun: format!("removal of host {host} from management"),
                done: format!("Host {host} is no longer managed."),
                unchanged: format!("Host {host} is not managed."),
            };
            return each(session, hosts, wording, |host| NamedCommand::ForgetHost { host });
        }
        Command::Update { network: false, hosts } => {
            hosts.task("update of", "updated", NamedCommand::UpdateHosts)
        }
        Command::Update { network: true, hosts } => {
            hosts.task("network update of", "updated", NamedCommand::UpdateNetwork)
        }
        Command::Reboot(hosts) => hosts.task("restart of", "restarted", NamedCommand::RebootHosts),
        Command::Migrate(hosts) => hosts.task("live migration from", "migrated", NamedCommand::MigrateHosts),
        Command::Maintenance(command) => command.task(),
        Command::Done { host, failed } => {
            let done = match failed {
                None => "is done".to_owned(),
                Some(_) => in_order("has failed", &host),
            };
            let make = |host| NamedCommand::CompleteHost { host, failed };
            return one(session, host, ("work on", &done), make);
        }
        Command::Retry { host } => {
            return one(session, host, ("work on", "is repeated"), |host| NamedCommand::RetryHost { host });
        }
        Command::GiveUp { host } => {
            let done = in_order("is given up", &host);
            return one(session, host, ("work on", &done), |host| NamedCommand::GiveUpHost { host });
        }
        Command::Clear { host } => {
            let words = ("attention to", "is no longer needed");
            return one(session, host, words, |host| NamedCommand::ClearHost { host });
        }
        Command::Degrade { host, fails_in, notice } => {
            let degrade = |host| NamedCommand::DegradeHost { host, fails_in };
            host.task(("redeployment from", "degraded"), notice, degrade)
        }
        Command::Fail { fenced, host, notice, confirmation } => {
            confirmation.obtain(session, &format!("failure of {}", host.host.0))?;
            let health = if fenced { "failed and fenced" } else { "failed" };
            host.task(("recovery of the machines of", health), notice, |host| NamedCommand::FailHost {
                host,
                fenced,
            })
        }
        Command::Recover { host } => {
            let (host, notice) = (HostArgs { host, waiting: WaitArgs::NONE }, NoticeRequirement::default());
            host.task(("recovery of", "healthy"), notice, |host| NamedCommand::RecoverHost { host })
        }
    };
    task::run_all(session, &[task], waiting)
}

fn set(session: &Session, Name(host): Name, capacity: SizeChangeArgs) -> Result<()> {
    let now: HostView = session.get(&format!("/v1/hosts/{}", escaped(&host)))?;
    let has = now.room.map(|room| (room.cpus, room.memory_mib.and_then(memory_of_mib)));
    let Some((cpus, memory)) = capacity.change(has.unwrap_or_default()) else { return Ok(()) };
    let wording = Wording {
        noun: format!("capacity of host {host}"),
        done: format!("Capacity of host {host} changed."),
        unchanged: format!("Host {host} already has this capacity."),
    };
    let command = NamedCommand::ChangeCapacity { host: host.clone(), cpus, memory };
    task::run(session, &Task::new(wording, command))?;
    warn_if_exceeded(session, &host)
}

/// The end of a step that leaves a host in need of attention.
fn in_order(what: &str, Name(host): &Name) -> String {
    format!("{what}: the host needs attention until `forewarn host clear {host}`")
}

/// Sends a command about one host, with the words for it, such as `work on` and `is done`.
fn one(
    session: &Session,
    Name(host): Name,
    (noun, done): (&str, &str),
    make: impl FnOnce(String) -> NamedCommand,
) -> Result<()> {
    let mut letters = noun.chars();
    let capital: String = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
    let wording = Wording {
        noun: format!("{noun} {host}"),
        done: format!("{capital} {host} {done}."),
        unchanged: format!("{capital} {host} {done} already."),
    };
    task::run(session, &Task::new(wording, make(host))).map(drop)
}

/// Sends the same command for each host.
fn each(
    session: &Session,
    hosts: Vec<Name>,
    wording: impl Fn(&str) -> Wording,
    make: impl Fn(String) -> NamedCommand,
) -> Result<()> {
    let tasks = hosts.into_iter().map(|Name(host)| Task::new(wording(&host), make(host)));
    task::run_all(session, &tasks.collect::<Vec<_>>(), WaitArgs::NONE)
}

impl HostsArgs {
    /// A task on all hosts: `noun` and `done` are its words, such as `restart of` and `restarted`.
    fn task(
        self,
        noun: &str,
        done: &str,
        make: impl FnOnce(HostWorkEntry) -> NamedCommand,
    ) -> (Task, WaitArgs) {
        let hosts: Vec<_> = self.hosts.into_iter().map(|Name(host)| host).collect();
        let names = some(&hosts);
        let wording = Wording {
            noun: format!("{noun} {names}"),
            done: format!("{names} {done}."),
            unchanged: format!("Nothing to do on {names}."),
        };
        (Task::new(wording, make(self.step.entry(hosts))).requiring(self.notice), self.waiting)
    }
}

impl HostArgs {
    /// A task that changes the health of the host: `noun` and `health` are its words.
    fn task(
        self,
        (noun, health): (&str, &str),
        notice: NoticeRequirement,
        make: impl FnOnce(String) -> NamedCommand,
    ) -> (Task, WaitArgs) {
        let Name(host) = self.host;
        let wording = Wording {
            noun: format!("{noun} {host}"),
            done: format!("{host} is marked as {health}."),
            unchanged: format!("{host} is already marked as {health}."),
        };
        (Task::new(wording, make(host)).requiring(notice), self.waiting)
    }
}

fn list(session: &Session) -> Result<()> {
    session.list("/v1/hosts", |hosts: Vec<HostView>| Ok(table(&hosts, session.now()?, session.width())))
}

/// Health, the fence, maintenance mode, and whether the host needs attention.
fn health_of(host: &HostView) -> String {
    let attention = host.attention.as_ref().map(|_| "needs attention");
    let mode = host.maintenance.as_ref().map(state_word);
    let words = [Some(host.health.as_str()), fence_of(host), mode, attention];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The fence of a failed host, in words.
fn fence_of(host: &HostView) -> Option<&str> {
    host.fence.as_deref().map(|fence| match fence {
        "awaited" => "not fenced",
        "confirmed" => "fenced",
        other => other,
    })
}

/// Work on the host, and the time for which it has been ready for it.
fn work_of(host: &HostView, now: Moment) -> String {
    let work = host.work.clone().unwrap_or_default();
    match host.step_since {
        Some(since) => {
            let work = host.step_work.clone().unwrap_or(work);
            let state = if host.manual { "ready for work" } else { "worked on" };
            format!("{state} since {}: {work}", show_duration(whole_seconds(now, since)))
        }
        None => work,
    }
}

fn whole_seconds(now: Moment, since: Moment) -> Duration {
    Duration::from_secs(now.0.since(since.0).as_secs())
}

fn table(hosts: &[HostView], now: Moment, width: Width) -> String {
    let has_limits = hosts.iter().any(|host| host.room.is_some_and(|room| room.has_limit()));
    let sizes: &[_] = if has_limits { &["cpus", "memory"] } else { &[] };
    let usual = [&["name", "zone", "health"], sizes, &["machines", "work"]].concat();
    let more = ["count", "tenants"];
    let dropped = ["memory", "cpus", "machines", "zone", "work", "health"];
    let mut table = Table::with_more(width, &usual, &more).dropping(&dropped);
    for host in hosts {
        let tenants: BTreeSet<_> =
            host.machines.iter().filter_map(|name| Some(name.split_once('/')?.0)).collect();
        let mut cells = vec![
            host.name.clone(),
            host.zone.map(|zone| zone.to_string()).unwrap_or_default(),
            health_of(host),
        ];
        if has_limits {
            cells.extend([cpus_of(host), memory_of(host)]);
        }
        match width {
            Width::Fit(_) => cells.extend([some(&host.machines), work_of(host, now)]),
            Width::Wide => {
                let count = host.machines.len().to_string();
                cells.extend([listed(&host.machines), work_of(host, now), count, listed(tenants)]);
            }
        }
        table.row(cells);
    }
    table.to_string()
}

/// CPUs in use, and all.
fn cpus_of(host: &HostView) -> String {
    host.room.map(|room| room.cpu_words()).unwrap_or_default()
}

/// Memory in use, and all.
fn memory_of(host: &HostView) -> String {
    host.room.map(|room| room.memory_words()).unwrap_or_default()
}

/// Warns if the machines of a host take more than it has.
pub(super) fn warn_if_exceeded(session: &Session, name: &str) -> Result<()> {
    let host: HostView = session.get(&format!("/v1/hosts/{}", escaped(name)))?;
    if host.room.is_some_and(|room| room.exceeded) {
        let (cpus, memory) = (cpus_of(&host), memory_of(&host));
        eprintln!("forewarn: warning: {name} has more than its capacity: CPUs {cpus}, memory {memory}");
    }
    Ok(())
}

/// The fence of a failed host, and the command that confirms it.
fn fence_words(host: &HostView) -> String {
    match fence_of(host) {
        Some(fence) if host.fence.as_deref() == Some("awaited") => {
            format!(
                "{fence}: its machines start elsewhere once it is; `forewarn host fail {} --fenced` confirms it",
                host.name
            )
        }
        Some(fence) => fence.to_owned(),
        None => String::new(),
    }
}

fn show(session: &Session, Name(host): &Name) -> Result<()> {
    session.show(&format!("/v1/hosts/{}", escaped(host)), |host: HostView| {
        let work = work_of(&host, session.now()?);
        let fence = fence_words(&host);
        let mode = host.maintenance.as_ref();
        let maintenance = mode.map(|mode| format!("{}: {}", state_word(mode), mode.text)).unwrap_or_default();
        let returning = if host.returning.is_empty() { String::new() } else { listed(&host.returning) };
        let left = mode.filter(|mode| !mode.left.is_empty());
        let away = left.map(|mode| listed(&mode.left)).unwrap_or_default();
        let sizes = match &host.room {
            Some(_) => vec![("cpus", cpus_of(&host)), ("memory", memory_of(&host))],
            None => Vec::new(),
        };
        let before = [
            ("name", host.name),
            ("zone", host.zone.map(|zone| zone.to_string()).unwrap_or_default()),
            ("health", host.health),
        ];
        let after = [
            ("machines", listed(host.machines)),
            ("work", work),
            ("attention", host.attention.unwrap_or_default()),
        ];
        let more = [("maintenance", maintenance), ("away", away), ("returning", returning)];
        let more = more.into_iter().filter(|(_, value)| !value.is_empty());
        let fence = Some(("fence", fence)).filter(|(_, value)| !value.is_empty());
        let facts = before.into_iter().chain(fence).chain(sizes).chain(after).chain(more);
        Ok(Table::facts(facts).to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_listed_with_their_machines() {
        let hosts = serde_json::json!([
            {"name": "h1", "zone": 1, "health": "healthy", "machines": ["web/web_0", "solo/solo"], "work": null},
            {"name": "h10", "zone": null, "health": "failed", "machines": [], "work": "waits for its turn",
             "fence": "awaited"},
            {"name": "h11", "zone": null, "health": "healthy", "machines": [], "work": "update of h11",
             "attention": "no kernel", "step_since": "2026-01-01T00:00:00Z", "step_work": "kernel 6.12.9",
             "manual": true,
             "maintenance": {"state": "entering", "text": "", "since": "2026-01-01T00:00:00Z", "move": "live",
                             "left": [], "remaining": []}}
        ]);
        let now: Moment = "2026-01-01T00:03:00.4Z".parse().unwrap();
        assert_eq!(
            table(&serde_json::from_value::<Vec<HostView>>(hosts).unwrap(), now, Width::Fit(130)),
            "NAME  ZONE  HEALTH                                               MACHINES              WORK\n\
             h1    1     healthy                                              web/web_0, solo/solo  -\n\
             h10   -     failed, not fenced                                   -                     waits for its turn\n\
             h11   -     healthy, entering maintenance mode, needs attention  -                     \
             ready for work since 3m: kernel 6.12.9\n"
        );
    }

    #[test]
    fn hosts_are_listed_with_cpus_and_memory_if_one_has_a_capacity() {
        let limit = serde_json::json!({"cpus": 64, "memory_mib": null, "used_cpus": 4, "used_memory_mib": 8192,
            "exceeded": false});
        let hosts = serde_json::json!([
            {"name": "h1", "zone": 1, "health": "healthy", "machines": ["solo/solo"], "work": null, "room": limit},
            {"name": "h2", "zone": 1, "health": "healthy", "machines": [], "work": null}
        ]);
        let now: Moment = "2026-01-01T00:03:00Z".parse().unwrap();
        assert_eq!(
            table(&serde_json::from_value::<Vec<HostView>>(hosts).unwrap(), now, Width::USUAL),
            "NAME  ZONE  HEALTH   CPUS     MEMORY  MACHINES   WORK\n\
             h1    1     healthy  4 of 64  8 GiB   solo/solo  -\n\
             h2    1     healthy  -        -       -          -\n"
        );
    }
}
