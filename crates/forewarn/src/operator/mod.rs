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
mod progress;
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
mod verdict;
mod vm;
mod wait;
mod wait_for;
mod watch;
mod webhook;

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};

use crate::client;
pub(crate) use confirmation::ConfirmationArgs;
pub(crate) use forewarn_cli_support::visible::visible;
use forewarn_cli_support::{table, visible};
use session::Session;
pub(crate) use session::print;

/// Options of every command: the server, its credentials, and the output format.
#[derive(Args)]
pub(crate) struct GlobalOptions {
    /// Server address: http://HOST:PORT, https://HOST:PORT, or unix:PATH
    #[arg(
        long, global = true, value_name = "URL", env = "FOREWARN_API", default_value = client::DEFAULT_URL,
        help_heading = "Global options"
    )]
    api: String,
    /// Cluster to work on [default: the first one that the token gives access to; for `audit`, all of them]
    #[arg(
        long,
        global = true,
        value_name = "CLUSTER",
        env = "FOREWARN_CLUSTER",
        help_heading = "Global options"
    )]
    cluster: Option<String>,
    /// API token
    #[arg(
        long,
        global = true,
        value_name = "TOKEN",
        env = "FOREWARN_TOKEN",
        hide_env_values = true,
        help_heading = "Global options"
    )]
    token: Option<String>,
    /// CA certificates to trust (PEM file) [default: system store]
    #[arg(long, global = true, value_name = "FILE", env = "FOREWARN_CA", help_heading = "Global options")]
    ca: Option<std::ffi::OsString>,
    /// Output format
    #[arg(
        long, global = true, value_name = "FORMAT", value_enum, default_value_t = OutputChoice::Table,
        help_heading = "Global options"
    )]
    output: OutputChoice,
}

impl GlobalOptions {
    pub(crate) fn api(&self) -> &str {
        // An empty environment variable counts as unset.
        if self.api.is_empty() { client::DEFAULT_URL } else { &self.api }
    }

    /// A client for the server, with the token and the CA certificates of the options.
    pub(crate) fn client(&self) -> Result<client::Client> {
        Ok(client::Client::new(self.api())?.with_token(self.token()).with_ca_file(self.ca()))
    }

    fn ca(&self) -> Option<std::path::PathBuf> {
        self.ca.clone().filter(|path| !path.is_empty()).map(Into::into)
    }

    pub(crate) fn output(&self) -> OutputFormat {
        match self.output {
            OutputChoice::Table | OutputChoice::Junit => OutputFormat::Table,
            OutputChoice::Wide => OutputFormat::Wide,
            OutputChoice::Json => OutputFormat::Json,
        }
    }

    /// The format of a report on tests.
    pub(crate) fn report(&self) -> TestReportFormat {
        match self.output {
            OutputChoice::Table | OutputChoice::Wide => TestReportFormat::Text,
            OutputChoice::Json => TestReportFormat::Json,
            OutputChoice::Junit => TestReportFormat::Junit,
        }
    }

    pub(crate) fn cluster(&self) -> Option<String> {
        self.cluster.clone().filter(|cluster| !cluster.is_empty())
    }

    fn token(&self) -> Option<String> {
        self.token.clone().filter(|token| !token.is_empty())
    }
}

/// Values of `--output`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OutputChoice {
    /// Tables and sentences
    Table,
    /// Like table, with more columns
    Wide,
    /// Response of the server, as JSON
    Json,
    /// JUnit XML; only of `story run`
    Junit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputFormat {
    Table,
    Wide,
    Json,
}

/// The format of a report on tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TestReportFormat {
    Text,
    Json,
    Junit,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Manage machines: list, create, restart, move, stop, delete, explain
    #[command(subcommand)]
    Vm(vm::Command),
    /// Manage hosts: list, add, update, reboot, migrate, mark as failed
    #[command(subcommand)]
    Host(host::Command),
    /// Show tenants and change their approval policy
    #[command(subcommand)]
    Tenant(tenant::Command),
    /// Manage scale sets: create, scale, update, upgrade, delete instances
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
    /// Hold back the start of all events, or release it
    #[command(subcommand)]
    Brake(rollout::BrakeCommand),
    /// Show or change the settings of the cluster
    #[command(subcommand)]
    Settings(settings::Command),
    /// Manage clusters: independent groups of hosts and tenants
    #[command(subcommand)]
    Cluster(cluster::Command),
    /// Manage API tokens
    #[command(subcommand)]
    Token(token::Command),
    /// Manage webhooks: receivers to which events are pushed
    #[command(subcommand)]
    Webhook(webhook::Command),
    /// Inject faults into the answers of a test server: status codes, delays, lost connections
    #[command(subcommand)]
    Fault(fault::Command),
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
        Command::Token(command) => token::run(&session, command),
        Command::Webhook(command) => webhook::run(&session, command),
        Command::Fault(command) => fault::run(&session, command),
        Command::Verdict => verdict::run(&session),
        Command::Audit(command) => audit::run(&session, command),
        Command::Az(command) => az::run(&session, options, &command),
        Command::Watch(arguments) => watch::run(&session, &arguments),
        Command::Wait(arguments) => wait_for::run(&session.with_cluster_name()?, &arguments),
        Command::Reset => server_state::reset(&session),
        Command::State(command) => server_state::run(&session, &command),
        Command::Health(arguments) => health::run(options, &arguments),
        Command::Backup { file } => backup::run(&session, &file),
    }
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
