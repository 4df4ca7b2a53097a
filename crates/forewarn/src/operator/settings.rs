//! `forewarn settings`: how the cluster behaves.

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use forewarn_control::{FailureWord, Outcome, SettingsChange, SettingsView, UnenrolledWord};
use forewarn_http_client::Method;

use super::cluster::brake;
use super::say;
use super::session::Session;
use super::table::Table;

const PATH: &str = "/v1/settings";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Show the settings.
    Show,
    /// Change settings; what is not said stays.
    #[command(after_help = "Example:\n  forewarn settings set --failure redeploy --user-operations-max 2")]
    Set(Change),
}

#[derive(Args)]
#[group(required = true, multiple = true)]
pub(crate) struct Change {
    /// What happens to operations on tenants that are not enrolled.
    #[arg(long, value_enum)]
    unenrolled: Option<Unenrolled>,
    /// How many events by users one tenant may have at once; 0: as many as fit.
    #[arg(long, value_name = "N")]
    user_operations_max: Option<u16>,
    /// What a failed host does to its machines.
    #[arg(long, value_enum)]
    failure: Option<Failure>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Unenrolled {
    /// They run at once.
    Runs,
    /// They wait for the notice that an enrolled tenant would get.
    Waits,
}

#[derive(Clone, Copy, ValueEnum)]
enum Failure {
    /// They are restarted elsewhere.
    Reboot,
    /// They are redeployed.
    Redeploy,
}

pub(super) fn run(session: &Session, command: &Command) -> Result<()> {
    match command {
        Command::Show => session.show(PATH, |settings| Ok(facts(settings))),
        Command::Set(change) => {
            let answer = session.change(Method::PATCH, PATH, Some(&SettingsChange::from(change)))?;
            session.present(answer, |outcome: Outcome| Ok(say::outcome(&outcome, "other settings")))
        }
    }
}

impl From<&Change> for SettingsChange {
    fn from(change: &Change) -> Self {
        Self {
            unenrolled: change.unenrolled.map(|word| match word {
                Unenrolled::Runs => UnenrolledWord::Runs,
                Unenrolled::Waits => UnenrolledWord::Waits,
            }),
            user_operations_max: change.user_operations_max,
            failure: change.failure.map(|word| match word {
                Failure::Reboot => FailureWord::Reboot,
                Failure::Redeploy => FailureWord::Redeploy,
            }),
        }
    }
}

fn facts(settings: SettingsView) -> String {
    let unenrolled = match settings.unenrolled {
        UnenrolledWord::Runs => "runs: operations on tenants that are not enrolled run at once",
        UnenrolledWord::Waits => "waits: they wait for the notice that an enrolled tenant would get",
    };
    let most = match settings.user_operations_max {
        0 => "0: as many events by users at once as fit".to_owned(),
        most => format!("{most} events by users of one tenant at once"),
    };
    let failure = match settings.failure {
        FailureWord::Reboot => "reboot: machines of a failed host are restarted elsewhere",
        FailureWord::Redeploy => "redeploy: machines of a failed host are redeployed",
    };
    let facts = [
        ("unenrolled", unenrolled.to_owned()),
        ("user-operations-max", most),
        ("failure", failure.to_owned()),
        ("brake", brake(settings.brake).to_owned()),
    ];
    Table::facts(facts).to_string()
}
