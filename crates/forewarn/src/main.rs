//! The command `forewarn`. Thin: it reads the command line, calls a library, and prints.
//!
//! Data goes to standard output, everything else to standard error. Exit code 0: done; 1: failed; 2: not understood.

mod client;
mod doctor;
mod operator;
mod server;
mod store;
mod story;
mod trust;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// Tells virtual machines what is about to happen to them, waits until they are ready, and then does it.
#[derive(Parser)]
#[command(name = "forewarn", version, arg_required_else_help = true)]
struct Arguments {
    #[command(flatten)]
    options: operator::Options,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Dev(server::dev::Arguments),
    Serve(server::serve::Arguments),
    /// Play stories: what happens to a fleet, and what its machines see of it.
    Story {
        #[command(subcommand)]
        command: story::Command,
    },
    /// Look after a data directory that no server uses.
    Store {
        #[command(subcommand)]
        command: store::Command,
    },
    Doctor(doctor::Arguments),
    #[command(flatten)]
    Operator(operator::Command),
    /// Print what makes a shell complete these commands.
    #[command(
        after_help = "Example:\n  forewarn completions bash > ~/.local/share/bash-completion/completions/forewarn"
    )]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// What was typed is not understood.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let Arguments { options, command } = Arguments::parse();
    let done = match command {
        Command::Dev(arguments) => server::dev::command(&arguments),
        Command::Serve(arguments) => server::serve::command(&arguments),
        Command::Story { command } => story::run(&command, options.api()),
        Command::Store { command } => store::run(&command),
        Command::Doctor(arguments) => doctor::command(&arguments, &options),
        Command::Operator(command) => operator::run(&options, command),
        Command::Completions { shell } => completions(shell),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("forewarn: {}", operator::visible(&format!("{problem:#}")));
            if problem.is::<client::NotAnAddress>() { ExitCode::from(USAGE) } else { ExitCode::FAILURE }
        }
    }
}

fn completions(shell: clap_complete::Shell) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "forewarn", &mut script);
    operator::print(&String::from_utf8_lossy(&script))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn the_server_may_be_named_anywhere_on_the_line() {
        for line in ["--api http://x:1 vm ls", "vm --api http://x:1 ls", "vm ls --api http://x:1"] {
            let words = ["forewarn"].into_iter().chain(line.split(' '));
            let arguments = Arguments::try_parse_from(words).unwrap();
            assert_eq!(arguments.options.api(), "http://x:1", "{line}");
        }
    }

    #[test]
    fn what_is_not_understood_is_a_matter_of_usage() {
        let lines = [
            "vm",
            "vm restart",
            "vm show \u{20}",
            "event approve",
            "event approve 123",
            "event approve 1234 --tenant web",
            "clock advance soon",
            "clock scale 0",
            "host degrade h1 --fails-in 3",
            "fleet apply",
            "brake",
            "vm ls --output xml",
        ];
        for line in lines {
            let words = ["forewarn"].into_iter().chain(line.split(' '));
            assert_eq!(
                Arguments::try_parse_from(words).err().map(|error| error.exit_code()),
                Some(2),
                "{line}"
            );
        }
    }

    #[test]
    fn every_command_is_understood() {
        let lines = [
            "vm ls --tenant web --output json",
            "vm restart web_0 db/db-0 --wait",
            "host update --network h1 h2",
            "host degrade h1 --fails-in 3d",
            "tenant show web",
            "event approve 2851 9F00AA11",
            "event approve --tenant web",
            "event start 28512AF7-C957-4500-9BC4-842D6FB531E4",
            "clock next --within 1h",
            "clock scale 60x",
            "fleet apply - --prune --dry-run",
            "rollout cancel 3",
            "brake on",
            "watch --tenant web",
            "event explain 2851",
            "vm explain web_0 --all",
            "audit ls --machine web/web_0 --since 2026-01-01T00:00:00Z --kind command",
            "audit verify",
            "audit export -",
            "completions zsh",
        ];
        for line in lines {
            let words = ["forewarn"].into_iter().chain(line.split(' '));
            assert!(Arguments::try_parse_from(words).is_ok(), "{line}");
        }
    }

    #[test]
    fn every_shell_gets_its_completions() {
        for shell in <clap_complete::Shell as clap::ValueEnum>::value_variants() {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Arguments::command(), "forewarn", &mut script);
            assert!(String::from_utf8(script).unwrap().contains("deallocate"), "{shell}");
        }
    }
}
