//! The clock of this computer: whether anything keeps it right, and whether it can be right at all.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::report::Report;

/// There was no such program before: 2026-01-01.
const EARLIEST: Duration = Duration::from_secs(1_767_225_600);

/// Where `systemd-timesyncd` says that it has the time.
const TIMESYNCD: &str = "/run/systemd/timesync/synchronized";

/// Two file systems need not agree to the second.
const SLACK: Duration = Duration::from_mins(1);

/// Looks at the clock; with a data directory, at what was written there, too.
pub(super) fn look(report: &mut Report, data_dir: Option<&Path>) {
    synchronised(report);
    plausible(report, data_dir);
}

fn synchronised(report: &mut Report) {
    let asked = Command::new("timedatectl")
        .args(["show", "--property=NTPSynchronized", "--value"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let answer = asked.ok().filter(|asked| asked.status.success());
    match answer.as_ref().map(|answer| answer.stdout.trim_ascii()) {
        Some(b"yes") => report.well("clock sync", "the clock is synchronised"),
        Some(b"no") => report.finding(
            "clock sync",
            "nothing keeps the clock right",
            "NotBefore is a time of day, and events start late by as much as the clock is off",
            "timedatectl set-ntp true",
        ),
        Some(_) | None if Path::new(TIMESYNCD).exists() => {
            report.well("clock sync", "the clock is synchronised by systemd-timesyncd");
        }
        Some(_) | None => {
            report.unknown("clock sync", "neither timedatectl nor systemd-timesyncd tells anything here");
        }
    }
}

fn plausible(report: &mut Report, data_dir: Option<&Path>) {
    let now = SystemTime::now();
    let remedy = "date; timedatectl set-ntp true";
    if now < UNIX_EPOCH + EARLIEST {
        return report.finding(
            "clock",
            "the clock shows a time before this program was made",
            "nothing is due for years, and no certificate is valid",
            remedy,
        );
    }
    match data_dir.and_then(newest) {
        Some(written) if written > now + SLACK => report.finding(
            "clock",
            "the clock shows a time before what is in the data directory was written",
            "what is due waits until the clock has caught up",
            remedy,
        ),
        Some(_) | None => report.well("clock", "the clock shows a time that can be"),
    }
}

/// When something in a directory was last written.
fn newest(directory: &Path) -> Option<SystemTime> {
    let entries = directory.read_dir().ok()?.flatten();
    entries.filter_map(|entry| entry.metadata().ok()?.modified().ok()).max()
}
