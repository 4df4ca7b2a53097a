//! `forewarn story`: plays stories, against the rules or on a running server.

mod live;

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use forewarn_story::Transcript;

use crate::operator::visible;
use live::Live;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Play stories, and print what every machine could have seen.
    ///
    /// A story fails when something in it is refused, or an expectation does not hold; the line is shown.
    Run {
        /// The stories; `-` is standard input.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Print nothing but failures.
        #[arg(long, short)]
        quiet: bool,
        /// Play on the server at --api, which needs a virtual clock that stands still and no fleet of its own.
        #[arg(long)]
        live: bool,
    },
}

/// Bytes of a story that are read: more than the longest story that is understood.
const STORY_BYTES_MAX: u64 = 2 * 1024 * 1024;

/// Where stories are played.
enum Where<'a> {
    /// Against the pure rules.
    Rules,
    /// On the server there.
    Server(&'a str),
}

pub(crate) fn run(command: &Command, api: &str) -> Result<()> {
    let Command::Run { files, quiet, live } = command;
    let place = if *live { Where::Server(api) } else { Where::Rules };
    let mut failed = 0;
    for file in files {
        match play(file, &place) {
            Ok(_) if *quiet => {}
            Ok(transcript) => print(file, files.len(), &transcript)?,
            Err(problem) => {
                failed += 1;
                eprintln!("forewarn: {}", visible(&format!("{problem:#}")));
            }
        }
    }
    if failed > 0 {
        bail!("{failed} of {} stories failed", files.len());
    }
    Ok(())
}

fn play(file: &Path, place: &Where<'_>) -> Result<String> {
    let text = read(file).with_context(|| format!("cannot read the story: {}", file.display()))?;
    let transcript = tell(&text, place).with_context(|| file.display().to_string())?;
    Ok(transcript.to_string())
}

fn tell(text: &str, place: &Where<'_>) -> Result<Transcript> {
    let story = forewarn_story::parse(text)?;
    Ok(match place {
        Where::Rules => forewarn_story::run(&story)?,
        Where::Server(api) => {
            story.check_live()?;
            forewarn_story::play(&story, &mut Live::new(api)?)?
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

/// A reader who has seen enough and closes the pipe is no failure.
fn print(file: &Path, files: usize, transcript: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    let heading = if files > 1 { format!("== {}\n", file.display()) } else { String::new() };
    match write!(out, "{}", visible(&format!("{heading}{transcript}"))) {
        Err(broken) if broken.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}
