//! The data directory: whether a server could use it, and whether what is in it is whole.

use std::fs::{self, File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use forewarn_store::OpenError;
use rustix::fs::{Access, access, statvfs};

use super::processes::locker;
use super::report::{Finding, Report};

/// The part of a disk that has to be free, and what is enough whatever the part.
const FREE_PARTS: u64 = 20;
const FREE_BYTES_ENOUGH: u64 = 1024 * 1024 * 1024;

/// Bytes of a journal that is copied for a look.
const JOURNAL_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// What only the owner may do.
const PRIVATE: u32 = 0o700;

/// File systems that forget, or whose locks and syncs are not to be relied upon, by the names that mounts have.
const FORGETFUL: [&str; 2] = ["tmpfs", "ramfs"];
const REMOTE: [&str; 8] = ["nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "fuse.sshfs", "fuse.glusterfs"];

pub(super) fn look(report: &mut Report, directory: &Path) {
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
        return report
            .unknown("journal", "a server uses it: `forewarn backup FILE` copies it, which is a check, too");
    }
    whole(report, directory);
}

fn finding(what: String, why: &'static str, remedy: String) -> Finding {
    Finding { what, why, remedy }
}

fn missing(directory: &Path, error: &std::io::Error) -> Result<String, Finding> {
    let shown = directory.display();
    let parent = directory.parent().unwrap_or(Path::new("/"));
    if error.kind() == ErrorKind::NotFound && access(parent, Access::WRITE_OK).is_ok() {
        return Ok(format!("{shown} is not there yet, and can be made"));
    }
    let remedy = format!("install -d -m 0700 -o forewarn -g forewarn {shown}");
    Err(finding(format!("cannot look at {shown}: {error}"), "the server does not start", remedy))
}

fn usable(directory: &Path, found: &Metadata) -> Result<String, Finding> {
    let shown = directory.display();
    if !found.is_dir() {
        let remedy = format!("choose another data_dir, or: mv {shown} {shown}.old");
        return Err(finding(format!("not a directory: {shown}"), "the server does not start", remedy));
    }
    if access(directory, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        let what = format!("this user cannot write to {shown}, which belongs to user {}", found.uid());
        let why = "nothing can be kept, and the server does not start";
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
        let what = format!("others than its owner may look into {shown}: mode {mode:o}");
        return Err(finding(what, "secrets are kept there", format!("chmod 0700 {shown}")));
    }
    Ok(format!("{shown} can be used"))
}

/// The kind of the file system that a directory is on, from the list of mounts: the longest mount point counts.
fn kind(directory: &Path) -> Option<String> {
    let directory = directory.canonicalize().ok()?;
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let lines = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        Some((PathBuf::from(fields.next()?.replace("\\040", " ")), fields.next()?.to_owned()))
    });
    let on = lines.filter(|(point, _)| directory.starts_with(point));
    // Of several on one place, the last one is seen.
    on.max_by_key(|(point, _)| point.components().count()).map(|(_, kind)| kind)
}

fn suitable(directory: &Path) -> Result<String, Finding> {
    let shown = directory.display();
    let Some(kind) = kind(directory) else { return Ok("this is not told here".to_owned()) };
    if FORGETFUL.contains(&kind.as_str()) {
        let what = format!("{shown} is in memory ({kind})");
        let why = "what was answered does not survive a restart of the computer";
        return Err(finding(what, why, "data_dir = \"/var/lib/forewarn\"".to_owned()));
    }
    if REMOTE.contains(&kind.as_str()) {
        let what = format!("{shown} is on another computer ({kind})");
        let why = "its locks and its syncs cannot be relied upon";
        return Err(finding(
            what,
            why,
            "data_dir = \"/var/lib/forewarn\", on a disk of this computer".to_owned(),
        ));
    }
    Ok(format!("{shown} is on {kind}"))
}

fn roomy(directory: &Path) -> Result<String, Finding> {
    let Ok(disk) = statvfs(directory) else { return Ok("this is not told here".to_owned()) };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let megabytes = free / 1024 / 1024;
    if free < FREE_BYTES_ENOUGH && disk.f_bavail < disk.f_blocks / FREE_PARTS {
        let what = format!("the disk of {} is nearly full: {megabytes} MiB are free", directory.display());
        let why = "when it is full, nothing new is decided";
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

/// Reads a copy of the journal: a look must not change what it looks at, nor whom it belongs to.
fn whole(report: &mut Report, directory: &Path) {
    let files = ["journal.db", "journal.db-wal", "journal.reach", "lock"].map(|name| directory.join(name));
    let bytes: u64 = files.iter().filter_map(|file| fs::metadata(file).ok()).map(|found| found.len()).sum();
    let shown = directory.display();
    if bytes > JOURNAL_BYTES_MAX {
        return report
            .unknown("journal", format!("too large for a quick look: `forewarn store check {shown}`"));
    }
    let place = std::env::temp_dir().join(format!("forewarn-doctor-{}", std::process::id()));
    let copied = fs::DirBuilder::new().mode(PRIVATE).create(&place).and_then(|()| {
        let there = files.iter().filter(|file| file.exists());
        there
            .filter_map(|file| Some((file, file.file_name()?)))
            .try_for_each(|(file, name)| fs::copy(file, place.join(name)).map(drop))
    });
    let checked = copied.map(|()| forewarn_store::check(&place));
    // If it stays, it is a private directory among temporary files.
    drop(fs::remove_dir_all(&place));
    match checked {
        Err(error) => report.unknown("journal", format!("it cannot be copied for a look: {error}")),
        Ok(Ok(checked)) => report.well(
            "journal",
            format!(
                "whole: {} hosts, {} tenants, {} machines",
                checked.hosts, checked.tenants, checked.machines
            ),
        ),
        Ok(Err(OpenError::Missing(_))) => report.well("journal", "there is none yet"),
        Ok(Err(problem)) => {
            let has_lost = matches!(problem, OpenError::Short { .. } | OpenError::ReachUnknown { .. });
            let remedy = if has_lost {
                format!("put the file back, or: forewarn store accept-loss {shown}")
            } else {
                format!("cp -a {shown} {shown}.damaged, then: forewarn store import BACKUP DIRECTORY")
            };
            let problem = anyhow::Error::from(problem);
            let text = format!("{problem:#}").replace(&place.display().to_string(), &shown.to_string());
            let what = text.split("\n  hint: ").next().unwrap_or_default().to_owned();
            report.finding("journal", what, "the server does not start", remedy);
        }
    }
}
