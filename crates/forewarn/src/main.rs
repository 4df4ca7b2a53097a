//! The command `forewarn`. Thin: it reads the command line, calls a library, and prints.
//!
//! Data goes to standard output, everything else to standard error. Exit code 0: done; 1: failed; 2: not understood.

mod client;
mod doctor;
#[cfg(test)]
mod documented;
mod operator;
mod server;
mod state;
mod store;
mod story;
mod trust;

use std::process::ExitCode;

use anyhow::Context;
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
    /// Write the manual: a page for each command to a directory, or the first page to standard output.
    #[command(after_help = "Example:\n  forewarn man /usr/local/share/man/man1")]
    Man {
        /// The directory, which is made if it is not there.
        directory: Option<std::path::PathBuf>,
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
        Command::Man { directory } => manual(directory.as_deref()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            forewarn_cli_support::log::fail("forewarn", &format!("{problem:#}"));
            if problem.is::<client::NotAnAddress>() { ExitCode::from(USAGE) } else { ExitCode::FAILURE }
        }
    }
}

fn completions(shell: clap_complete::Shell) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "forewarn", &mut script);
    operator::print(&String::from_utf8_lossy(&script))
}

fn manual(directory: Option<&std::path::Path>) -> anyhow::Result<()> {
    let Some(directory) = directory else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Arguments::command()).render(&mut page)?;
        return operator::print(&String::from_utf8_lossy(&page));
    };
    let written = std::fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(Arguments::command(), directory));
    written.with_context(|| format!("cannot write the manual: {}", directory.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_its_page_in_the_manual() {
        let pages = tempfile::tempdir().unwrap();
        manual(Some(pages.path())).unwrap();
        for page in ["forewarn.1", "forewarn-vm.1", "forewarn-vm-restart.1", "forewarn-serve.1"] {
            let text = std::fs::read_to_string(pages.path().join(page)).unwrap();
            assert!(text.contains(".TH ") && text.contains("SYNOPSIS"), "{page}");
        }
    }

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
            "fleet apply - --prune --forget",
            "vm move web_0",
            "vm forget",
            "host forget",
            "scaleset upgrade web",
            "scaleset upgrade web 0 --all",
            "scaleset scale web 1001",
            "vm create solo",
            "vm describe solo",
            "vm describe solo --tag role",
            "brake",
            "rollout start",
            "rollout start --all h1",
            "rollout start h1 --tenant-share 0%",
            "vm ls --output xml",
            "webhook add ops",
            "webhook add ops https://h --type Thaw",
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
            "tenant policy web --restart automatic",
            "scaleset create web --instances 3 --spot delete --upgrade automatic --hosts h1 h2",
            "scaleset update web --terminate-notification on --terminate-delay 10m --os-image off",
            "scaleset upgrade web 0 web_1",
            "scaleset upgrade web --all",
            "scaleset delete-instances web 3 --wait",
            "availabilityset add db db-0 --host h1 --update-domain 1 --fault-domain 2 --tag role=db",
            "event approve 2851 9F00AA11",
            "event approve --tenant web",
            "event start 28512AF7-C957-4500-9BC4-842D6FB531E4",
            "clock next --within 1h",
            "clock scale 60x",
            "fleet apply - --prune --dry-run --yes",
            "fleet apply - --forget --moves",
            "vm delete web_0 --yes --wait",
            "vm forget web_0 db/db-0",
            "vm move web_0 --host h2 --force",
            "host forget h1 h2",
            "host fail h1 --yes",
            "rollout cancel 3",
            "rollout start h1 h2 --work reboot --at-once 5 --tenant-share 25% --one-fault-domain --wait",
            "rollout start --all --pause-between 10m --confirm first --stop-after 2 --ignore-health=false --dry-run",
            "rollout preview --zone 1 --window 22:00-06:00 --window any",
            "rollout ls --all",
            "rollout status 3",
            "rollout pause 3 --take-back",
            "rollout resume 3",
            "rollout change 3 --add h1 --remove h2 --at-once 0",
            "brake on",
            "watch --tenant web",
            "event explain 2851",
            "vm explain web_0 --all",
            "audit ls --machine web/web_0 --since 2026-01-01T00:00:00Z --kind command",
            "audit verify",
            "webhook add ops https://h/x --schema eventgrid --tenant web --type Freeze --type preempt --authorization-file -",
            "webhook test ops",
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
