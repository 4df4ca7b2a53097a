//! The operator's commands: each asks a running server, and shows what it says.
//!
//! Nothing is decided here. Names that are not known, work that cannot be done: the server refuses it in words of its own,
//! which are shown as they are. A command returns once what it asks for is announced; `--wait` waits until it is over.

mod ask;
mod audit;
pub(crate) mod az;
mod backup;
mod clock;
mod cluster;
mod consent;
mod enrol;
mod event;
mod explain;
mod fleet;
mod host;
mod identifier;
mod progress;
mod rollout;
mod rollout_progress;
mod say;
mod scaleset;
mod session;
mod sets;
mod settings;
mod tenant;
mod token;
mod vm;
mod wait;
mod wanted;
mod watch;
mod webhook;

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};

use crate::client;
pub(crate) use forewarn_cli_support::visible::visible;
use forewarn_cli_support::{table, visible};
use session::Session;
pub(crate) use session::print;

/// Where the server is, and how to show what it says.
#[derive(Args)]
pub(crate) struct Options {
    /// Where the server is: http://HOST:PORT, https://HOST:PORT, or unix:PATH.
    #[arg(
        long, global = true, value_name = "URL", env = "FOREWARN_API", default_value = client::USUAL,
        help_heading = "Options of every command"
    )]
    api: String,
    /// The cluster that is meant; without it, the first that may be seen.
    #[arg(
        long,
        global = true,
        value_name = "CLUSTER",
        env = "FOREWARN_CLUSTER",
        help_heading = "Options of every command"
    )]
    cluster: Option<String>,
    /// The token for a server that wants one.
    #[arg(
        long,
        global = true,
        value_name = "TOKEN",
        env = "FOREWARN_TOKEN",
        hide_env_values = true,
        help_heading = "Options of every command"
    )]
    token: Option<String>,
    /// The authorities to believe, as PEM, for https; without it, those of the system.
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "FOREWARN_CA",
        help_heading = "Options of every command"
    )]
    ca: Option<std::ffi::OsString>,
    /// For people, or what the server answers.
    #[arg(
        long, global = true, value_name = "FORM", value_enum, default_value_t = Output::Table,
        help_heading = "Options of every command"
    )]
    output: Output,
}

impl Options {
    /// Where the server is.
    pub(crate) fn api(&self) -> &str {
        // A variable that is empty counts as one that is not there.
        if self.api.is_empty() { client::USUAL } else { &self.api }
    }

    /// A client of the server, with all that is said about how to reach it.
    pub(crate) fn client(&self) -> Result<client::Client> {
        Ok(client::Client::new(self.api())?.with_token(self.token()).with_authorities(self.ca()))
    }

    /// The authorities to believe, if they were said.
    fn ca(&self) -> Option<std::path::PathBuf> {
        self.ca.clone().filter(|path| !path.is_empty()).map(Into::into)
    }

    /// How to show what a server says.
    pub(crate) fn output(&self) -> Output {
        self.output
    }

    /// The cluster that is meant, if it was said.
    fn cluster(&self) -> Option<String> {
        self.cluster.clone().filter(|cluster| !cluster.is_empty())
    }

    /// The token, if there is one.
    fn token(&self) -> Option<String> {
        self.token.clone().filter(|token| !token.is_empty())
    }
}

/// How to show what a server says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Tables and sentences.
    Table,
    /// The same; tables have more columns.
    Wide,
    /// The answer of the server.
    Json,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Machines: list them, make, describe, restart, move, stop, delete, evict or forget them.
    #[command(subcommand)]
    Vm(vm::Command),
    /// Hosts: list them, add, remove or forget them, update, restart or empty them, say that they fail.
    #[command(subcommand)]
    Host(host::Command),
    /// Tenants: those who are told of events together.
    #[command(subcommand)]
    Tenant(tenant::Command),
    /// Scale sets: make them, scale, change, upgrade them, delete instances.
    #[command(subcommand)]
    Scaleset(scaleset::Command),
    /// Availability sets: list them, make them and their machines.
    #[command(subcommand)]
    Availabilityset(sets::Command),
    /// Cloud services: make them and their role instances.
    #[command(subcommand)]
    Cloudservice(sets::CloudCommand),
    /// Events: what is announced or under way. Approve, cancel or force them.
    #[command(subcommand)]
    Event(event::Command),
    /// The clock: look at it, stop it, set it forward. Only a virtual clock can be touched.
    #[command(subcommand)]
    Clock(clock::Command),
    /// The fleet as a file: what hosts and tenants there are, or are to be.
    #[command(subcommand)]
    Fleet(fleet::Command),
    /// Rollouts: work on many hosts, group by group.
    #[command(subcommand)]
    Rollout(rollout::Command),
    /// Hold every start, or let starts go.
    #[command(subcommand)]
    Brake(rollout::Brake),
    /// How the cluster behaves.
    #[command(subcommand)]
    Settings(settings::Command),
    /// Clusters: hosts and tenants that have nothing to do with others.
    #[command(subcommand)]
    Cluster(cluster::Command),
    /// Tokens: who may do what.
    #[command(subcommand)]
    Token(token::Command),
    /// Webhooks: who is told of events without asking.
    #[command(subcommand)]
    Webhook(webhook::Command),
    /// Print every change as it happens, one a line. Ctrl-C ends it.
    #[command(after_help = watch::EXAMPLES)]
    Watch(watch::Arguments),
    /// The trail: who asked for what, and what has happened. List, export and verify it.
    #[command(subcommand)]
    Audit(audit::Command),
    /// Clients of Azure: have `az` and the SDKs ask this server.
    #[command(subcommand)]
    Az(az::Command),
    /// Copy everything that a running server keeps to a file; `forewarn store import` makes a data directory of it.
    Backup {
        /// The file, which must not be there yet.
        file: std::path::PathBuf,
    },
}

pub(crate) fn run(options: &Options, command: Command) -> Result<()> {
    let session = Session::new(options)?;
    match command {
        Command::Vm(command) => vm::run(&session, command),
        Command::Host(command) => host::run(&session, command),
        Command::Tenant(command) => tenant::run(&session, command),
        Command::Scaleset(command) => scaleset::run(&session, command),
        Command::Availabilityset(command) => sets::run(&session, command),
        Command::Cloudservice(command) => sets::cloud(&session, command),
        Command::Event(command) => event::run(&session, command),
        Command::Clock(command) => clock::run(&session, &command),
        Command::Fleet(command) => fleet::run(&session, &command),
        Command::Rollout(command) => rollout::run(&session, command),
        Command::Brake(command) => rollout::brake(&session, command),
        Command::Settings(command) => settings::run(&session, &command),
        Command::Cluster(command) => cluster::run(&session, &command),
        Command::Token(command) => token::run(&session, command),
        Command::Webhook(command) => webhook::run(&session, command),
        Command::Audit(command) => audit::run(&session, command),
        Command::Az(command) => az::run(&session, options, &command),
        Command::Watch(arguments) => watch::run(&session, &arguments),
        Command::Backup { file } => backup::run(&session, &file),
    }
}

/// A name as somebody typed it: whatever it is, it is not nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named(String);

/// Reads a name as plain text. An option of a command needs this type where an option of every command has its name.
fn not_empty(text: &str) -> Result<String, &'static str> {
    text.parse().map(|Named(name)| name)
}

impl std::str::FromStr for Named {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if text.is_empty() { Err("a name has at least one character") } else { Ok(Self(text.to_owned())) }
    }
}
