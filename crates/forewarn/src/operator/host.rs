//! `forewarn host`: hosts, and what is done to them.

use std::collections::BTreeSet;

use anyhow::Result;
use clap::{Args, Subcommand};
use forewarn_control::{HostEntry, HostView, NamedCommand};
use forewarn_types::Span;

use super::Named;
use super::ask::{self, Errand, Patience};
use super::consent::Consent;
use super::session::{Session, escaped};
use super::table::{Table, Width, listed, some};

const EXAMPLES: &str = "\
Examples:
  forewarn host update h1 h2            one group of hosts after the other
  forewarn host update --network h1 --wait";

const ADD_EXAMPLES: &str = "\
Examples:
  forewarn host add h11
  forewarn host add h12 --zone 2";

const DEGRADE_EXAMPLES: &str = "\
Example:
  forewarn host degrade h1 --fails-in 3d";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List hosts.
    Ls,
    /// Show a host.
    Show {
        /// Its name.
        host: Named,
    },
    /// Add a host.
    #[command(after_help = ADD_EXAMPLES)]
    Add {
        /// Its name.
        host: Named,
        /// The zone it stands in: machines never leave their zone.
        #[arg(long, value_name = "ZONE")]
        zone: Option<u16>,
    },
    /// Remove hosts that have no machines.
    Rm {
        /// Their names.
        #[arg(required = true, value_name = "HOST")]
        hosts: Vec<Named>,
    },
    /// Stop managing hosts without touching them. Machines that are on them have to be forgotten or moved first.
    Forget {
        /// Their names.
        #[arg(required = true, value_name = "HOST")]
        hosts: Vec<Named>,
    },
    /// Update hosts: their machines are paused for some seconds.
    #[command(after_help = EXAMPLES)]
    Update {
        /// The network only: machines lose their connection for a moment.
        #[arg(long)]
        network: bool,
        #[command(flatten)]
        hosts: Hosts,
    },
    /// Restart hosts, and their machines with them.
    Reboot(Hosts),
    /// Move the machines of hosts live to others.
    Migrate(Hosts),
    /// Say that a host is expected to fail: its machines are moved away before.
    #[command(after_help = DEGRADE_EXAMPLES)]
    Degrade {
        #[command(flatten)]
        host: Host,
        /// In what time; seven days, if not said.
        #[arg(long, value_name = "DURATION")]
        fails_in: Option<Span>,
    },
    /// Say that a host has failed: its machines are restarted elsewhere.
    Fail {
        #[command(flatten)]
        host: Host,
        #[command(flatten)]
        consent: Consent,
    },
    /// Say that a host is well again.
    Recover(Host),
}

#[derive(Args)]
pub(crate) struct Hosts {
    /// Their names.
    #[arg(required = true, value_name = "HOST")]
    hosts: Vec<Named>,
    #[command(flatten)]
    patience: Patience,
}

#[derive(Args)]
pub(crate) struct Host {
    /// Its name.
    host: Named,
    #[command(flatten)]
    patience: Patience,
}

pub(super) fn run(session: &Session, command: Command) -> Result<()> {
    let (errand, patience) = match command {
        Command::Ls => return list(session),
        Command::Show { host } => return show(session, &host),
        Command::Add { host: Named(name), zone } => {
            let phrase = format!("host {name}");
            let errand = Errand::new(phrase, NamedCommand::AdmitHost(HostEntry { name, zone }));
            return ask::one(session, &errand).map(drop);
        }
        Command::Rm { hosts } => {
            return each(session, hosts, "removal of host", |host| NamedCommand::RemoveHost { host });
        }
        Command::Forget { hosts } => {
            let what = "removal from management of host";
            return each(session, hosts, what, |host| NamedCommand::ForgetHost { host });
        }
        Command::Update { network: false, hosts } => {
            hosts.errand("update of", |hosts| NamedCommand::UpdateHosts { hosts })
        }
        Command::Update { network: true, hosts } => {
            hosts.errand("network update of", |hosts| NamedCommand::UpdateNetwork { hosts })
        }
        Command::Reboot(hosts) => hosts.errand("restart of", |hosts| NamedCommand::RebootHosts { hosts }),
        Command::Migrate(hosts) => {
            hosts.errand("live migration from", |hosts| NamedCommand::MigrateHosts { hosts })
        }
        Command::Degrade { host, fails_in } => {
            host.errand("expected failure of", |host| NamedCommand::DegradeHost { host, fails_in })
        }
        Command::Fail { host, consent } => {
            consent.obtain(session, &format!("failure of {}", host.host.0))?;
            host.errand("failure of", |host| NamedCommand::FailHost { host })
        }
        Command::Recover(host) => host.errand("recovery of", |host| NamedCommand::RecoverHost { host }),
    };
    ask::all(session, &[errand], patience)
}

/// Asks for the same for each host.
fn each(
    session: &Session,
    hosts: Vec<Named>,
    what: &str,
    make: impl Fn(String) -> NamedCommand,
) -> Result<()> {
    let errands = hosts.into_iter().map(|Named(host)| Errand::new(format!("{what} {host}"), make(host)));
    ask::all(session, &errands.collect::<Vec<_>>(), Patience::NONE)
}

impl Hosts {
    fn errand(self, what: &str, make: impl FnOnce(Vec<String>) -> NamedCommand) -> (Errand, Patience) {
        let hosts: Vec<_> = self.hosts.into_iter().map(|Named(host)| host).collect();
        (Errand::new(format!("{what} {}", some(&hosts)), make(hosts)), self.patience)
    }
}

impl Host {
    fn errand(self, what: &str, make: impl FnOnce(String) -> NamedCommand) -> (Errand, Patience) {
        let Named(host) = self.host;
        (Errand::new(format!("{what} {host}"), make(host)), self.patience)
    }
}

fn list(session: &Session) -> Result<()> {
    session.list("/v1/hosts", |hosts: Vec<HostView>| Ok(table(&hosts, session.width())))
}

fn table(hosts: &[HostView], width: Width) -> String {
    let usual = ["name", "zone", "health", "machines", "work"];
    let mut table = Table::with_more(width, &usual, &["count", "tenants"]);
    for host in hosts {
        let tenants: BTreeSet<_> =
            host.machines.iter().filter_map(|name| Some(name.split_once('/')?.0)).collect();
        let usual = [
            host.name.clone(),
            host.zone.map(|zone| zone.to_string()).unwrap_or_default(),
            host.health.clone(),
            listed(&host.machines),
            host.work.clone().unwrap_or_default(),
        ];
        table.row_with_more(usual, [host.machines.len().to_string(), listed(tenants)]);
    }
    table.to_string()
}

fn show(session: &Session, Named(host): &Named) -> Result<()> {
    session.show(&format!("/v1/hosts/{}", escaped(host)), |host: HostView| {
        let facts = [
            ("name", host.name),
            ("zone", host.zone.map(|zone| zone.to_string()).unwrap_or_default()),
            ("health", host.health),
            ("machines", listed(host.machines)),
            ("work", host.work.unwrap_or_default()),
        ];
        Ok(Table::facts(facts).to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_listed_with_what_is_on_them() {
        let hosts = serde_json::json!([
            {"name": "h1", "zone": 1, "health": "healthy", "machines": ["web/web_0", "solo/solo"], "work": null},
            {"name": "h10", "zone": null, "health": "failed", "machines": [], "work": "waits for its turn"}
        ]);
        assert_eq!(
            table(&serde_json::from_value::<Vec<HostView>>(hosts).unwrap(), Width::Usual),
            "NAME  ZONE  HEALTH   MACHINES              WORK\n\
             h1    1     healthy  web/web_0, solo/solo  -\n\
             h10   -     failed   -                     waits for its turn\n"
        );
    }
}
