//! `forewarn tenant`: groups of machines that get the same events.

use anyhow::Result;
use clap::{ArgGroup, Subcommand};
use forewarn_control::{ApproveWord, NamedCommand, PolicyChange, PolicyEntry, TenantView, WindowEntry};

use super::Name;
use super::sentences::Wording;
use super::session::{Session, escaped};
use super::shared_args::ApprovalArgs;
use super::table::{Table, Width, listed};
use super::task::{self, Task, WaitArgs};

const SET_EXAMPLES: &str = "\
The approval policy and the windows are two changes: one that is rejected does not stop the other.

Examples:
  forewarn tenant set web --restart automatic
  forewarn tenant set db --redeploy asked --all-down automatic
  forewarn tenant set db --window \"sat,sun 22:00-04:00 Europe/Berlin\"
  forewarn tenant set web --window 01:00-05:00 --window \"sun 00:00-24:00\"
  forewarn tenant set web --no-window";

const OPTIONS: [&str; 5] = ["restart", "redeploy", "all_down", "window", "no_window"];

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List tenants
    Ls,
    /// Show a tenant
    Show {
        /// Tenant
        name: Name,
    },
    /// Set the approval policy and the maintenance windows of a tenant; omitted options keep their value
    #[command(before_help = SET_EXAMPLES, alias = "policy",
        group = ArgGroup::new("what").required(true).multiple(true).args(OPTIONS))]
    Set {
        /// Tenant or scale set; a placement group stands for its whole scale set
        name: Name,
        #[command(flatten)]
        approvals: ApprovalArgs,
        /// Hours in which planned work on its hosts may start, such as `22:00-06:00` or
        /// `sat,sun 22:00-04:00 Europe/Berlin`; repeatable, replaces all windows
        #[arg(long, value_name = "WINDOW")]
        window: Vec<WindowEntry>,
        /// Remove all windows: planned work may start at any time
        #[arg(long, conflicts_with = "window")]
        no_window: bool,
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
        Command::Set { name: Name(tenant), approvals, window, no_window } => {
            let mut tasks = Vec::new();
            if let Some(change) = approvals.change() {
                tasks.push(policy_task(session, tenant.clone(), change)?);
            }
            if no_window || !window.is_empty() {
                tasks.push(window_task(tenant, window));
            }
            task::run_all(session, &tasks, WaitArgs::NONE)
        }
    }
}

fn policy_task(session: &Session, tenant: String, change: PolicyChange) -> Result<Task> {
    let now: TenantView = session.get(&format!("/v1/tenants/{}", escaped(&tenant)))?;
    let wording = Wording {
        noun: format!("policy of {tenant}"),
        done: format!("Policy of {tenant} changed."),
        unchanged: format!("{tenant} already has this policy."),
    };
    Ok(Task::new(wording, NamedCommand::ChangePolicy { tenant, policy: change.apply(now.policy) }))
}

fn window_task(tenant: String, windows: Vec<WindowEntry>) -> Task {
    let wording = Wording {
        noun: format!("windows of {tenant}"),
        done: format!("Windows of {tenant} changed."),
        unchanged: format!("{tenant} already has these windows."),
    };
    Task::new(wording, NamedCommand::ChangeWindows { tenant, windows: windows.into_iter().collect() })
}

fn table(tenants: &[TenantView], width: Width) -> String {
    let usual = ["name", "kind", "enrolled", "incarnation", "machines", "events"];
    let more = ["automatic approval", "windows", "names of machines", "ids of events"];
    let dropped = ["incarnation", "kind", "events", "machines", "enrolled"];
    let mut table = Table::with_more(width, &usual, &more).dropping(&dropped);
    for tenant in tenants {
        let usual = [
            tenant.name.clone(),
            tenant.kind.clone(),
            enrolled(tenant).to_owned(),
            tenant.incarnation.to_string(),
            tenant.machines.len().to_string(),
            tenant.events.len().to_string(),
        ];
        let more =
            [automatic(tenant.policy), windows(tenant), listed(&tenant.machines), listed(&tenant.events)];
        table.row_with_more(usual, more);
    }
    table.to_string()
}

fn facts(tenant: TenantView) -> String {
    let (enrolled, windows) = (enrolled(&tenant).to_owned(), windows(&tenant));
    let facts = [
        ("name", tenant.name),
        ("kind", tenant.kind),
        ("enrolled", enrolled),
        ("incarnation", tenant.incarnation.to_string()),
        ("automatic approval", automatic(tenant.policy)),
        ("windows", windows),
        ("machines", listed(tenant.machines)),
        ("events", listed(tenant.events)),
    ];
    Table::facts(facts).to_string()
}

fn enrolled(tenant: &TenantView) -> &'static str {
    super::explain::enrolled(tenant.enrolled, tenant.enrolled_by_setting)
}

/// The hours in which planned work on its hosts may start.
fn windows(tenant: &TenantView) -> String {
    let windows: Vec<_> = tenant.windows.iter().map(ToString::to_string).collect();
    if windows.is_empty() { "any time".to_owned() } else { windows.join("; ") }
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
