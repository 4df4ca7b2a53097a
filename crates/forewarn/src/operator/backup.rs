//! `forewarn backup`: a copy of the state of a running server.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use forewarn_store::{CopyReport, check_copy};
use forewarn_types::Moment;
use serde::{Deserialize, Serialize};

use super::sentences::date;
use super::session::Session;
use crate::new_file::create_private;

/// A written backup.
#[derive(Debug, Serialize, Deserialize)]
struct BackupReport {
    file: String,
    bytes: u64,
    /// Position of the newest audit entry in it.
    position: u64,
    /// Records of all streams in the life of the journal.
    records: u64,
    /// The clock of the server.
    clock: Moment,
    clusters: usize,
    hosts: usize,
    tenants: usize,
    machines: usize,
}

/// Writes a copy to a new file, reads it again, and prints its contents. An incomplete or damaged copy is removed.
pub(super) fn run(session: &Session, file: &Path) -> Result<()> {
    let failed = || format!("cannot write the backup: {}", file.display());
    let out = create_private(file, "the backup")?;
    let written = copy(session, out, failed).and_then(|()| report(file));
    if written.is_err() {
        drop(fs::remove_file(file));
    }
    session.present(serde_json::to_value(written?)?, |report| Ok(text(&report)))
}

fn copy(session: &Session, mut out: File, failed: impl Fn() -> String) -> Result<()> {
    session.download("/v1/backup", |piece| out.write_all(piece).with_context(&failed))?;
    out.sync_all().with_context(failed)
}

/// Reads the copy as an import would.
fn report(file: &Path) -> Result<BackupReport> {
    let read = check_copy(file).with_context(|| format!("the backup is not usable: {}", file.display()));
    let CopyReport { clock, records, position, clusters, hosts, tenants, machines } = read?;
    let bytes = fs::metadata(file)?.len();
    let (file, clock) = (file.display().to_string(), Moment(clock.wall));
    Ok(BackupReport { file, bytes, position, records, clock, clusters, hosts, tenants, machines })
}

fn text(report: &BackupReport) -> String {
    let BackupReport { file, bytes, position, records, clock, clusters, hosts, tenants, machines } = report;
    let clusters = counted(*clusters, "cluster");
    let fleet = [counted(*hosts, "host"), counted(*tenants, "tenant"), counted(*machines, "machine")];
    format!(
        "Backup written and checked: {file}, {bytes} bytes.\n\
         It has {clusters} with {}, {records} records, and the audit log up to position {position}; the clock shows {}.\n",
        fleet.join(", "),
        date(*clock),
    )
}

fn counted(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
