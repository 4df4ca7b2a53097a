//! The plan of the test command, printed before its first step: what it will install, from where and how much, and how
//! long it takes.

mod list;
mod question;

use std::fmt;
use std::fs;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;

use crate::installs::{self, OPTION};
use crate::steps::{Extent, skips_are_failures};
use crate::tools::cache_directory;
use crate::tree;

use question::{Answer, ask};

/// Minutes of a run with two cores, and of the first build before it.
const USUAL_MINUTES: u64 = 35;
const FIRST_BUILD_MINUTES: u64 = 10;

/// A megabyte is a million bytes, as for apt.
const MEGABYTE: u64 = 1_000_000;

/// Everything that a run installs.
pub(crate) struct Plan {
    extent: Extent,
    /// The time of the last run in this directory.
    last: Option<Duration>,
    installations: Vec<Installation>,
    /// Debian packages that this user cannot install here, and the steps that need them.
    unavailable: Option<(Vec<&'static str>, Steps)>,
}

/// The names of steps.
type Steps = Vec<&'static str>;

/// Something to install.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Installation {
    source: &'static str,
    what: String,
    /// None if apt has no lists yet.
    bytes: Option<u64>,
    /// Bytes on disk, about.
    disk_bytes: u64,
    minutes: u64,
    steps: Steps,
}

impl Plan {
    /// Looks for everything that the steps of a run need.
    pub(crate) fn make(extent: Extent) -> Self {
        let (installations, unavailable) = list::missing(extent);
        Self { extent, last: last_run(extent), installations, unavailable }
    }

    /// Prints the plan. On a terminal, asks whether to install.
    pub(crate) fn announce(&self) -> Result<()> {
        eprintln!("{self}");
        let is_person = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        let is_question = !self.installations.is_empty() && !installs::are_refused();
        if is_question && is_person && !skips_are_failures() {
            match ask(&mut std::io::stdin().lock(), &mut std::io::stderr())? {
                Answer::Install => {}
                Answer::Skip => installs::refuse(),
            }
        }
        Ok(())
    }

    /// The sum of all downloads, at least.
    fn bytes(&self) -> u64 {
        self.installations.iter().filter_map(|one| one.bytes).sum()
    }

    fn minutes(&self) -> u64 {
        self.installations.iter().map(|one| one.minutes).sum()
    }

    fn write_time(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(last) = self.last {
            return writeln!(f, "Time: the last run here took {} minutes.", last.as_secs().div_ceil(60));
        }
        match self.extent {
            Extent::Usual => writeln!(
                f,
                "Time: about {USUAL_MINUTES} minutes with two cores, and {FIRST_BUILD_MINUTES} more for the first build."
            ),
            Extent::Long => writeln!(f, "Time: many hours."),
        }
    }

    fn write_installations(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { installations, .. } = self;
        let is_known = installations.iter().all(|one| one.bytes.is_some());
        let more = if is_known { "" } else { " or more" };
        let disk_bytes = installations.iter().map(|one| one.disk_bytes).sum();
        writeln!(
            f,
            "To install: {}{more} to download, about {} on disk, about {} minutes.\n",
            megabytes(self.bytes()),
            megabytes(disk_bytes),
            self.minutes()
        )?;
        let steps = |one: &Installation| one.steps.join(", ");
        let wide = |text: &dyn Fn(&Installation) -> usize| installations.iter().map(text).max().unwrap_or(0);
        let (source_width, steps_width) = (wide(&|one| one.source.len()), wide(&|one| steps(one).len()));
        for one in installations {
            let bytes = one.bytes.map_or_else(|| "size unknown".to_owned(), megabytes);
            let (source, steps) = (one.source, steps(one));
            writeln!(f, "  {bytes:>12}  {source:source_width$}  for {steps:steps_width$}  {}", one.what)?;
        }
        let cache = cache_directory().map(|path| path.join("forewarn/tools").display().to_string());
        writeln!(
            f,
            "\nDebian packages are installed into the system, everything else into {}.\n\
             No service of a package is started or enabled.",
            cache.unwrap_or_default()
        )
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_time(f)?;
        if let Some((packages, steps)) = &self.unavailable {
            let (packages, steps) = (packages.join(" "), steps.join(", "));
            writeln!(f, "Only root on Debian can install: {packages}\nSKIPPED without: {steps}")?;
        }
        if self.installations.is_empty() {
            return write!(f, "Nothing has to be installed.");
        }
        self.write_installations(f)?;
        let steps: std::collections::BTreeSet<_> =
            self.installations.iter().flat_map(|one| &one.steps).copied().collect();
        let steps = steps.into_iter().collect::<Vec<_>>().join(", ");
        if installs::are_refused() {
            write!(f, "{OPTION}: nothing is installed. SKIPPED, at least in part: {steps}")
        } else {
            write!(f, "{OPTION} installs nothing, and skips at least a part of: {steps}")
        }
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes.div_ceil(MEGABYTE))
}

/// The file with the seconds of the last run.
fn record(extent: Extent) -> Result<PathBuf> {
    let name = match extent {
        Extent::Usual => "seconds-of-the-last-test",
        Extent::Long => "seconds-of-the-last-long-test",
    };
    Ok(tree::root()?.join("target/xtask").join(name))
}

fn last_run(extent: Extent) -> Option<Duration> {
    let text = fs::read_to_string(record(extent).ok()?).ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}

/// Records the time of a run. Without the record, the next plan is only less exact.
pub(crate) fn remember(extent: Extent, time: Duration) {
    let written = record(extent).and_then(|path| {
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        Ok(fs::write(path, time.as_secs().to_string())?)
    });
    if let Err(problem) = written {
        eprintln!("the time of this run was not recorded: {problem:#}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        let installation = |source, what: &str, bytes, minutes, steps: &[&'static str]| Installation {
            source,
            what: what.to_owned(),
            bytes,
            disk_bytes: 500 * MEGABYTE,
            minutes,
            steps: steps.to_vec(),
        };
        Plan {
            extent: Extent::Usual,
            last: None,
            installations: vec![
                installation("Debian", "haproxy nftables", Some(2_100_000), 1, &["agent", "real clients"]),
                installation("PyPI", "az 2.9", Some(80_000_001), 3, &["azure"]),
            ],
            unavailable: None,
        }
    }

    #[test]
    fn a_plan_has_every_installation_its_size_and_its_steps_and_the_sums() {
        let text = plan().to_string();
        for line in [
            "Time: about 35 minutes with two cores, and 10 more for the first build.",
            "To install: 83 MB to download, about 1000 MB on disk, about 4 minutes.",
            "          3 MB  Debian  for agent, real clients  haproxy nftables",
            "         81 MB  PyPI    for azure                az 2.9",
            "No service of a package is started or enabled.",
            "--no-install installs nothing, and skips at least a part of: agent, azure, real clients",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }

    #[test]
    fn an_unknown_size_is_not_counted_as_nothing() {
        let mut plan = plan();
        plan.installations[0].bytes = None;
        let text = plan.to_string();
        assert!(text.contains("To install: 81 MB or more to download"), "{text}");
        assert!(
            text.contains("  size unknown  Debian  for agent, real clients  haproxy nftables\n"),
            "{text}"
        );
    }

    #[test]
    fn a_plan_without_installations_says_so_and_names_what_cannot_be_installed() {
        let mut plan = Plan { installations: Vec::new(), last: Some(Duration::from_secs(1801)), ..plan() };
        assert_eq!(
            plan.to_string(),
            "Time: the last run here took 31 minutes.\nNothing has to be installed."
        );
        plan.unavailable = Some((vec!["nftables"], vec!["agent"]));
        let text = plan.to_string();
        assert!(
            text.contains("Only root on Debian can install: nftables\nSKIPPED without: agent\n"),
            "{text}"
        );
    }
}
