//! `forewarn tenant`: those who are told of events together.

use anyhow::{Result, bail};
use clap::Subcommand;
use forewarn_control::{ApproveWord, NamedCommand, PolicyEntry, TenantView};

use super::Named;
use super::ask::{self, Errand};
use super::session::{Session, escaped};
use super::table::{Table, Width, listed};
use super::wanted::Approvals;

const EXAMPLES: &str = "\
Examples:
  forewarn tenant policy web --restart automatic
  forewarn tenant policy db --redeploy asked --all-down automatic";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List tenants.
    Ls,
    /// Show a tenant.
    Show {
        /// Its name.
        name: Named,
    },
    /// Change which events of a tenant approve themselves; what is not said stays.
    #[command(after_help = EXAMPLES)]
    Policy {
        /// Its name; a placement group stands for its whole scale set.
        name: Named,
        #[command(flatten)]
        approvals: Approvals,
    },
}

pub(super) fn run(session: &Session, command: Command) -> Result<()> {
    match command {
        Command::Ls => {
            session.list("/v1/tenants", |tenants: Vec<TenantView>| Ok(table(&tenants, session.width())))
        }
        Command::Show { name: Named(name) } => {
            session.show(&format!("/v1/tenants/{}", escaped(&name)), |tenant| Ok(facts(tenant)))
        }
        Command::Policy { name: Named(tenant), approvals } => {
            let Some(change) = approvals.change() else {
                bail!("nothing to change\n  hint: forewarn tenant policy --help");
            };
            let now: TenantView = session.get(&format!("/v1/tenants/{}", escaped(&tenant)))?;
            let phrase = format!("policy of {tenant}");
            let command = NamedCommand::ChangePolicy { tenant, policy: change.apply(now.policy) };
            ask::one(session, &Errand::new(phrase, command)).map(drop)
        }
    }
}

fn table(tenants: &[TenantView], width: Width) -> String {
    let usual = ["name", "kind", "enrolled", "incarnation", "machines", "events"];
    let more = ["approves itself", "names of machines", "ids of events"];
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
        ("approves itself", automatic(tenant.policy)),
        ("machines", listed(tenant.machines)),
        ("events", listed(tenant.events)),
    ];
    Table::facts(facts).to_string()
}

fn enrolled(tenant: &TenantView) -> &'static str {
    if tenant.enrolled { "yes" } else { "no" }
}

/// What needs nobody's approval.
pub(super) fn automatic(policy: PolicyEntry) -> String {
    let rules = [
        (policy.restart, "restarts by the owner"),
        (policy.redeploy, "redeploys by the owner"),
        (policy.all_down, "everything while no machine runs"),
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
    fn a_policy_is_told_by_what_approves_itself() {
        let (asked, automatic) = (ApproveWord::Asked, ApproveWord::Automatic);
        let policy = PolicyEntry { restart: automatic, redeploy: asked, all_down: automatic };
        assert_eq!(super::automatic(policy), "restarts by the owner, everything while no machine runs");
        let policy = PolicyEntry { restart: asked, redeploy: asked, all_down: asked };
        assert_eq!(super::automatic(policy), "");
    }
}
