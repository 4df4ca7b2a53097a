//! The operator's commands: each sends requests to a running server and prints the responses.
//!
//! The server decides: unknown names and impossible work are rejected by it, and its messages are printed unchanged. A
//! command returns when its events are announced; with `--wait`, when they are completed.

mod audit;
pub(crate) mod az;
mod backup;
mod clock;
mod clock_report;
mod cluster;
mod confirmation;
mod dashboard;
mod enrolment_hint;
mod event;
mod event_id;
mod explain;
mod fault;
mod fleet;
mod fleet_pieces;
mod fleet_report;
mod health;
mod host;
mod host_mode;
mod interruption;
mod machine_sets;
mod names;
mod progress;
mod realm;
mod realm_server;
mod rollout;
mod rollout_progress;
mod scaleset;
mod sentences;
mod server_state;
mod session;
mod settings;
mod shared_args;
mod size_args;
mod step_args;
mod task;
mod tenant;
mod token;
mod unannounced;
mod verdict;
mod vm;
mod vm_set;
mod wait;
mod wait_for;
mod watch;
mod webhook;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::builder::PossibleValue;
use clap::{Args, Subcommand, ValueEnum};

use crate::server_lookup::{self, LookupPlaces, ServerTarget};
use crate::{client, context_file, service};
pub(crate) use confirmation::{ConfirmationArgs, prompt_for};
use forewarn_cli_support::output::FormatWord;
pub(crate) use forewarn_cli_support::output::{DataFormat, OutputFormat};
pub(crate) use forewarn_cli_support::visible::visible;
use forewarn_cli_support::{table, visible};
pub(crate) use names::names;
pub(crate) use realm::Command as RealmCommand;
use session::Session;
pub(crate) use session::{print, print_data};

/// Options of every command: the server, its credentials, and the output format.
///
/// The variables of the server, of the token and of the CA are read where they are needed: `context set` stores options,
/// and no variables.
#[derive(Args)]
pub(crate) struct GlobalOptions {
    /// Server address: http://HOST:PORT, https://HOST:PORT, or unix:PATH [env: FOREWARN_API] [default: that of the
    /// context, the socket of the service, or http://127.0.0.1:1339]
    #[arg(long, global = true, value_name = "URL", help_heading = "Global options")]
    api: Option<String>,
    /// Context with the server to use, or `none` [env: FOREWARN_CONTEXT] [default: that of `context use`]
    #[arg(long, global = true, value_name = "NAME", help_heading = "Global options")]
    context: Option<String>,
    /// Cluster to work on [default: that of the context, or the first one that the token gives access to; for `audit`,
    /// all of them]
    #[arg(
        long,
        global = true,
        value_name = "CLUSTER",
        env = "FOREWARN_CLUSTER",
        hide_env_values = true,
        help_heading = "Global options"
    )]
    cluster: Option<String>,
    /// API token [env: FOREWARN_TOKEN] [default: that of the context]
    #[arg(long, global = true, value_name = "TOKEN", help_heading = "Global options")]
    token: Option<String>,
    /// CA certificates to trust (PEM file) [env: FOREWARN_CA] [default: those of the context, or the system store]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    ca: Option<std::ffi::OsString>,
    /// Output format
    #[arg(
        long, short, global = true, value_name = "FORMAT", value_enum,
        default_value_t = OutputChoice::Any(FormatWord::Table), help_heading = "Global options"
    )]
    output: OutputChoice,
    /// Same as --output json
    #[arg(long, global = true, conflicts_with = "output", help_heading = "Global options")]
    json: bool,
}

impl GlobalOptions {
    /// The server of the command, and the source of its address.
    pub(crate) fn target(&self) -> Result<ServerTarget> {
        let contexts = context_file::path();
        let places = LookupPlaces {
            api: self.api_option().filter(|url| !url.is_empty()),
            context: self.context.as_deref().filter(|name| !name.is_empty()),
            variable: &server_lookup::variable,
            contexts: contexts.as_deref(),
            socket: Path::new(service::SOCKET),
        };
        places.find()
    }

    /// A client for the server, with the token and the CA certificates of the options, or of the context.
    pub(crate) fn client(&self) -> Result<client::Client> {
        let target = self.target()?;
        let token = self.token().map_or_else(|| target.token(), |token| Ok(Some(token)))?;
        let client = client::Client::new(&target.url);
        let client = match target.origin.name() {
            Some(source) => client.context(source)?,
            None => client?,
        };
        let ca = self.ca(&target);
        Ok(client.with_source(target.source()).with_token(token).with_ca_file(ca))
    }

    /// The CA certificates to trust.
    pub(crate) fn ca(&self, target: &ServerTarget) -> Option<PathBuf> {
        let variable = || std::env::var_os("FOREWARN_CA");
        let named = self.ca.clone().or_else(variable).filter(|path| !path.is_empty());
        named.map(PathBuf::from).or_else(|| target.ca())
    }

    /// The value of `--api`.
    pub(crate) fn api_option(&self) -> Option<&str> {
        self.api.as_deref()
    }

    /// The value of `--ca`.
    pub(crate) fn ca_option(&self) -> Option<&std::ffi::OsStr> {
        self.ca.as_deref()
    }

    /// The value of `--token`.
    pub(crate) fn token_option(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// The value of `--cluster` or of its variable.
    pub(crate) fn cluster_option(&self) -> Option<&str> {
        self.cluster.as_deref()
    }

    pub(crate) fn output(&self) -> OutputFormat {
        match self.choice() {
            OutputChoice::Any(word) => word.format(),
            OutputChoice::Junit => FormatWord::Table.format(),
        }
    }

    /// The format of a report on tests.
    pub(crate) fn report(&self) -> TestReportFormat {
        match (self.choice(), self.output()) {
            (OutputChoice::Junit, _) => TestReportFormat::Junit,
            (OutputChoice::Any(_), OutputFormat::Text(_)) => TestReportFormat::Text,
            (OutputChoice::Any(_), OutputFormat::Data(format)) => TestReportFormat::Data(format),
        }
    }

    fn choice(&self) -> OutputChoice {
        if self.json { OutputChoice::Any(FormatWord::Json) } else { self.output }
    }

    pub(crate) fn cluster(&self) -> Result<Option<String>> {
        match self.cluster.clone().filter(|cluster| !cluster.is_empty()) {
            Some(cluster) => Ok(Some(cluster)),
            None => Ok(self.target()?.cluster()),
        }
    }

    /// The token of the command line, or of the environment.
    pub(crate) fn token(&self) -> Option<String> {
        self.token
            .clone()
            .filter(|token| !token.is_empty())
            .or_else(|| server_lookup::variable("FOREWARN_TOKEN"))
    }
}

/// Values of `--output`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutputChoice {
    /// A format of every command.
    Any(FormatWord),
    Junit,
}

impl ValueEnum for OutputChoice {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [OutputChoice; 6] = [
            OutputChoice::Any(FormatWord::Table),
            OutputChoice::Any(FormatWord::Wide),
            OutputChoice::Any(FormatWord::Json),
            OutputChoice::Any(FormatWord::Yaml),
            OutputChoice::Any(FormatWord::Name),
            OutputChoice::Junit,
        ];
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Self::Any(word) => word.to_possible_value(),
            Self::Junit => Some(PossibleValue::new("junit").help("JUnit XML; only of `story run`")),
        }
    }
}

/// The format of a report on tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TestReportFormat {
    Text,
    Data(DataFormat),
    Junit,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Manage machines: list, create, restart, move, stop, delete, explain
    #[command(subcommand)]
    Vm(vm::Command),
    /// Manage hosts: list, create, update, reboot, migrate, mark as failed
    #[command(subcommand)]
    Host(host::Command),
    /// Show tenants; set their approval policy and maintenance windows
    #[command(subcommand)]
    Tenant(tenant::Command),
    /// Manage scale sets: create, scale, set, upgrade, delete instances
    #[command(subcommand)]
    Scaleset(scaleset::Command),
    /// Manage availability sets and their machines
    #[command(subcommand)]
    Availabilityset(machine_sets::Command),
    /// Manage cloud services and their role instances
    #[command(subcommand)]
    Cloudservice(machine_sets::CloudServiceCommand),
    /// List, explain, approve, cancel or start events
    #[command(subcommand)]
    Event(event::Command),
    /// Show the clock; freeze or advance a virtual clock
    #[command(subcommand)]
    Clock(clock::Command),
    /// Export the fleet to a file, or apply one
    #[command(subcommand)]
    Fleet(fleet::Command),
    /// Plan and control rollouts: work on many hosts, group by group
    #[command(subcommand)]
    Rollout(rollout::Command),
    /// Hold back the start of all events, or release it; show the state of the brake
    #[command(subcommand)]
    Brake(rollout::BrakeCommand),
    /// Show or change the settings of the cluster
    #[command(subcommand)]
    Settings(settings::Command),
    /// Manage clusters: independent groups of hosts and tenants
    #[command(subcommand)]
    Cluster(cluster::Command),
    /// Manage the servers of a realm: list, drain, forget
    #[command(subcommand)]
    Server(realm_server::Command),
    /// Manage API tokens
    #[command(subcommand)]
    Token(token::Command),
    /// Manage webhooks: receivers to which events are pushed
    #[command(subcommand)]
    Webhook(webhook::Command),
    /// Inject faults into the answers of a test server: status codes, delays, lost connections
    #[command(subcommand)]
    Fault(fault::Command),
    /// Open the web dashboard of the server in a browser, until Ctrl-C
    #[command(before_help = dashboard::EXAMPLES)]
    Dashboard(dashboard::DashboardArgs),
    /// Print every change as it happens, one per line, until Ctrl-C
    #[command(before_help = watch::EXAMPLES)]
    Watch(watch::WatchArgs),
    /// Wait until tenants are enrolled, events are announced or approved, or no work is left
    #[command(before_help = wait_for::EXAMPLES)]
    Wait(wait_for::WaitForArgs),
    /// Judge everything that has happened on the server: was each event approved before it started?
    #[command(before_help = verdict::EXAMPLES)]
    Verdict,
    /// List, export or verify the audit log
    #[command(subcommand)]
    Audit(audit::Command),
    /// Configure `az` and the Azure SDKs to use this server
    #[command(subcommand)]
    Az(az::Command),
    /// Return a server for development to its initial fleet, clock and settings
    #[command(before_help = server_state::RESET_EXAMPLES)]
    Reset,
    /// Save the whole state of a server for development to a file, or load it
    #[command(subcommand)]
    State(server_state::Command),
    /// Check that the server is ready: exit code 0 if it is, 1 if not
    #[command(before_help = health::EXAMPLES)]
    Health(health::HealthArgs),
    /// Copy the state of a running server to a file for `forewarn store import`
    #[command(before_help = "Example:\n  forewarn backup forewarn-2026-01-01.db")]
    Backup {
        /// Backup file; must not exist yet
        file: std::path::PathBuf,
    },
}

pub(crate) fn run(options: &GlobalOptions, command: Command) -> Result<()> {
    let session = Session::new(options)?;
    match command {
        Command::Vm(command) => vm::run(&session, command),
        Command::Host(command) => host::run(&session, command),
        Command::Tenant(command) => tenant::run(&session, command),
        Command::Scaleset(command) => scaleset::run(&session, command),
        Command::Availabilityset(command) => machine_sets::run(&session, command),
        Command::Cloudservice(command) => machine_sets::cloud(&session, command),
        Command::Event(command) => event::run(&session, command),
        Command::Clock(command) => clock::run(&session, &command),
        Command::Fleet(command) => fleet::run(&session, &command),
        Command::Rollout(command) => rollout::run(&session, command),
        Command::Brake(command) => rollout::brake(&session, command),
        Command::Settings(command) => settings::run(&session, &command),
        Command::Cluster(command) => cluster::run(&session, &command),
        Command::Server(command) => realm_server::run(&session, &command),
        Command::Token(command) => token::run(&session, command),
        Command::Webhook(command) => webhook::run(&session, command),
        Command::Fault(command) => fault::run(&session, command),
        Command::Verdict => verdict::run(&session),
        Command::Audit(command) => audit::run(&session, command),
        Command::Az(command) => az::run(&session, options, &command),
        Command::Dashboard(arguments) => dashboard::run(options, &arguments),
        Command::Watch(arguments) => watch::run(&session, &arguments),
        Command::Wait(arguments) => wait_for::run(&session.with_cluster_name()?, &arguments),
        Command::Reset => server_state::reset(&session),
        Command::State(command) => server_state::run(&session, &command),
        Command::Health(arguments) => health::run(options, &arguments),
        Command::Backup { file } => backup::run(&session, &file),
    }
}

/// Commands about the realm of a running server.
pub(crate) fn run_realm(options: &GlobalOptions, command: &RealmCommand) -> Result<()> {
    realm::run(&Session::new(options)?, command)
}

/// A name from the command line; not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name(String);

/// Parses a name as plain text. clap needs this type for an option that has the name of a global option.
fn not_empty(text: &str) -> Result<String, &'static str> {
    text.parse().map(|Name(name)| name)
}

impl std::str::FromStr for Name {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if text.is_empty() { Err("a name needs at least one character") } else { Ok(Self(text.to_owned())) }
    }
}
