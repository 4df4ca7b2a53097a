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
    /// The operator API of the server to speak to; FOREWARN_API, if not said, or http://127.0.0.1:1339.
    #[arg(long, global = true, value_name = "URL")]
    api: Option<String>,
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
    let Arguments { api, command } = Arguments::parse();
    let api = api.or_else(|| std::env::var("FOREWARN_API").ok());
    let done = match &command {
        Command::Dev(arguments) => server::dev::command(arguments),
        Command::Serve(arguments) => server::serve::command(arguments),
        Command::Story { command } => story::run(command, api.as_deref().unwrap_or(client::USUAL)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("forewarn: {problem:#}");
            ExitCode::FAILURE
        }
    }
}
