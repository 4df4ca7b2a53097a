//! The command line of `forewarn-agent`.
//!
//! Data goes to standard output, messages to standard error. Exit codes: 0 success, 1 failure, 2 usage error.

mod approve;
mod check;
#[cfg(test)]
mod documented;
mod event_ids;
mod events;
mod find;
mod listener;
mod rehearse;
mod retry;
mod status;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use clap::{Args, CommandFactory, Parser, Subcommand};
use forewarn_cli_support::log;
use forewarn_cli_support::output::{DataFormat, FormatWord, OutputFormat};
use forewarn_client::{Client, Endpoint};
use serde::Serialize;
use serde_json::Value;

use crate::config::{Config, ConfigError, GivenSettings};
use crate::run;

/// Agent for Scheduled Events inside a virtual machine: prepares for events, approves them, and undoes the preparation
#[derive(Debug, Parser)]
#[command(
    name = "forewarn-agent",
    version,
    arg_required_else_help = true,
    before_help = "Examples:\n  forewarn-agent check-config\n  forewarn-agent rehearse --type Reboot\n  forewarn-agent status"
)]
struct AgentArgs {
    #[command(flatten)]
    options: GlobalOptions,
    #[command(subcommand)]
    command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
struct GlobalOptions {
    /// Settings file [default: /etc/forewarn-agent/agent.toml, if it exists]
    #[arg(long, global = true, value_name = "FILE", env = "FOREWARN_AGENT_CONFIG")]
    config: Option<PathBuf>,
    /// Endpoint of Scheduled Events; overrides the settings and the search
    #[arg(long, global = true, value_name = "URL")]
    endpoint: Option<Endpoint>,
    /// Output format
    #[arg(long, short, global = true, value_name = "FORMAT", value_enum, default_value_t = FormatWord::Table)]
    output: FormatWord,
    /// Same as --output json
    #[arg(long, global = true, conflicts_with = "output")]
    json: bool,
}

/// The option of the commands that use the state file.
#[derive(Debug, Args)]
struct StateOption {
    /// State file, which the agent creates; overrides the settings [default: /var/lib/forewarn-agent/state.json]
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the agent until it is stopped
    #[command(
        before_help = "Examples:\n  forewarn-agent run\n  forewarn-agent run --dry-run --endpoint http://127.0.0.1:1338/vm/web_0\n  forewarn-agent run --endpoint http://127.0.0.1:1338/vm/web_0 --state ./state.json"
    )]
    Run {
        /// Only log what would be done: run no hooks, approve nothing, store nothing
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        state: StateOption,
    },
    Status(status::StatusArgs),
    /// List the events of the endpoint
    #[command(
        before_help = "Examples:\n  forewarn-agent events\n  forewarn-agent events --output json | jq '.[].id'"
    )]
    Events,
    Approve(approve::ApproveArgs),
    Retry(retry::RetryArgs),
    /// Check the settings and list the hooks
    #[command(before_help = "Example:\n  forewarn-agent check-config --config ./agent.toml")]
    CheckConfig,
    Rehearse(rehearse::RehearseArgs),
    /// Print the address of the endpoint and how it was found
    #[command(before_help = "Example:\n  forewarn-agent find")]
    Find,
    /// Print a completion script for a shell
    #[command(
        before_help = "Example:\n  forewarn-agent completions bash > ~/.local/share/bash-completion/completions/forewarn-agent"
    )]
    Completions {
        /// Shell to generate the script for
        shell: clap_complete::Shell,
    },
}

/// Runs the command of the command line.
#[must_use]
pub fn main() -> ExitCode {
    let AgentArgs { options, command } = forewarn_cli_support::help::parse();
    let done = match command {
        Command::Run { dry_run, state } => {
            // Errors in the settings are reported in the log format that they ask for.
            let volume = log::start(Config::log_format(options.config.as_deref()), log::Detail::default());
            options.load_with(&state).and_then(|config| run::command(config, dry_run, volume))
        }
        Command::Status(arguments) => status::command(&options, &arguments),
        Command::Events => events::command(&options),
        Command::Approve(arguments) => approve::command(&options, &arguments),
        Command::Retry(arguments) => retry::command(&options, &arguments),
        Command::CheckConfig => check::command(&options),
        Command::Rehearse(arguments) => rehearse::command(&options, &arguments),
        Command::Find => find::command(&options),
        Command::Completions { shell } => completions(shell),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log::fail("forewarn-agent", &format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

impl GlobalOptions {
    /// Loads the settings and applies the options of the command line.
    fn load(&self) -> Result<Config> {
        self.load_with(&StateOption { state: None })
    }

    /// Loads the settings of a command that uses the state file.
    fn load_with(&self, StateOption { state }: &StateOption) -> Result<Config> {
        let config = Config::load(self.config.as_deref()).map_err(|errors| invalid_settings(&errors))?;
        Ok(config.with(GivenSettings { endpoint: self.endpoint.clone(), state: state.clone() }))
    }

    fn output(&self) -> OutputFormat {
        if self.json { FormatWord::Json.format() } else { self.output.format() }
    }

    /// Creates a client for the configured or discovered endpoint.
    async fn client(&self) -> Result<(Client, Config)> {
        let config = self.load()?;
        let found = run::search(&config).run().await?;
        Ok((Client::new(found.endpoint), config))
    }
}

/// Combines all errors in the settings into one.
fn invalid_settings(errors: &[ConfigError]) -> anyhow::Error {
    let list: Vec<_> = errors.iter().map(ToString::to_string).collect();
    anyhow!("invalid settings\n{}", list.join("\n"))
}

/// Runs a future to completion.
fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

/// Prints a value as data, with the names that `names` finds in it.
fn print_data(
    format: DataFormat,
    value: &impl Serialize,
    names: impl FnOnce(&Value) -> Vec<String>,
) -> Result<()> {
    print(&format.document(&serde_json::to_value(value)?, names))
}

/// Prints data. A closed pipe is not an error.
fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(broken) if broken.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

fn completions(shell: clap_complete::Shell) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut AgentArgs::command(), "forewarn-agent", &mut script);
    print(&String::from_utf8_lossy(&script))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<AgentArgs, clap::Error> {
        AgentArgs::try_parse_from(["forewarn-agent"].into_iter().chain(line.split(' ')))
    }

    #[test]
    fn the_command_line_is_well_formed() {
        AgentArgs::command().debug_assert();
    }

    #[test]
    fn every_error_about_a_value_says_what_is_expected() {
        let command = forewarn_cli_support::help::with_layout(AgentArgs::command());
        let read = |command: &mut clap::Command, words: &[std::ffi::OsString]| {
            forewarn_cli_support::help::matches(command, words).err()
        };
        let (unhelpful, errors) = forewarn_testkit::bad_values::check(&command, read);
        assert!(unhelpful.is_empty(), "{}", unhelpful.join("\n"));
        assert!(errors > 50, "too few options were tried: {errors} errors");
    }

    #[test]
    fn every_command_is_understood() {
        let lines = [
            "run",
            "run --dry-run --endpoint http://127.0.0.1:1338/vm/web_0",
            "run --state ./state.json",
            "rehearse --state ./state.json",
            "status --at 9912",
            "--config a.toml status --json",
            "status --at 127.0.0.1:9912",
            "events --json",
            "find -o yaml",
            "-o name check-config",
            "approve 28512AF7-C957-4500-9BC4-842D6FB531E4 9F00",
            "approve --all",
            "approve --interactive",
            "retry",
            "retry 28512AF7 --at 9912 -o name",
            "check-config",
            "rehearse --type Reboot --left 60s --json",
            "rehearse --type Freeze --cancelled",
            "find",
            "completions zsh",
        ];
        for line in lines {
            assert!(parse(line).is_ok(), "{line}");
        }
    }

    #[test]
    fn what_is_not_understood_is_a_matter_of_usage() {
        let lines = [
            "watch",
            "approve",
            "approve --all 2851",
            "approve --all --interactive",
            "retry 2851 9F00",
            "run --endpoint https://h",
            "rehearse --type Thaw",
            "rehearse --left soon",
            "status --at here",
            "completions",
            "events --output xml",
            "events --json -o yaml",
        ];
        for line in lines {
            assert_eq!(parse(line).err().map(|error| error.exit_code()), Some(2), "{line}");
        }
    }

    #[test]
    fn every_shell_gets_its_completions() {
        for shell in <clap_complete::Shell as clap::ValueEnum>::value_variants() {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut AgentArgs::command(), "forewarn-agent", &mut script);
            assert!(String::from_utf8(script).unwrap().contains("rehearse"), "{shell}");
        }
    }
}
