//! The operating system interface: processes, signals, `/proc`, file identities. All platform-specific code is here.
//!
//! Only Linux is supported.

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

/// Describes an unsuccessful exit; `None` for success.
pub(crate) fn exit_error(status: ExitStatus) -> Option<String> {
    match (status.code(), status.signal()) {
        (Some(0), _) => None,
        (Some(code), _) => Some(format!("exited with status {code}")),
        (None, Some(signal)) => Some(format!("killed by signal {signal}{}", signal_name(signal))),
        (None, None) => Some("unknown exit status".to_owned()),
    }
}

/// Describes why a program could not be started.
pub(crate) fn start_error(program: &Path, error: &io::Error) -> String {
    let program = program.display();
    if error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) {
        return format!(
            "cannot start {program}: not a program\n  hint: a script begins with a line such as #!/bin/sh"
        );
    }
    if error.kind() == io::ErrorKind::PermissionDenied {
        return format!("cannot start {program}: {error}\n  hint: chmod +x {program}");
    }
    if error.kind() == io::ErrorKind::NotFound {
        return format!("cannot start {program}: it or the interpreter in its first line does not exist");
    }
    format!("cannot start {program}: {error}")
}

/// Signals that the settings may name.
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

/// Looks up a signal by name, with or without `SIG`.
pub(crate) fn signal_named(name: &str) -> Result<Signal, String> {
    let plain = name.strip_prefix("SIG").unwrap_or(name);
    let known = SIGNALS.iter().find(|(known, _)| *known == plain);
    known.map(|(_, signal)| *signal).ok_or_else(|| {
        let names = SIGNALS.map(|(name, _)| name).join(", ");
        format!("unknown signal: {name:?}\n  hint: one of {names}")
    })
}

/// The identity of a process, which distinguishes it from others with the same process id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) pid: i32,
    /// The start time, in ticks since boot.
    pub(crate) start: u64,
}

/// A handle of a running process. It stays valid if the process id is reused.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) identity: Identity,
    handle: OwnedFd,
}

impl Process {
    /// The process with that id, if it exists.
    pub(crate) fn find(pid: i32) -> io::Result<Option<Self>> {
        if pid <= 0 {
            return Ok(None);
        }
        let Some(raw) = Pid::from_raw(pid) else { return Ok(None) };
        let handle = match pidfd_open(raw, PidfdFlags::empty()) {
            Ok(handle) => handle,
            Err(rustix::io::Errno::SRCH) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // Read after the handle was opened: if the id was reused before, the signal has no effect.
        Ok(start_time(pid)?.map(|start| Self { identity: Identity { pid, start }, handle }))
    }

    /// Sends a signal. Returns false if the process has exited.
    pub(crate) fn signal(&self, signal: Signal) -> io::Result<bool> {
        match pidfd_send_signal(&self.handle, signal) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::SRCH) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// True if the process has exited, including zombies.
    pub(crate) fn has_exited(&self) -> bool {
        !matches!(start_time(self.identity.pid), Ok(Some(start)) if start == self.identity.start)
    }

    /// The path of its program.
    pub(crate) fn program(&self) -> io::Result<PathBuf> {
        fs::read_link(format!("/proc/{}/exe", self.identity.pid))
    }

    /// The start time by the wall clock.
    pub(crate) fn started_at(&self) -> Option<SystemTime> {
        let ticks = rustix::param::clock_ticks_per_second().max(1);
        let up = Duration::from_millis(self.identity.start.saturating_mul(1_000) / ticks);
        let stat = read_proc("/proc/stat").ok()?;
        let boot = stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
        UNIX_EPOCH.checked_add(Duration::from_secs(boot))?.checked_add(up)
    }
}

/// The processes that have one of these values in an environment variable.
pub(crate) fn with_variable(name: &str, values: &[String]) -> Vec<Process> {
    let Ok(listing) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = listing.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_meant = |process: &Process| {
        // Processes of other users are unreadable and never meant.
        let environ = read_proc(&format!("/proc/{}/environ", process.identity.pid)).unwrap_or_default();
        let mut variables = environ.split('\0').filter_map(|variable| variable.split_once('='));
        variables.any(|(found, value)| found == name && values.iter().any(|wanted| wanted == value))
    };
    numbers.filter_map(|pid| Process::find(pid).ok().flatten()).filter(is_meant).collect()
}

/// The start time of a process, if it has not exited.
fn start_time(pid: i32) -> io::Result<Option<u64>> {
    match read_proc(&format!("/proc/{pid}/stat")) {
        Ok(line) => Ok(Stat::parse(&line).filter(|stat| !stat.has_ended).map(|stat| stat.start)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound) => Ok(None),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The id of the current boot.
pub(crate) fn boot() -> Option<String> {
    read_proc("/proc/sys/kernel/random/boot_id").ok().map(|id| id.trim().to_owned())
}

/// An identifier of a file that survives renames and is never reused: the inode and the time of creation, or of the
/// last change of the contents if the file system has no creation time. The time of the last status change is
/// unsuitable, because renames change it; so is the device number, because it may change with a reboot, which most
/// events cause.
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

/// True if other users may read the file.
pub(crate) fn is_world_readable(metadata: &fs::Metadata) -> bool {
    metadata.permissions().mode() & 0o007 != 0
}

/// Creates a new file, readable by its owner only or by all users.
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
        assert!(!found.has_exited());
        assert_eq!(found.program().unwrap(), std::env::current_exe().unwrap());
        assert!(found.started_at().unwrap() < SystemTime::now() + Duration::from_secs(2));
        assert!(Process::find(0).unwrap().is_none());
        assert!(Process::find(-1).unwrap().is_none());
        assert!(Process::find(i32::MAX).unwrap().is_none());
        assert_eq!(boot().unwrap().len(), 36);
    }

    #[test]
    fn a_file_mark_survives_renames_and_is_unique() {
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
        // The same inode with another time; then without creation times.
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
