//! The data directory: its permissions, its file system, its free space, and the integrity of the journal.

use std::fs::{self, File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use forewarn_store::OpenError;
use rustix::fs::{Access, access, statvfs};

use super::processes::locker;
use super::report::{DoctorReport, Finding};

/// Free space: at least one part in twenty, or one gibibyte.
const FREE_PARTS: u64 = 20;
const FREE_BYTES_ENOUGH: u64 = 1024 * 1024 * 1024;

/// Bytes of the largest journal that is copied for the check.
const JOURNAL_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// The mode of a private directory.
const PRIVATE: u32 = 0o700;

/// File systems in memory, and file systems with unreliable locks and syncs, by their names in the mount table.
const VOLATILE: [&str; 2] = ["tmpfs", "ramfs"];
const REMOTE: [&str; 8] = ["nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "fuse.sshfs", "fuse.glusterfs"];

pub(super) fn check(report: &mut DoctorReport, directory: &Path) {
    let found = match fs::metadata(directory) {
        Ok(found) => found,
        Err(error) => return report.outcome("data directory", missing(directory, &error)),
    };
    report.outcome("data directory", usable(directory, &found));
    report.outcome("file system", suitable(directory));
    report.outcome("disk", roomy(directory));
    let lock = directory.join("lock");
    let locked = File::open(&lock).is_ok_and(|lock| lock.try_lock_shared().is_err());
    if locked {
        report.outcome("lock", held(directory, &lock));
        return report.unknown("journal", "in use by a server; `forewarn backup FILE` copies and checks it");
    }
    check_journal(report, directory);
}

fn finding(what: String, why: &'static str, remedy: String) -> Finding {
    Finding { what, why, remedy }
}

fn missing(directory: &Path, error: &std::io::Error) -> Result<String, Finding> {
    let shown = directory.display();
    let parent = directory.parent().unwrap_or(Path::new("/"));
    if error.kind() == ErrorKind::NotFound && access(parent, Access::WRITE_OK).is_ok() {
        return Ok(format!("{shown} does not exist yet, and can be created"));
    }
    let remedy = format!("install -d -m 0700 -o forewarn -g forewarn {shown}");
    Err(finding(format!("cannot read {shown}: {error}"), "the server does not start", remedy))
}

fn usable(directory: &Path, found: &Metadata) -> Result<String, Finding> {
    let shown = directory.display();
    if !found.is_dir() {
        let remedy = format!("choose another data_dir, or: mv {shown} {shown}.old");
        return Err(finding(format!("not a directory: {shown}"), "the server does not start", remedy));
    }
    if access(directory, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        let what = format!("the current user cannot write to {shown}, which belongs to user {}", found.uid());
        let why = "the server does not start";
        return Err(finding(what, why, format!("chown -R forewarn: {shown}, or run as its owner")));
    }
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut others = entries.filter_map(|entry| {
        let owner = entry.metadata().ok()?.uid();
        (owner != found.uid()).then(|| entry.path())
    });
    if let Some(other) = others.next() {
        let what = format!("{} does not belong to the owner of its directory", other.display());
        let why = "a server that runs as that owner cannot write it";
        return Err(finding(what, why, format!("chown -R --reference={shown} {shown}")));
    }
    let mode = found.mode() & 0o777;
    if mode & !PRIVATE != 0 {
        let what = format!("other users have access to {shown}: mode {mode:o}");
        return Err(finding(what, "it contains secrets", format!("chmod 0700 {shown}")));
    }
    Ok(format!("{shown} is usable"))
}

/// The type of a directory's file system, from the mount table: the longest mount point counts.
fn kind(directory: &Path) -> Option<String> {
    let directory = directory.canonicalize().ok()?;
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let lines = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        Some((PathBuf::from(fields.next()?.replace("\\040", " ")), fields.next()?.to_owned()))
    });
    let on = lines.filter(|(point, _)| directory.starts_with(point));
    // Of several mounts on one directory, the last one is visible.
    on.max_by_key(|(point, _)| point.components().count()).map(|(_, kind)| kind)
}

fn suitable(directory: &Path) -> Result<String, Finding> {
    let shown = directory.display();
    let Some(kind) = kind(directory) else { return Ok("unknown on this system".to_owned()) };
    if VOLATILE.contains(&kind.as_str()) {
        let what = format!("{shown} is in memory ({kind})");
        let why = "all data is lost with a restart of the computer";
        return Err(finding(what, why, "data_dir = \"/var/lib/forewarn\"".to_owned()));
    }
    if REMOTE.contains(&kind.as_str()) {
        let what = format!("{shown} is on a network file system ({kind})");
        let why = "its locks and syncs are not reliable";
        return Err(finding(what, why, "data_dir = \"/var/lib/forewarn\", on a local disk".to_owned()));
    }
    Ok(format!("{shown} is on {kind}"))
}

fn roomy(directory: &Path) -> Result<String, Finding> {
    let Ok(disk) = statvfs(directory) else { return Ok("unknown on this system".to_owned()) };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let megabytes = free / 1024 / 1024;
    if free < FREE_BYTES_ENOUGH && disk.f_bavail < disk.f_blocks / FREE_PARTS {
        let what = format!("the disk of {} is nearly full: {megabytes} MiB are free", directory.display());
        let why = "with a full disk, the server rejects all changes";
        return Err(finding(what, why, format!("df -h {}", directory.display())));
    }
    Ok(format!("{megabytes} MiB are free"))
}

fn held(directory: &Path, lock: &Path) -> Result<String, Finding> {
    let shown = directory.display();
    match locker(lock) {
        Some(process) if process.is_ours() => Ok(format!("{shown} is in use by {process}")),
        Some(process) => {
            let what = format!("{shown} is locked by {process}");
            Err(finding(what, "the server does not start", format!("kill {}", process.id)))
        }
        None => {
            let what = format!("{shown} is locked by another process");
            Err(finding(what, "the server does not start", format!("fuser -v {}", lock.display())))
        }
    }
}

/// Checks a copy of the journal: the check must not change the files or their owner.
fn check_journal(report: &mut DoctorReport, directory: &Path) {
    let names = ["journal.db", "journal.db-wal", "journal.reach", "audit.db", "audit.db-wal", "lock"];
    let files = names.map(|name| directory.join(name));
    let bytes: u64 = files.iter().filter_map(|file| fs::metadata(file).ok()).map(|found| found.len()).sum();
    let shown = directory.display();
    if bytes > JOURNAL_BYTES_MAX {
        return report
            .unknown("journal", format!("too large for this check: `forewarn store check {shown}`"));
    }
    let copy = std::env::temp_dir().join(format!("forewarn-doctor-{}", std::process::id()));
    let copied = fs::DirBuilder::new().mode(PRIVATE).create(&copy).and_then(|()| {
        let existing = files.iter().filter(|file| file.exists());
        existing
            .filter_map(|file| Some((file, file.file_name()?)))
            .try_for_each(|(file, name)| fs::copy(file, copy.join(name)).map(drop))
    });
    let checked = copied.map(|()| forewarn_store::check(&copy));
    // If the removal fails, a private temporary directory stays behind.
    drop(fs::remove_dir_all(&copy));
    match checked {
        Err(error) => report.unknown("journal", format!("cannot copy the journal for the check: {error}")),
        Ok(Ok(checked)) => report.ok(
            "journal",
            format!(
                "complete: {} hosts, {} tenants, {} machines",
                checked.hosts, checked.tenants, checked.machines
            ),
        ),
        Ok(Err(OpenError::Missing(_))) => report.ok("journal", "no journal yet"),
        Ok(Err(error)) => {
            let has_lost = matches!(
                error,
                OpenError::Short { .. } | OpenError::ReachUnknown { .. } | OpenError::AuditLost { .. }
            );
            let is_damaged_log = matches!(error, OpenError::AuditDamaged { .. });
            let why = if is_damaged_log {
                "entries of the audit log cannot be read; the server starts"
            } else {
                "the server does not start"
            };
            let remedy = if is_damaged_log {
                format!("keep a copy: cp -a {shown} {shown}.damaged")
            } else if has_lost {
                format!("restore the file, or: forewarn store accept-loss {shown}")
            } else {
                format!("cp -a {shown} {shown}.damaged, then: forewarn store import BACKUP DIRECTORY")
            };
            let error = anyhow::Error::from(error);
            let text = format!("{error:#}").replace(&copy.display().to_string(), &shown.to_string());
            let what = text.split("\n  hint: ").next().unwrap_or_default().to_owned();
            report.finding("journal", what, why, remedy);
        }
    }
}
