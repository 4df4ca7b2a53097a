//! `forewarn tenant`: groups of machines that get the same events.

use anyhow::{Result, bail};
use clap::Subcommand;
use forewarn_control::{ApproveWord, NamedCommand, PolicyEntry, TenantView};

use super::Name;
use super::sentences::Wording;
use super::session::{Session, escaped};
use super::shared_args::ApprovalArgs;
use super::table::{Table, Width, listed};
use super::task::{self, Task};

const EXAMPLES: &str = "\
Examples:
  forewarn tenant policy web --restart automatic
  forewarn tenant policy db --redeploy asked --all-down automatic";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List tenants
    Ls,
    /// Show a tenant
    Show {
        /// Tenant
        name: Name,
    },
    /// Change the approval policy of a tenant; omitted options keep their value
    #[command(before_help = EXAMPLES)]
    Policy {
        /// Tenant; a placement group stands for its whole scale set
        name: Name,
        #[command(flatten)]
        approvals: ApprovalArgs,
    },
}

pub(super) fn run(session: &Session, command: Command) -> Result<()> {
    match command {
        Command::Ls => {
            session.list("/v1/tenants", |tenants: Vec<TenantView>| Ok(table(&tenants, session.width())))
        }
        Command::Show { name: Name(name) } => {
            session.show(&format!("/v1/tenants/{}", escaped(&name)), |tenant| Ok(facts(tenant)))
        }
        Command::Policy { name: Name(tenant), approvals } => {
            let Some(change) = approvals.change() else {
                bail!("nothing to change\n  hint: forewarn tenant policy --help");
            };
            let now: TenantView = session.get(&format!("/v1/tenants/{}", escaped(&tenant)))?;
            let wording = Wording {
                noun: format!("policy of {tenant}"),
                done: format!("Policy of {tenant} changed."),
                unchanged: format!("{tenant} already has this policy."),
            };
            let command = NamedCommand::ChangePolicy { tenant, policy: change.apply(now.policy) };
            task::run(session, &Task::new(wording, command)).map(drop)
        }
    }
}

fn table(tenants: &[TenantView], width: Width) -> String {
    let usual = ["name", "kind", "enrolled", "incarnation", "machines", "events"];
    let more = ["automatic approval", "names of machines", "ids of events"];
    let mut table = Table::with_more(width, &usual, &more);
    for tenant in tenants {
        let usual = [
            tenant.name.clone(),
            tenant.kind.clone(),
            enrolled(tenant).to_owned(),
            tenant.incarnation.to_string(),
            tenant.machines.len().to_string(),
            tenant.events.len().to_string(),
        ];
        let more = [automatic(tenant.policy), listed(&tenant.machines), listed(&tenant.events)];
        table.row_with_more(usual, more);
    }
    table.to_string()
}

fn facts(tenant: TenantView) -> String {
    let enrolled = enrolled(&tenant).to_owned();
    let facts = [
        ("name", tenant.name),
        ("kind", tenant.kind),
        ("enrolled", enrolled),
        ("incarnation", tenant.incarnation.to_string()),
        ("automatic approval", automatic(tenant.policy)),
        ("machines", listed(tenant.machines)),
        ("events", listed(tenant.events)),
    ];
    Table::facts(facts).to_string()
}

fn enrolled(tenant: &TenantView) -> &'static str {
    if tenant.enrolled { "yes" } else { "no" }
}

/// The events that are approved automatically.
pub(super) fn automatic(policy: PolicyEntry) -> String {
    let rules = [
        (policy.restart, "restarts by the owner"),
        (policy.redeploy, "redeployments by the owner"),
        (policy.all_down, "all events while no machine runs"),
    ];
    let automatic = rules.into_iter().filter(|(word, _)| match word {
        ApproveWord::Automatic => true,
        ApproveWord::Asked => false,
    });
    listed(automatic.map(|(_, what)| what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_shown_by_its_automatic_approvals() {
        let (asked, automatic) = (ApproveWord::Asked, ApproveWord::Automatic);
        let policy = PolicyEntry { restart: automatic, redeploy: asked, all_down: automatic };
        assert_eq!(super::automatic(policy), "restarts by the owner, all events while no machine runs");
        let policy = PolicyEntry { restart: asked, redeploy: asked, all_down: asked };
        assert_eq!(super::automatic(policy), "");
    }
}
