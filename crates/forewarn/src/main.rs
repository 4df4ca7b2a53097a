//! The command `forewarn`. Thin: it reads the command line, calls a library, and prints.
//!
//! Data goes to standard output, everything else to standard error. Exit code 0: done; 1: failed; 2: not understood.

mod client;
mod story;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Tells virtual machines what is about to happen to them, waits until they are ready, and then does it.
#[derive(Parser)]
#[command(name = "forewarn", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Play stories: what happens to a fleet, and what its machines see of it.
    Story {
        #[command(subcommand)]
        command: story::Command,
    },
}

fn main() -> ExitCode {
    let Arguments { command: Command::Story { command } } = Arguments::parse();
    match story::run(&command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("forewarn: {problem:#}");
            ExitCode::FAILURE
        }
    }
}
