//! `forewarn story`: runs stories, in the rule engine or on a running server.

mod live;

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use forewarn_story::Transcript;

use crate::operator::visible;
use live::LiveStage;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run stories, and print the documents that machines would see
    ///
    /// A story fails if a command is rejected or an expectation does not hold; the error names the line.
    #[command(before_help = "\
Examples:
  forewarn story run stories/restart.story
  forewarn story run --live stories/*.story")]
    Run {
        /// Story files; `-` reads standard input
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Print only failures
        #[arg(long, short)]
        quiet: bool,
        /// Run on the server at --api, which needs a frozen virtual clock and an empty fleet
        #[arg(long)]
        live: bool,
    },
}

/// Bytes of a story that are read: more than the parser accepts.
const STORY_BYTES_MAX: u64 = 2 * 1024 * 1024;

/// The target of stories.
enum StoryTarget<'a> {
    /// The rule engine, without a server.
    Rules,
    /// The server at this address.
    Server(&'a str),
}

pub(crate) fn run(command: &Command, api: &str) -> Result<()> {
    let Command::Run { files, quiet, live } = command;
    let target = if *live { StoryTarget::Server(api) } else { StoryTarget::Rules };
    let mut failed = 0;
    for file in files {
        match run_file(file, &target) {
            Ok(_) if *quiet => {}
            Ok(transcript) => print(file, files.len(), &transcript)?,
            Err(error) => {
                failed += 1;
                eprintln!("forewarn: {}", visible(&format!("{error:#}")));
            }
        }
    }
    if failed > 0 {
        bail!("{failed} of {} stories failed", files.len());
    }
    Ok(())
}

fn run_file(file: &Path, target: &StoryTarget<'_>) -> Result<String> {
    let text = read(file).with_context(|| format!("cannot read the story: {}", file.display()))?;
    let transcript = run_text(&text, target).with_context(|| file.display().to_string())?;
    Ok(transcript.to_string())
}

fn run_text(text: &str, target: &StoryTarget<'_>) -> Result<Transcript> {
    let story = forewarn_story::parse(text)?;
    Ok(match target {
        StoryTarget::Rules => forewarn_story::run(&story)?,
        StoryTarget::Server(api) => {
            story.check_live()?;
            forewarn_story::run_on(&story, &mut LiveStage::new(api)?)?
        }
    })
}

fn read(file: &Path) -> Result<String> {
    let mut text = String::new();
    let source: Box<dyn Read> = match file.to_str() {
        Some("-") => Box::new(io::stdin()),
        Some(_) | None => Box::new(fs::File::open(file)?),
    };
    source.take(STORY_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// Prints a transcript. A reader that closes the pipe early is not an error.
fn print(file: &Path, files: usize, transcript: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    let heading = if files > 1 { format!("== {}\n", file.display()) } else { String::new() };
    match write!(out, "{}", visible(&format!("{heading}{transcript}"))) {
        Err(broken) if broken.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}
