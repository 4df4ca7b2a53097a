//! `forewarn fleet`: the fleet as a file.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use forewarn_control::{DifferenceState, DifferenceView, FLEET_BYTES_MAX, Fleet, FleetPlace, FleetReport};

use super::consent::Consent;
use super::session::{Session, understand};
use super::visible::toml;
use crate::client::Refused;

const EXAMPLES: &str = "\
Examples:
  forewarn fleet apply fleet.toml --dry-run
  forewarn fleet apply fleet.toml --moves --forget
  forewarn fleet show | sed 's/terminate = \"5m\"/terminate = \"10m\"/' | forewarn fleet apply -";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Print the fleet as a file that `apply` reads.
    Show,
    /// Make the fleet what a file says. What the file does not mention stays, unless it is forgotten or pruned.
    #[command(after_help = EXAMPLES)]
    Apply(Apply),
}

#[derive(Args)]
pub(crate) struct Apply {
    /// The file; `-` is standard input.
    file: PathBuf,
    /// Remove what the file does not mention, by the rules of deletion: machines are deleted, announced first where that is due.
    #[arg(long)]
    prune: bool,
    /// Stop managing what the file does not mention: machines stay as they are.
    #[arg(long, conflicts_with = "prune")]
    forget: bool,
    /// Record moves of machines that the file has on other hosts; without it they are only listed.
    #[arg(long)]
    moves: bool,
    /// Only say what would be done.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    consent: Consent,
}

pub(super) fn run(session: &Session, command: &Command) -> Result<()> {
    match command {
        Command::Show => session.show("/v1/fleet", |fleet: Fleet| shown(&fleet)),
        Command::Apply(wanted) => apply(session, wanted),
    }
}

fn apply(session: &Session, wanted: &Apply) -> Result<()> {
    let Apply { file, prune, forget, moves, dry_run, consent } = wanted;
    let (fleet, text) = read(file)?;
    let unmentioned = match (prune, forget) {
        (true, _) => "remove",
        (false, true) => "forget",
        (false, false) => "keep",
    };
    if *dry_run {
        eprintln!("dry run: nothing is done");
    } else if *prune {
        consent.obtain(session, "delete of every machine that the file does not mention")?;
    }
    let path = format!("/v1/fleet?unmentioned={unmentioned}&moves={moves}&dry_run={dry_run}");
    let answer = session.post(&path, &fleet).map_err(|problem| with_line(problem, file, &text))?;
    let report: FleetReport = understand(answer.clone())?;
    session.present(answer, |report: FleetReport| Ok(say(&report.differences)))?;
    match report.differences.iter().filter(|one| one.state == DifferenceState::Skipped).count() {
        0 => Ok(()),
        skipped => bail!(
            "{skipped} of {} differences not applied: the file has machines on other hosts than they run on\n  hint: if they \
             were moved there by other means, `forewarn fleet apply --moves` records it; `forewarn vm redeploy` moves a machine",
            report.differences.len()
        ),
    }
}

/// A fleet as a file that can be applied again, in which invisible characters can be seen.
fn shown(fleet: &Fleet) -> Result<String> {
    let text = fleet.print()?;
    let escaped = toml(&text);
    // In a string between single quotes an escape would be part of the text.
    let is_same = Fleet::parse(&escaped).and_then(|again| again.print()).is_ok_and(|again| again == text);
    Ok(if is_same { escaped } else { text })
}

/// The same problem, with the line of the file that is the reason, if the server names an entry.
fn with_line(problem: anyhow::Error, file: &Path, text: &str) -> anyhow::Error {
    let pointer = problem.downcast_ref::<Refused>().and_then(|refused| refused.pointer.as_deref());
    match pointer.and_then(|pointer| FleetPlace::from_pointer(pointer).line_in_file(text)) {
        Some(line) => problem.context(format!("{}:{line}", file.display())),
        None => problem,
    }
}

/// The fleet of a file, and the text of the file.
fn read(file: &Path) -> Result<(Fleet, String)> {
    let name = || format!("cannot read the fleet: {}", file.display());
    let mut text = String::new();
    let source: Box<dyn Read> = match file.to_str() {
        Some("-") => Box::new(io::stdin()),
        Some(_) | None => Box::new(File::open(file).with_context(name)?),
    };
    // One byte more than may be, so that a file that is too long is not taken for a shorter one.
    source.take(FLEET_BYTES_MAX as u64 + 1).read_to_string(&mut text).with_context(name)?;
    let fleet = Fleet::parse(&text).with_context(name)?;
    Ok((fleet, text))
}

fn say(differences: &[DifferenceView]) -> String {
    if differences.is_empty() {
        return "Already so: the fleet is what the file says.\n".to_owned();
    }
    let line = |difference: &DifferenceView| {
        let state = match difference.state {
            DifferenceState::Done | DifferenceState::Planned => "",
            DifferenceState::Later => "  (later: apply it again when what is announced has happened)",
            DifferenceState::Skipped => "  (not applied: --moves records it)",
        };
        format!("{}{state}\n", difference.text)
    };
    differences.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_said_one_a_line() {
        let json = r#"{"differences":[{"text":"+ host h3","state":"done"},{"text":"- host h1","state":"later"},
              {"text":"~ solo: host h1 -> h2","state":"skipped"}]}"#;
        let report: FleetReport = serde_json::from_str(json).unwrap();
        let said = say(&report.differences);
        assert_eq!(
            said,
            "+ host h3\n- host h1  (later: apply it again when what is announced has happened)\n\
             ~ solo: host h1 -> h2  (not applied: --moves records it)\n"
        );
        assert_eq!(say(&[]), "Already so: the fleet is what the file says.\n");
    }

    #[test]
    fn a_refused_entry_is_named_by_its_line() {
        let refused = |pointer: Option<&str>| {
            let (kind, detail) = (String::new(), "no such host: h9".to_owned());
            let refused = Refused { status: 404, kind, detail, pointer: pointer.map(str::to_owned) };
            let text = "[[vm]]\nname = 'a'\nhost = 'h9'\n";
            let problem = with_line(refused.into(), Path::new("fleet.toml"), text);
            assert!(problem.downcast_ref::<Refused>().is_some(), "the kind of problem stays");
            format!("{problem:#}")
        };
        assert_eq!(refused(Some("/vm/0/host")), "fleet.toml:3: no such host: h9");
        assert_eq!(refused(Some("/host/7/name")), "no such host: h9");
        assert_eq!(refused(None), "no such host: h9");
    }

    #[test]
    fn a_file_that_is_no_fleet_is_named() {
        let problem = format!("{:#}", read(Path::new("no-such.toml")).unwrap_err());
        assert!(problem.starts_with("cannot read the fleet: no-such.toml: "), "{problem}");
    }
}
