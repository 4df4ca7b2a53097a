//! `forewarn settings`: the settings of a cluster.

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use forewarn_control::{EnrolmentWord, FailureWord, Outcome, SettingsChange, SettingsView, UnenrolledWord};
use forewarn_http_client::Method;
use serde_json::Value;

use super::cluster::brake;
use super::sentences;
use super::sentences::Wording;
use super::session::Session;
use super::table::Table;

const PATH: &str = "/v1/settings";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Show the settings
    Show,
    /// Change settings; omitted options keep their value
    #[command(before_help = "Example:\n  forewarn settings set --failure redeploy --user-operations-max 2")]
    Set(SettingsArgs),
}

#[derive(Args)]
#[group(required = true, multiple = true)]
pub(crate) struct SettingsArgs {
    /// Operations on tenants that are not enrolled
    #[arg(long, value_enum)]
    unenrolled: Option<UnenrolledArg>,
    /// Maximum number of simultaneous user events of a tenant; 0 for no limit
    #[arg(long, value_name = "N")]
    user_operations_max: Option<u16>,
    /// Recovery of machines from a failed host
    #[arg(long, value_enum)]
    failure: Option<FailureArg>,
    /// Time at which tenants are enrolled, so that their machines get notice of events
    #[arg(long, value_enum)]
    enrolment: Option<EnrolmentArg>,
}

#[derive(Clone, Copy, ValueEnum)]
enum EnrolmentArg {
    /// With the first poll of one of their machines, until 24 hours pass without a poll
    OnFirstPoll,
    /// As soon as they exist, with or without polls
    Always,
}

#[derive(Clone, Copy, ValueEnum)]
enum UnenrolledArg {
    /// Start at once
    Runs,
    /// Wait as long as the notice of an enrolled tenant
    Waits,
}

#[derive(Clone, Copy, ValueEnum)]
enum FailureArg {
    /// Restart them on other hosts
    Reboot,
    /// Redeploy them
    Redeploy,
}

pub(super) fn run(session: &Session, command: &Command) -> Result<()> {
    match command {
        Command::Show => {
            let names = |settings: &Value| {
                let members = settings.as_object().map(|settings| settings.keys()).into_iter().flatten();
                members.map(|name| name.replace('_', "-")).collect()
            };
            session.present_named(session.get(PATH)?, names, |settings| Ok(facts(settings)))
        }
        Command::Set(change) => {
            let response = session.change(Method::PATCH, PATH, Some(&SettingsChange::from(change)))?;
            let wording = Wording {
                noun: "change of settings".to_owned(),
                done: "Settings changed.".to_owned(),
                unchanged: "The settings already have these values.".to_owned(),
            };
            session.present(response, |outcome: Outcome| Ok(sentences::outcome(&outcome, &wording)))
        }
    }
}

impl From<&SettingsArgs> for SettingsChange {
    fn from(change: &SettingsArgs) -> Self {
        Self {
            unenrolled: change.unenrolled.map(|word| match word {
                UnenrolledArg::Runs => UnenrolledWord::Runs,
                UnenrolledArg::Waits => UnenrolledWord::Waits,
            }),
            user_operations_max: change.user_operations_max,
            failure: change.failure.map(|word| match word {
                FailureArg::Reboot => FailureWord::Reboot,
                FailureArg::Redeploy => FailureWord::Redeploy,
            }),
            enrolment: change.enrolment.map(|word| match word {
                EnrolmentArg::OnFirstPoll => EnrolmentWord::OnFirstPoll,
                EnrolmentArg::Always => EnrolmentWord::Always,
            }),
        }
    }
}

fn facts(settings: SettingsView) -> String {
    let unenrolled = match settings.unenrolled {
        UnenrolledWord::Runs => "runs: operations on tenants that are not enrolled start at once",
        UnenrolledWord::Waits => {
            "waits: operations on tenants that are not enrolled wait as long as a notice"
        }
    };
    let most = match settings.user_operations_max {
        0 => "0: no limit on simultaneous user events".to_owned(),
        most => format!("{most} simultaneous user events per tenant"),
    };
    let failure = match settings.failure {
        FailureWord::Reboot => "reboot: machines of a failed host are restarted on other hosts",
        FailureWord::Redeploy => "redeploy: machines of a failed host are redeployed",
    };
    let enrolment = match settings.enrolment {
        EnrolmentWord::OnFirstPoll => "on-first-poll: the first poll of a machine enrols its tenant",
        EnrolmentWord::Always => "always: every tenant is enrolled, with or without polls",
    };
    let facts = [
        ("enrolment", enrolment.to_owned()),
        ("unenrolled", unenrolled.to_owned()),
        ("user-operations-max", most),
        ("failure", failure.to_owned()),
        ("brake", brake(settings.brake).to_owned()),
    ];
    Table::facts(facts).to_string()
}
