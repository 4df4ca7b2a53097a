//! Checks, exports and imports journals that are not in use.
//!
//! An imported state is old, and machines may have seen later events. So it does not continue unchanged: incarnations
//! take a step that the lost past cannot have reached, visible events are announced again under new ids, later ids and
//! action names use another seed (known work keeps its action names), and the brake is on until an operator releases
//! it. The audit logs stay with their old journal; new ones begin.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use forewarn_lifecycle::{Cluster, Now, Seed, Timestamp};
use rusqlite::Connection;

use crate::audit_file::AuditFile;
use crate::audit_log::check_audit_log;
use crate::audit_store::AuditStore;
use crate::codec::seal::{self, SealLocation};
use crate::codec::{RECORD_BYTES_MAX, stored_struct};
use crate::creation::create;
use crate::database::{self, CheckDepth, SyncMode, check_structure};
use crate::error::OpenError;
use crate::files::{Directory, read_header};
use crate::fold::{CHUNK_BYTES, next_chunk};
use crate::heading::{Headings, JournalHeading};
use crate::old_journal::{RowReader, is_old};
use crate::options::Options;
use crate::pending::PendingEntries;
use crate::reach;
use crate::recover::{OpenedJournal, Recovered, open_and_recover, recover};
use forewarn_control::ControlState;

/// First line of an export, with its format.
const FIRST_LINE: &[u8] = b"forewarn export 2\n";

/// First lines of exports of older formats.
const OLD_FIRST_LINES: [&[u8]; 2] = [b"forewarn export 0\n", b"forewarn export 1\n"];

/// Summary of a healthy journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckReport {
    pub created: Timestamp,
    /// Highest value of each clock.
    pub clock: Now,
    /// Records of all streams in its life.
    pub records: u64,
    /// Records that an opening replays.
    pub replayed: u64,
    /// Position of the newest audit entry.
    pub entries: u64,
    /// Number of audit entries that are stored and verified.
    pub entries_kept: u64,
    /// Hosts in all clusters.
    pub hosts: usize,
    pub tenants: usize,
    pub machines: usize,
}

/// Contents of a copy of a running journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyReport {
    /// Highest value of each clock.
    pub clock: Now,
    /// Records of all streams in its life.
    pub records: u64,
    /// Position of the newest audit entry.
    pub position: u64,
    pub clusters: usize,
    /// Hosts in all clusters.
    pub hosts: usize,
    pub tenants: usize,
    pub machines: usize,
}

/// Header of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ExportHeader {
    identity: Seed,
    created: Timestamp,
    clock: Now,
    rows: u64,
}

stored_struct! { ExportHeader { identity, created, clock, rows } }

/// Checks every page, record and row of a journal that is not in use, replays it, and verifies its audit log.
///
/// # Errors
/// Fails if it is in use or damaged.
pub fn check(directory: &Path) -> Result<CheckReport, OpenError> {
    let owned = Directory::with_journal(directory)?;
    let opened = open_complete(&owned)?;
    let OpenedJournal { connection, headings, recovered, pending, audit } = opened;
    let entries_kept =
        if is_old(&connection).map_err(|source| OpenError::database(&owned.journal(), source))? {
            check_audit_log(&connection, &owned.journal(), &headings)?
        } else {
            check_audit_file(&owned, (audit, pending), (&connection, &headings))?
        };
    let Recovered { state, created, clock, replayed, .. } = recovered;
    Ok(CheckReport {
        created,
        clock,
        records: headings.journal.records,
        replayed,
        entries: headings.journal.audit_end.number,
        entries_kept,
        hosts: count(&state, |cluster| cluster.hosts().count()),
        tenants: count(&state, |cluster| cluster.tenants().count()),
        machines: count(&state, |cluster| cluster.machines().count()),
    })
}

/// Checks every page, record and row of a copy of a running journal, and replays it, as [`import`] does.
///
/// # Errors
/// Fails if the file is no copy, or is damaged.
pub fn check_copy(file: &Path) -> Result<CopyReport, OpenError> {
    let (headings, Recovered { state, clock, .. }) = recover(&database::open_copy(file)?, file)?;
    Ok(CopyReport {
        clock,
        records: headings.journal.records,
        position: headings.journal.audit_end.number,
        clusters: state.clusters().count(),
        hosts: count(&state, |cluster| cluster.hosts().count()),
        tenants: count(&state, |cluster| cluster.tenants().count()),
        machines: count(&state, |cluster| cluster.machines().count()),
    })
}

/// Checks the audit file of a journal that no server uses, and files the entries that wait for it, as the next server
/// would do. Returns the number of entries.
fn check_audit_file(
    directory: &Directory,
    (file, pending): (AuditFile, PendingEntries),
    (journal, headings): (&Connection, &Headings),
) -> Result<u64, OpenError> {
    let path = directory.audit();
    let damaged = |what: &str| OpenError::AuditDamaged { path: path.clone(), what: what.to_owned() };
    let mut audit = AuditStore::open(directory, (file, pending), (journal, headings))?;
    let structure = audit.file().map_err(|what| damaged(&what.to_string()))?;
    check_structure(structure, &path, CheckDepth::Thorough).map_err(of_audit_file)?;
    audit.damage().map_or(Ok(()), |what| Err(damaged(what)))?;
    let swept = headings.journal.audit_swept.number;
    audit
        .finish(journal, (&BTreeMap::new(), swept), || Ok(()))
        .map_err(|error| damaged(&error.to_string()))?;
    audit.damage().map_or(Ok(()), |what| Err(damaged(what)))?;
    let file = audit.file().map_err(|what| damaged(&what.to_string()))?;
    check_audit_log(file, &path, headings).map_err(of_audit_file)
}

/// The same error about the audit file.
fn of_audit_file(error: OpenError) -> OpenError {
    if let OpenError::Damaged { path, what } = error {
        return OpenError::AuditDamaged { path, what };
    }
    error
}

/// Opens a journal that no server uses, and refuses one that has lost commits.
fn open_complete(directory: &Directory) -> Result<OpenedJournal, OpenError> {
    let recorded = reach::read(directory)?;
    let due: Vec<_> = recorded.map(|recorded| recorded.reach).into_iter().collect();
    open_and_recover(directory, (SyncMode::EachCommit, CheckDepth::Thorough), &due)
}

/// Sum over all clusters.
fn count(state: &ControlState, of: impl Fn(&Cluster) -> usize) -> usize {
    state.clusters().map(|(_, cluster)| of(cluster.rules())).sum()
}

/// Exports the state of a journal that is not in use, for [`import`].
///
/// # Errors
/// Fails if it is in use or damaged, or the export cannot be written.
pub fn export(directory: &Path, out: &mut impl Write) -> Result<(), OpenError> {
    let owned = Directory::with_journal(directory)?;
    write_export(open_complete(&owned)?.recovered, out)
        .map_err(OpenError::io("write the export of", directory))
}

/// Creates a journal in an empty directory from an export or a copy.
///
/// Later event ids use the seed of the options, and the brake is on.
///
/// # Errors
/// Fails if the source is neither or is damaged, or a journal already exists.
pub fn import(source: &Path, directory: &Path, options: &Options) -> Result<(), OpenError> {
    let directory = Directory::own(directory)?;
    if directory.has_journal()? {
        return Err(OpenError::Exists(directory.journal()));
    }
    let recovered = if read_header(source)?.is_some() {
        recover(&database::open_copy(source)?, source)?.1
    } else {
        read_export(source)?
    };
    let Recovered { state, identity, clock, .. } = recovered;
    let state = state.with_new_audit_log().renewed(options.seed);
    let state = state.map_err(|error| OpenError::damaged(source, error.to_string()))?;
    let mut heading = JournalHeading::new(identity, options.now);
    heading.clock = clock;
    create(&directory, heading, &state, &state.announced())
}

pub(crate) fn write_export(recovered: Recovered, out: &mut impl Write) -> io::Result<()> {
    let Recovered { state, identity, created, clock, .. } = recovered;
    let rows = state.clone().into_rows().count() as u64;
    out.write_all(FIRST_LINE)?;
    let preface = ExportHeader { identity, created, clock, rows };
    write_frame(out, &seal::seal(SealLocation::Head, &preface))?;
    let (mut remaining, mut written, mut number) = (state.into_rows(), 0, 0);
    while written < rows {
        let content = next_chunk(&mut remaining, &mut written);
        write_frame(out, &seal::seal_bytes(SealLocation::Chunk { generation: 0, number }, &content))?;
        number += 1;
    }
    out.flush()
}

fn write_frame(out: &mut impl Write, sealed: &[u8]) -> io::Result<()> {
    let length = u32::try_from(sealed.len()).map_err(io::Error::other)?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(sealed)
}

fn is_first_line(line: &[u8]) -> bool {
    line == FIRST_LINE || OLD_FIRST_LINES.contains(&line)
}

fn read_export(source: &Path) -> Result<Recovered, OpenError> {
    let file = File::open(source).map_err(OpenError::io("open", source))?;
    read_export_from(BufReader::new(file), source)
}

/// Reads an export; the name of its source is for messages.
pub(crate) fn read_export_from(mut input: impl Read, source: &Path) -> Result<Recovered, OpenError> {
    let mut first = [0; FIRST_LINE.len()];
    if input.read_exact(&mut first).is_err() || !is_first_line(&first) {
        return Err(OpenError::Foreign(source.to_owned()));
    }
    let wrong = |error: &dyn std::fmt::Display| OpenError::damaged(source, error.to_string());
    let preface = read_frame(&mut input, source)?;
    let ExportHeader { identity, created, clock, rows } =
        seal::open(SealLocation::Head, &preface).map_err(|error| wrong(&error))?;
    let mut reader = RowReader::default();
    let mut number = 0;
    while reader.count() < rows {
        let sealed = read_frame(&mut input, source)?;
        let place = SealLocation::Chunk { generation: 0, number };
        let content = seal::open_any(place, &sealed).map_err(|error| wrong(&error))?;
        reader.add(&content, wrong)?;
        number += 1;
    }
    if reader.count() != rows || input.read(&mut first).map_err(OpenError::io("read", source))? != 0 {
        return Err(wrong(&"bytes follow its end"));
    }
    let state = reader.finish().map_err(|error| wrong(&error))?;
    // An import begins new audit logs.
    Ok(Recovered {
        state,
        identity,
        created,
        clock,
        replayed: 0,
        audit_ends: BTreeMap::new(),
        record_ends: BTreeMap::new(),
        audit_head: 0,
        unread: Vec::new(),
    })
}

fn read_frame(input: &mut impl Read, source: &Path) -> Result<Vec<u8>, OpenError> {
    let short = |_| OpenError::damaged(source, "it is cut short");
    let mut length = [0; 4];
    input.read_exact(&mut length).map_err(short)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > CHUNK_BYTES + 2 * RECORD_BYTES_MAX {
        return Err(OpenError::damaged(source, format!("a part is too large: {length} bytes")));
    }
    let mut sealed = vec![0; length];
    input.read_exact(&mut sealed).map_err(short)?;
    Ok(sealed)
}
