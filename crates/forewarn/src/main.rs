//! The command `forewarn`. Thin: it reads the command line, calls a library, and prints.
//!
//! Data goes to standard output, everything else to standard error. Exit code 0: done; 1: failed; 2: not understood.

mod client;
mod server;
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
    Dev(server::dev::Arguments),
    Serve(server::serve::Arguments),
    /// Play stories: what happens to a fleet, and what its machines see of it.
    Story {
        #[command(subcommand)]
        command: story::Command,
    },
}

fn main() -> ExitCode {
    let Arguments { command } = Arguments::parse();
    let done = match &command {
        Command::Dev(arguments) => server::dev::command(arguments),
        Command::Serve(arguments) => server::serve::command(arguments),
        Command::Story { command } => story::run(command),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("forewarn: {problem:#}");
            ExitCode::FAILURE
        }
    }
}
