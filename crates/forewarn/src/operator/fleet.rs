//! `forewarn fleet`: the fleet as a file.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use forewarn_cli_support::output::names_in;
use forewarn_control::{Fleet, FleetPiece, FleetPosition, FleetReport, REQUEST_ENTRIES_MAX, TargetCluster};
use serde_json::Value;

use super::confirmation::ConfirmationArgs;
use super::fleet_pieces;
use super::fleet_report::{DifferenceCounts, lines};
use super::session::{Session, parse};
use super::visible::toml;
use crate::client::ApiError;

const EXAMPLES: &str = "\
Examples:
  forewarn fleet apply fleet.toml --dry-run
  forewarn fleet apply fleet.toml --moves --forget
  forewarn fleet show | sed 's/terminate = \"5m\"/terminate = \"10m\"/' | forewarn fleet apply -";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Print the fleet in the format of `fleet apply`
    Show,
    /// Change the fleet to match a file; resources that are not in the file stay, unless --forget or --prune is given
    #[command(before_help = EXAMPLES)]
    Apply(ApplyArgs),
}

#[derive(Args)]
pub(crate) struct ApplyArgs {
    /// Fleet file (TOML); `-` reads standard input
    file: PathBuf,
    /// Delete resources that are not in the file, with the usual notices
    #[arg(long)]
    prune: bool,
    /// Stop managing resources that are not in the file, without changing them
    #[arg(long, conflicts_with = "prune")]
    forget: bool,
    /// Record the hosts of the file for machines that have moved [default: list them]
    #[arg(long)]
    moves: bool,
    /// Only print the changes
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    confirmation: ConfirmationArgs,
}

pub(super) fn run(session: &Session, command: &Command) -> Result<()> {
    match command {
        Command::Show => {
            session.present_named(session.get("/v1/fleet")?, entry_names, |fleet: Fleet| printed(&fleet))
        }
        Command::Apply(arguments) => apply(session, arguments),
    }
}

fn apply(session: &Session, arguments: &ApplyArgs) -> Result<()> {
    let ApplyArgs { file, prune, forget, moves, dry_run, confirmation } = arguments;
    let (fleet, text) = read(file)?;
    let unmentioned = match (prune, forget) {
        (true, _) => "remove",
        (false, true) => "forget",
        (false, false) => "keep",
    };
    if *dry_run {
        eprintln!("dry run: nothing is changed");
    } else if *prune {
        confirmation.obtain(session, "deletion of every machine that is not in the file")?;
    }
    let path = format!("/v1/fleet?unmentioned={unmentioned}&moves={moves}&dry_run={dry_run}");
    let pieces = fleet.pieces();
    let mut counts = DifferenceCounts::default();
    if let [only] = pieces.as_slice() {
        let response = session.post(&path, &fleet).map_err(|error| with_line(error, only, file, &text))?;
        counts.add(&parse::<FleetReport>(response.clone())?.differences);
        session.present(response, |report: FleetReport| Ok(lines(&report.differences)))?;
    } else {
        arguments.check_large(&fleet)?;
        fleet.try_in_memory(TargetCluster::Unknown).map_err(|rejection| {
            let line = rejection.place().and_then(|place| place.line_in_file(&text));
            at_line(rejection.into(), file, line)
        })?;
        fleet_pieces::apply(session, &path, (&fleet, &pieces), &mut counts, |error, piece| {
            with_line(error, piece, file, &text)
        })?;
    }
    if counts.is_empty() && unmentioned == "keep" {
        eprintln!("hint: objects that are not in the file stay; --forget or --prune removes them");
    }
    counts.check()
}

impl ApplyArgs {
    /// Rejects options that need the whole file in one request.
    fn check_large(&self, fleet: &Fleet) -> Result<()> {
        let (option, hint) = match (self.prune, self.forget, self.dry_run) {
            (true, _, _) => {
                ("--prune", "apply the file without it, then delete machines by `forewarn vm delete`")
            }
            (_, true, _) => {
                ("--forget", "apply the file without it, then forget machines by `forewarn vm forget`")
            }
            (_, _, true) => ("--dry-run", "nothing of the file is applied before all of it is valid"),
            (false, false, false) => return Ok(()),
        };
        bail!(
            "{option} needs a file of one request, of at most {REQUEST_ENTRIES_MAX} machines, not {}\n  hint: {hint}",
            fleet.machine_count()
        )
    }
}

/// The names of the entries of a fleet, in the order of the file.
fn entry_names(fleet: &Value) -> Vec<String> {
    let entries = fleet.as_object().map(|fleet| fleet.values()).into_iter().flatten();
    entries.flat_map(|list| names_in(list, "name")).collect()
}

/// The fleet in the format of `fleet apply`, with invisible characters escaped.
fn printed(fleet: &Fleet) -> Result<String> {
    let text = fleet.print()?;
    let escaped = toml(&text);
    // Between single quotes an escape sequence would be part of the value.
    let is_same = Fleet::parse(&escaped).and_then(|again| again.print()).is_ok_and(|again| again == text);
    Ok(if is_same { escaped } else { text })
}

/// Adds the line of the file to an error of the server that names an entry of a piece.
fn with_line(error: anyhow::Error, piece: &FleetPiece, file: &Path, text: &str) -> anyhow::Error {
    let pointer = error.downcast_ref::<ApiError>().and_then(|rejection| rejection.pointer.as_deref());
    let place = pointer.map(|pointer| piece.in_file(&FleetPosition::from_pointer(pointer)));
    at_line(error, file, place.and_then(|place| place.line_in_file(text)))
}

fn at_line(error: anyhow::Error, file: &Path, line: Option<usize>) -> anyhow::Error {
    match line {
        Some(line) => error.context(format!("{}:{line}", file.display())),
        None => error,
    }
}

/// The fleet of a file, and the text of the file.
fn read(file: &Path) -> Result<(Fleet, String)> {
    let name = || format!("cannot read the fleet file: {}", file.display());
    let mut text = String::new();
    let mut source: Box<dyn Read> = match file.to_str() {
        Some("-") => Box::new(io::stdin()),
        Some(_) | None => Box::new(File::open(file).with_context(name)?),
    };
    source.read_to_string(&mut text).with_context(name)?;
    let fleet = Fleet::parse(&text).with_context(name)?;
    Ok((fleet, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rejected_entry_is_named_by_its_line() {
        let message = |pointer: Option<&str>| {
            let (kind, detail) = (String::new(), "no such host: h9".to_owned());
            let rejection = ApiError { status: 404, kind, detail, pointer: pointer.map(str::to_owned) };
            let text = "[[vm]]\nname = 'a'\nhost = 'h9'\n";
            let error = with_line(rejection.into(), &FleetPiece::default(), Path::new("fleet.toml"), text);
            assert!(error.downcast_ref::<ApiError>().is_some(), "the type of the error stays");
            format!("{error:#}")
        };
        assert_eq!(message(Some("/vm/0/host")), "fleet.toml:3: no such host: h9");
        assert_eq!(message(Some("/host/7/name")), "no such host: h9");
        assert_eq!(message(None), "no such host: h9");
    }

    #[test]
    fn an_unreadable_file_is_named() {
        let problem = format!("{:#}", read(Path::new("no-such.toml")).unwrap_err());
        assert!(problem.starts_with("cannot read the fleet file: no-such.toml: "), "{problem}");
    }
}
