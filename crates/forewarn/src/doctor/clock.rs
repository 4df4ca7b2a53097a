//! The clock of this computer: its synchronisation and its plausibility.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::report::DoctorReport;

/// The earliest plausible time: 2026-01-01, before the first version of this program.
const EARLIEST: Duration = Duration::from_secs(1_767_225_600);

/// The file with which `systemd-timesyncd` reports synchronisation.
const TIMESYNCD: &str = "/run/systemd/timesync/synchronized";

/// Tolerated difference between the clock and file times.
const SLACK: Duration = Duration::from_mins(1);

/// Checks the clock; with a data directory, also against the times of its files.
pub(super) fn check(report: &mut DoctorReport, data_dir: Option<&Path>) {
    synchronised(report);
    plausible(report, data_dir);
}

fn synchronised(report: &mut DoctorReport) {
    let output = Command::new("timedatectl")
        .args(["show", "--property=NTPSynchronized", "--value"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let output = output.ok().filter(|output| output.status.success());
    match output.as_ref().map(|output| output.stdout.trim_ascii()) {
        Some(b"yes") => report.ok("clock sync", "the clock is synchronised"),
        Some(b"no") => report.finding(
            "clock sync",
            "the clock is not synchronised",
            "events start late or early by the error of the clock",
            "timedatectl set-ntp true",
        ),
        Some(_) | None if Path::new(TIMESYNCD).exists() => {
            report.ok("clock sync", "the clock is synchronised by systemd-timesyncd");
        }
        Some(_) | None => {
            report.unknown("clock sync", "neither timedatectl nor systemd-timesyncd gives a status");
        }
    }
}

fn plausible(report: &mut DoctorReport, data_dir: Option<&Path>) {
    let now = SystemTime::now();
    let remedy = "date; timedatectl set-ntp true";
    if now < UNIX_EPOCH + EARLIEST {
        return report.finding(
            "clock",
            "the system time is before the first version of this program",
            "no event becomes due, and no certificate is valid",
            remedy,
        );
    }
    match data_dir.and_then(newest) {
        Some(written) if written > now + SLACK => report.finding(
            "clock",
            "the system time is before the latest change in the data directory",
            "due events wait until the clock has caught up",
            remedy,
        ),
        Some(_) | None => report.ok("clock", "system time is plausible"),
    }
}

/// The time of the latest change in a directory.
fn newest(directory: &Path) -> Option<SystemTime> {
    let entries = directory.read_dir().ok()?.flatten();
    entries.filter_map(|entry| entry.metadata().ok()?.modified().ok()).max()
}
