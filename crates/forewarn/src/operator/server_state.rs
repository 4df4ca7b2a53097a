//! `forewarn reset` and `forewarn state`: the whole state of a server for development.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use forewarn_control::ClockView;
use forewarn_http_client::{Bytes, Method};
use serde_json::Value;

use super::sentences;
use super::session::Session;
use forewarn_server::operator::SAVED_STATE_BYTES_MAX;

use crate::client::api_error;
use crate::new_file::create_private;

pub(super) const RESET_EXAMPLES: &str = "\
Example:
  forewarn reset                        between two tests: fleet, clock and audit log as after the start";

const SAVE_EXAMPLES: &str = "\
Example:
  forewarn state save announced.json    an announced event keeps its id and its time";

/// The largest file that a server accepts.
const FILE_BYTES_MAX: u64 = SAVED_STATE_BYTES_MAX as u64;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Save the state to a file: clusters, events, clock, audit log, tokens and webhooks
    #[command(before_help = SAVE_EXAMPLES)]
    Save {
        /// New file; `-` writes to standard output
        file: PathBuf,
    },
    /// Replace the state by a saved one; work in progress continues
    #[command(before_help = "Example:\n  forewarn state load announced.json")]
    Load {
        /// File of `forewarn state save`; `-` reads standard input
        file: PathBuf,
    },
}

pub(super) fn reset(session: &Session) -> Result<()> {
    let clock = session.change::<()>(Method::POST, "/v1/reset", None)?;
    session.present(clock, |clock| Ok(sentence("reset", &clock)))
}

pub(super) fn run(session: &Session, command: &Command) -> Result<()> {
    match command {
        Command::Save { file } if file.as_os_str() == "-" => {
            session.download("/v1/state", |piece| Ok(io::stdout().lock().write_all(piece)?))
        }
        Command::Save { file } => save(session, file),
        Command::Load { file } => load(session, file),
    }
}

/// Writes a new file. An incomplete one is removed.
fn save(session: &Session, file: &Path) -> Result<()> {
    let failed = || format!("cannot write the state: {}", file.display());
    let mut out = create_private(file, "the state")?;
    let saved = session.download("/v1/state", |piece| out.write_all(piece).with_context(failed));
    let saved = saved.and_then(|()| out.sync_all().with_context(failed));
    if saved.is_err() {
        drop(fs::remove_file(file));
    }
    saved
}

fn load(session: &Session, file: &Path) -> Result<()> {
    let failed = || format!("cannot read the saved state: {}", file.display());
    let mut bytes = Vec::new();
    let limit = FILE_BYTES_MAX + 1;
    if file.as_os_str() == "-" {
        io::stdin().lock().take(limit).read_to_end(&mut bytes).with_context(failed)?;
    } else {
        File::open(file).with_context(failed)?.take(limit).read_to_end(&mut bytes).with_context(failed)?;
    }
    if bytes.len() as u64 > FILE_BYTES_MAX {
        bail!(
            "{}: it has more than {FILE_BYTES_MAX} bytes\n  hint: `forewarn state save` writes smaller files",
            failed()
        );
    }
    let headers = [("content-type", "application/json")];
    let (status, body) = session.client().send(Method::PUT, "/v1/state", &headers, Bytes::from(bytes))?;
    if status != 200 {
        return Err(api_error(status, &body).context(format!("cannot load {}", file.display())));
    }
    let clock: Value = serde_json::from_slice(&body).context("invalid response of the server")?;
    session.present(clock, |clock| Ok(sentence("loaded", &clock)))
}

fn sentence(done: &str, clock: &ClockView) -> String {
    let speed = match clock.speed {
        0 => "is frozen".to_owned(),
        speed => format!("runs at {speed}x"),
    };
    format!("{done}: the clock shows {} and {speed}\n", sentences::date(clock.now))
}
