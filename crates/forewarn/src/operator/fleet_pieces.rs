//! `fleet apply` of a large file: one request for each piece, in order. Every request is applied completely or not at
//! all, so that an interruption leaves whole pieces, and applying the file again continues.

use anyhow::{Result, bail};
use forewarn_control::{Fleet, FleetPiece, FleetReport};

use super::fleet_report::{DifferenceCounts, SAME, lines};
use super::interruption::Interruption;
use super::progress::Progress;
use super::session::{Session, parse, print, print_data};
use super::{OutputFormat, names, visible};

/// Applies the pieces of a file and prints their differences: each piece as soon as it is applied, or all of them as
/// one object at the end.
pub(super) fn apply(
    session: &Session,
    path: &str,
    (fleet, pieces): (&Fleet, &[FleetPiece]),
    counts: &mut DifferenceCounts,
    with_line: impl Fn(anyhow::Error, &FleetPiece) -> anyhow::Error,
) -> Result<()> {
    let interruption = Interruption::watch()?;
    let mut progress = Progress::new();
    let mut printed_last = Vec::new();
    let mut so_far =
        SoFar { pieces: (0, pieces.len()), entries: (0, pieces.iter().map(|one| one.entries).sum()) };
    for piece in pieces {
        if interruption.is_set() {
            progress.end();
            bail!("interrupted: {so_far}\n  hint: apply the file again to continue");
        }
        progress.update(&[], &so_far.to_string());
        let sent = session.post(path, &fleet.piece(piece)).and_then(parse::<FleetReport>);
        progress.end();
        let FleetReport { differences } = sent.map_err(|error| {
            progress.print(&format!("{so_far}; apply the file again to continue"));
            with_line(error, piece)
        })?;
        so_far.add(piece);
        counts.add(&differences);
        match session.output() {
            OutputFormat::Data(_) => printed_last.extend(differences),
            OutputFormat::Text(_) if differences.is_empty() => {}
            OutputFormat::Text(_) => print(&visible(&lines(&differences)))?,
        }
    }
    match session.output() {
        OutputFormat::Data(format) => print_data(format, &FleetReport { differences: printed_last }, names),
        OutputFormat::Text(_) if counts.is_empty() => print(SAME),
        OutputFormat::Text(_) => Ok(()),
    }
}

/// The applied part of a file, and the whole.
struct SoFar {
    pieces: (usize, usize),
    /// Hosts and machines.
    entries: (usize, usize),
}

impl SoFar {
    fn add(&mut self, piece: &FleetPiece) {
        self.pieces.0 += 1;
        self.entries.0 += piece.entries;
    }
}

impl std::fmt::Display for SoFar {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { pieces: (done, all), entries: (applied, entries) } = self;
        write!(out, "{applied} of {entries} hosts and machines applied, {done} of {all} pieces")
    }
}
