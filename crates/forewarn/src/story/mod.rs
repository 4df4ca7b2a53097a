//! `forewarn story`: runs, checks and formats stories; shows those of the library, and records new ones.

mod check;
mod faults;
mod format;
mod library;
pub(crate) mod live;
mod record;
mod run;
pub(crate) mod source;

use std::path::PathBuf;

use anyhow::Result;
use clap::Subcommand;

use crate::operator::GlobalOptions;
use source::{read, read_file};

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List the stories of the library: what happens to machines in practice
    #[command(before_help = "Example:\n  forewarn story ls --output json")]
    Ls,
    /// Print the page of a story of the library: what happens, how a good program reacts, and the story
    #[command(before_help = "\
Examples:
  forewarn story show spot-eviction
  forewarn story show --story spot-eviction > mine.story")]
    Show {
        /// Name of the story, as `story ls` prints it
        name: String,
        /// Print only the story
        #[arg(long)]
        story: bool,
    },
    /// Write a story from what happened on the server at --api
    ///
    /// Reads the audit log, writes each operation, approval and first poll at its time, and expectations about the
    /// end. What the language cannot express becomes a comment and a warning.
    #[command(before_help = "\
Examples:
  forewarn story record incident.story
  forewarn story record --since 57 | forewarn story run -")]
    Record {
        /// Story file, must not exist yet [default: standard output]
        file: Option<PathBuf>,
        /// Number of the first entry of the audit log to record; of entries before it, only the fleet is used
        #[arg(long, value_name = "ENTRY", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
        since: u64,
    },
    /// Run stories, and print the documents that machines would see
    ///
    /// A story fails if a command is rejected or an expectation does not hold; the transcript ends there, and the error
    /// names the line. With `--output json` or `--output junit`, standard output is a report on all stories.
    #[command(before_help = "\
Examples:
  forewarn story run spot-eviction
  forewarn story run stories/reboot.story
  forewarn story run --live stories/*.story
  forewarn story run --output junit stories/*.story > stories.xml")]
    Run(run::RunArgs),
    /// Check stories without running them
    ///
    /// Prints the number of statements after repetitions, and what the story needs: the rules, or a program that `forewarn
    /// test` starts.
    #[command(before_help = "Example:\n  forewarn story check stories/*.story")]
    Check(check::StoryCheckArgs),
    /// Rewrite stories in the usual layout
    #[command(before_help = "\
Examples:
  forewarn story fmt stories/*.story
  forewarn story fmt --check stories/*.story")]
    Fmt(format::FmtArgs),
}

pub(crate) fn run(command: &Command, options: &GlobalOptions) -> Result<()> {
    match command {
        Command::Ls => library::list(options.output()),
        Command::Show { name, story } => library::show(name, *story, options.output()),
        Command::Record { file, since } => record::command(file.as_deref(), *since, options),
        Command::Run(arguments) => run::command(arguments, options),
        Command::Check(arguments) => check::command(arguments, options),
        Command::Fmt(arguments) => format::command(arguments, options.output()),
    }
}

/// Story files of a command.
#[derive(clap::Args)]
struct StoryFiles {
    /// Story files, pages with a story, or names of the library; `-` reads standard input
    #[arg(required = true)]
    files: Vec<PathBuf>,
}
