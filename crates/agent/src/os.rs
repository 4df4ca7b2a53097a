//! The operating system: processes, signals, `/proc`, files by identity. Nothing else of the agent knows which one it is.
//!
//! This is Linux. Another system would be another file with the same functions; none is written.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use forewarn_processes::{Stat, read_proc};
use rustix::fs::{AtFlags, CWD, Statx, StatxFlags};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// How a program ended, if not well.
pub(crate) fn ended_badly(status: ExitStatus) -> Option<String> {
    match (status.code(), status.signal()) {
        (Some(0), _) => None,
        (Some(code), _) => Some(format!("it ended with status {code}")),
        (None, Some(signal)) => Some(format!("it was ended by signal {signal}{}", signal_name(signal))),
        (None, None) => Some("nobody knows how it ended".to_owned()),
    }
}

/// Why a program could not be started.
pub(crate) fn not_started(program: &Path, problem: &io::Error) -> String {
    let program = program.display();
    if problem.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) {
        return format!("{program} is no program\n  hint: a script begins with a line such as #!/bin/sh");
    }
    if problem.kind() == io::ErrorKind::PermissionDenied {
        return format!("{program} cannot be started: {problem}\n  hint: chmod +x {program}");
    }
    if problem.kind() == io::ErrorKind::NotFound {
        return format!(
            "{program} cannot be started: it, or the interpreter in its first line, is not there"
        );
    }
    format!("{program} cannot be started: {problem}")
}

/// Signals that a setting may name.
const SIGNALS: [(&str, Signal); 11] = [
    ("HUP", Signal::HUP),
    ("INT", Signal::INT),
    ("QUIT", Signal::QUIT),
    ("USR1", Signal::USR1),
    ("USR2", Signal::USR2),
    ("TERM", Signal::TERM),
    ("KILL", Signal::KILL),
    ("STOP", Signal::STOP),
    ("CONT", Signal::CONT),
    ("WINCH", Signal::WINCH),
    ("TTIN", Signal::TTIN),
];

fn signal_name(number: i32) -> String {
    let known = SIGNALS.iter().find(|(_, signal)| signal.as_raw() == number);
    known.map(|(name, _)| format!(" (SIG{name})")).unwrap_or_default()
}

/// The signal of that name, with or without `SIG`.
pub(crate) fn signal_named(name: &str) -> Result<Signal, String> {
    let plain = name.strip_prefix("SIG").unwrap_or(name);
    let known = SIGNALS.iter().find(|(known, _)| *known == plain);
    known.map(|(_, signal)| *signal).ok_or_else(|| {
        let names = SIGNALS.map(|(name, _)| name).join(", ");
        format!("not a signal that can be sent: {name:?}\n  hint: one of {names}")
    })
}

/// A process, told from every other that had or will have its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Its number.
    pub(crate) pid: i32,
    /// When it began, in ticks since the machine did.
    pub(crate) start: u64,
}

/// A process that is there, and no other even if it ends and its number is given away.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) identity: Identity,
    handle: OwnedFd,
}

impl Process {
    /// The process of that number, if there is one.
    pub(crate) fn find(pid: i32) -> io::Result<Option<Self>> {
        if pid <= 0 {
            return Ok(None);
        }
        let Some(raw) = Pid::from_raw(pid) else { return Ok(None) };
        let handle = match pidfd_open(raw, PidfdFlags::empty()) {
            Ok(handle) => handle,
            Err(rustix::io::Errno::SRCH) => return Ok(None),
            Err(problem) => return Err(problem.into()),
        };
        // Looked at after it is held: if it is another one by now, the signal reaches nobody.
        Ok(alive(pid)?.map(|start| Self { identity: Identity { pid, start }, handle }))
    }

    /// Sends a signal. Whether anybody was left to get it.
    pub(crate) fn signal(&self, signal: Signal) -> io::Result<bool> {
        match pidfd_send_signal(&self.handle, signal) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::SRCH) => Ok(false),
            Err(problem) => Err(problem.into()),
        }
    }

    /// Whether it has ended. One that has, and that nobody has asked how, has.
    pub(crate) fn has_gone(&self) -> bool {
        !matches!(alive(self.identity.pid), Ok(Some(start)) if start == self.identity.start)
    }

    /// The program that it runs.
    pub(crate) fn program(&self) -> io::Result<PathBuf> {
        fs::read_link(format!("/proc/{}/exe", self.identity.pid))
    }

    /// When it began, by the clock on the wall as it is now.
    pub(crate) fn began(&self) -> Option<SystemTime> {
        let ticks = rustix::param::clock_ticks_per_second().max(1);
        let up = Duration::from_millis(self.identity.start.saturating_mul(1_000) / ticks);
        let stat = read_proc("/proc/stat").ok()?;
        let boot = stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
        UNIX_EPOCH.checked_add(Duration::from_secs(boot))?.checked_add(up)
    }
}

/// The processes that were started with a variable of that name and one of these values.
pub(crate) fn with_variable(name: &str, values: &[String]) -> Vec<Process> {
    let Ok(listing) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = listing.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_meant = |process: &Process| {
        // Those of others cannot be read, and are not meant.
        let told = read_proc(&format!("/proc/{}/environ", process.identity.pid)).unwrap_or_default();
        let mut variables = told.split('\0').filter_map(|variable| variable.split_once('='));
        variables.any(|(found, value)| found == name && values.iter().any(|wanted| wanted == value))
    };
    numbers.filter_map(|pid| Process::find(pid).ok().flatten()).filter(is_meant).collect()
}

/// When the process of that number began, if it has not ended.
fn alive(pid: i32) -> io::Result<Option<u64>> {
    match read_proc(&format!("/proc/{pid}/stat")) {
        Ok(line) => Ok(Stat::parse(&line).filter(|stat| !stat.has_ended).map(|stat| stat.start)),
        Err(problem) if matches!(problem.kind(), io::ErrorKind::NotFound) => Ok(None),
        Err(problem) if problem.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => Ok(None),
        Err(problem) => Err(problem),
    }
}

/// Which boot of the machine this is.
pub(crate) fn boot() -> Option<String> {
    read_proc("/proc/sys/kernel/random/boot_id").ok().map(|id| id.trim().to_owned())
}

/// What tells a file from every other that was or will be in its place, whatever it is called: its number and when it was born.
/// Numbers alone are given away again.
///
/// Where births are not known it is when its contents were changed last. When anything about it was changed does not do: that
/// changes with its name. Nor does the device: its number may be another after a reboot, which is what most events are.
pub(crate) fn file_mark(path: &Path) -> io::Result<String> {
    let wanted = StatxFlags::INO | StatxFlags::BTIME | StatxFlags::MTIME;
    let found = rustix::fs::statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, wanted)?;
    Ok(mark(&found))
}

fn mark(found: &Statx) -> String {
    let is_born = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME);
    let (word, at) = if is_born { ("born", found.stx_btime) } else { ("changed", found.stx_mtime) };
    format!("{} {word} {}.{:09}", found.stx_ino, at.tv_sec, at.tv_nsec)
}

/// Whether others than its owner and their group may read a file.
pub(crate) fn is_open_to_all(metadata: &fs::Metadata) -> bool {
    metadata.permissions().mode() & 0o007 != 0
}

/// A new file that nobody else may read, or that all may.
pub(crate) fn create_new(path: &Path, for_all: bool) -> io::Result<File> {
    let mode = if for_all { 0o644 } else { 0o600 };
    fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_found_and_began_before_now() {
        let me = i32::try_from(std::process::id()).unwrap();
        let found = Process::find(me).unwrap().unwrap();
        assert_eq!(found.identity.pid, me);
        assert!(!found.has_gone());
        assert_eq!(found.program().unwrap(), std::env::current_exe().unwrap());
        assert!(found.began().unwrap() < SystemTime::now() + Duration::from_secs(2));
        assert!(Process::find(0).unwrap().is_none());
        assert!(Process::find(-1).unwrap().is_none());
        assert!(Process::find(i32::MAX).unwrap().is_none());
        assert_eq!(boot().unwrap().len(), 36);
    }

    #[test]
    fn a_file_keeps_its_mark_whatever_it_is_called_and_shares_it_with_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let [first, second, third] = ["a", "b", "c"].map(|name| folder.path().join(name));
        fs::write(&first, "").unwrap();
        let before = file_mark(&first).unwrap();
        fs::hard_link(&first, &second).unwrap();
        fs::remove_file(&first).unwrap();
        fs::rename(&second, &third).unwrap();
        assert_eq!(file_mark(&third).unwrap(), before);
        fs::write(&first, "").unwrap();
        assert_ne!(file_mark(&first).unwrap(), before);
        assert_eq!(file_mark(&second).unwrap_err().kind(), io::ErrorKind::NotFound);
        // The same number, given away again; then, where births are not known.
        let statx = || rustix::fs::statx(CWD, &third, AtFlags::empty(), StatxFlags::ALL).unwrap();
        let (known, mut later, mut unknown) = (statx(), statx(), statx());
        later.stx_btime.tv_nsec ^= 1;
        later.stx_mask |= StatxFlags::BTIME.bits();
        unknown.stx_mask &= !StatxFlags::BTIME.bits();
        assert_ne!(mark(&later), mark(&known));
        let changed = mark(&unknown);
        unknown.stx_mtime.tv_nsec ^= 1;
        assert_ne!(mark(&unknown), changed);
    }

    #[test]
    fn signals_have_names() {
        assert_eq!(signal_named("SIGUSR1"), Ok(Signal::USR1));
        assert_eq!(signal_named("HUP"), Ok(Signal::HUP));
        assert!(signal_named("9").unwrap_err().contains("hint: one of HUP"));
        assert_eq!(signal_name(9), " (SIGKILL)");
        assert_eq!(signal_name(31), "");
    }
}
