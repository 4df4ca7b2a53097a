//! The command line: what can be typed, and what it leads to.
//!
//! Data goes to standard output, everything else to standard error. Exit code 0: done; 1: failed; 2: not understood.

mod approve;
mod check;
#[cfg(test)]
mod documented;
mod events;
mod find;
mod rehearse;
mod status;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use clap::{Args, CommandFactory, Parser, Subcommand};
use forewarn_cli_support::log;
use forewarn_client::{Client, Endpoint};

use crate::config::{Config, Problem};
use crate::run;

/// Runs inside a virtual machine: watches Scheduled Events, prepares, waits for its peers, approves, and undoes.
#[derive(Debug, Parser)]
#[command(
    name = "forewarn-agent",
    version,
    arg_required_else_help = true,
    after_help = "Examples:\n  forewarn-agent check-config\n  forewarn-agent rehearse --type Reboot\n  forewarn-agent status"
)]
struct Arguments {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    command: Command,
}

/// What every command can be told.
#[derive(Debug, Args)]
struct Options {
    /// The settings; without it, those in /etc/forewarn-agent/agent.toml, if there are any.
    #[arg(long, global = true, value_name = "FILE", env = "FOREWARN_AGENT_CONFIG")]
    config: Option<PathBuf>,
    /// Where Scheduled Events are answered, instead of what the settings say or a search finds.
    #[arg(long, global = true, value_name = "URL")]
    endpoint: Option<Endpoint>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Watch, until it is told to stop.
    #[command(
        after_help = "Examples:\n  forewarn-agent run\n  forewarn-agent run --dry-run --endpoint http://127.0.0.1:4080/vm/web_0"
    )]
    Run {
        /// Only say what would be done: no hook runs, nothing is approved, nothing is kept.
        #[arg(long)]
        dry_run: bool,
    },
    Status(status::Arguments),
    Events(events::Arguments),
    Approve(approve::Arguments),
    /// Say all that is wrong with the settings, and which hooks there are.
    #[command(after_help = "Example:\n  forewarn-agent check-config --config ./agent.toml")]
    CheckConfig,
    Rehearse(rehearse::Arguments),
    /// Say where the endpoint is and how it was found, or where it is not.
    #[command(after_help = "Example:\n  forewarn-agent find")]
    Find,
    /// Print what makes a shell complete these commands.
    #[command(
        after_help = "Example:\n  forewarn-agent completions bash > ~/.local/share/bash-completion/completions/forewarn-agent"
    )]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// Does what the command line says.
#[must_use]
pub fn main() -> ExitCode {
    let Arguments { options, command } = Arguments::parse();
    let done = match command {
        Command::Run { dry_run } => {
            // Whatever is wrong with the settings is already said in the format that they ask for.
            let volume = log::start(Config::log_format(options.config.as_deref()), log::Detail::default());
            options.load().and_then(|config| run::command(config, dry_run, volume))
        }
        Command::Status(arguments) => status::command(&options, &arguments),
        Command::Events(arguments) => events::command(&options, &arguments),
        Command::Approve(arguments) => approve::command(&options, &arguments),
        Command::CheckConfig => check::command(&options),
        Command::Rehearse(arguments) => rehearse::command(&options, &arguments),
        Command::Find => find::command(&options),
        Command::Completions { shell } => completions(shell),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            log::fail("forewarn-agent", &format!("{problem:#}"));
            ExitCode::FAILURE
        }
    }
}

impl Options {
    /// The settings, with what the command line says instead.
    fn load(&self) -> Result<Config> {
        let mut config = Config::load(self.config.as_deref()).map_err(|problems| wrong(&problems))?;
        if self.endpoint.is_some() {
            config.endpoint.clone_from(&self.endpoint);
            config.is_endpoint_given = true;
        }
        Ok(config)
    }

    /// A client of the endpoint, wherever that is.
    async fn client(&self) -> Result<(Client, Config)> {
        let config = self.load()?;
        let found = run::search(&config).run().await?;
        Ok((Client::new(found.endpoint), config))
    }
}

/// All that is wrong with settings, as one problem.
fn wrong(problems: &[Problem]) -> anyhow::Error {
    let list: Vec<_> = problems.iter().map(ToString::to_string).collect();
    anyhow!("the settings are wrong\n{}", list.join("\n"))
}

/// Does something that waits.
fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

/// Prints data. Whoever does not want to read all of it has what they wanted.
fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(broken) if broken.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

fn completions(shell: clap_complete::Shell) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "forewarn-agent", &mut script);
    print(&String::from_utf8_lossy(&script))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(["forewarn-agent"].into_iter().chain(line.split(' ')))
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn every_command_is_understood() {
        let lines = [
            "run",
            "run --dry-run --endpoint http://127.0.0.1:4080/vm/web_0",
            "--config a.toml status --json",
            "status --at 127.0.0.1:9912",
            "events --json",
            "approve 28512AF7-C957-4500-9BC4-842D6FB531E4 9F00",
            "approve --all",
            "approve --interactive",
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
            "run --endpoint https://h",
            "rehearse --type Thaw",
            "rehearse --left soon",
            "status --at here",
            "completions",
        ];
        for line in lines {
            assert_eq!(parse(line).err().map(|error| error.exit_code()), Some(2), "{line}");
        }
    }

    #[test]
    fn every_shell_gets_its_completions() {
        for shell in <clap_complete::Shell as clap::ValueEnum>::value_variants() {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Arguments::command(), "forewarn-agent", &mut script);
            assert!(String::from_utf8(script).unwrap().contains("rehearse"), "{shell}");
        }
    }
}
