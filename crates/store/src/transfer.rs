//! Looking through a journal that nobody uses, taking its state elsewhere, and bringing a state back.
//!
//! A state that is brought back is of some time ago, and machines may have seen what came after. So its past is not
//! continued as if nothing had happened: incarnations take a step that no past can have reached, events that are still
//! visible are announced under new ids, ids and action names to come are made of another secret (work that is known keeps the
//! names of its actions), and the brake is on until somebody who has looked lets it go. The trail stays behind with the journal it tells of; a new one begins.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use forewarn_control::Chain;
use forewarn_lifecycle::{Cluster, Now, Seed, Timestamp};
use rusqlite::Connection;

use crate::codec::seal::{self, Place};
use crate::codec::{RECORD_BYTES_MAX, stored_struct};
use crate::creation::create;
use crate::database::{self, Heading, Look, Syncs};
use crate::error::OpenError;
use crate::files::{Directory, read_header};
use crate::fold::{CHUNK_BYTES, next_chunk};
use crate::options::Options;
use crate::reach;
use crate::recover::{Recovered, RowReader, open_and_recover, recover};
use crate::trail::check_trail;
use forewarn_control::ControlState;

/// The first line of an export; the number is that of its format.
const FIRST_LINE: &[u8] = b"forewarn export 1\n";

/// The first line of an export of format 0.
const OLD_FIRST_LINE: &[u8] = b"forewarn export 0\n";

/// What was found in a journal that is in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// When it was made.
    pub created: Timestamp,
    /// The highest that each clock has shown.
    pub clock: Now,
    /// Records in its life.
    pub records: u64,
    /// Records that an opening replays.
    pub replayed: u64,
    /// The number of the newest entry of the trail.
    pub entries: u64,
    /// How many of them are kept, and have been verified.
    pub entries_kept: u64,
    /// Hosts, tenants and machines.
    pub hosts: usize,
    /// See `hosts`.
    pub tenants: usize,
    /// See `hosts`.
    pub machines: usize,
}

/// What an export begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Preface {
    identity: Seed,
    created: Timestamp,
    clock: Now,
    rows: u64,
}

stored_struct! { Preface { identity, created, clock, rows } }

/// Looks at every page, every record and every row of a journal that nobody uses, replays it, and verifies its trail.
///
/// # Errors
/// When it is in use, or not in order.
pub fn check(directory: &Path) -> Result<Checked, OpenError> {
    let owned = Directory::with_journal(directory)?;
    let (connection, heading, recovered) = open_complete(&owned)?;
    let entries_kept = check_trail(&connection, &owned.journal(), &heading)?;
    let Recovered { state, created, clock, replayed, .. } = recovered;
    Ok(Checked {
        created,
        clock,
        records: heading.last,
        replayed,
        entries: heading.trail.number,
        entries_kept,
        hosts: count(&state, |cluster| cluster.hosts().count()),
        tenants: count(&state, |cluster| cluster.tenants().count()),
        machines: count(&state, |cluster| cluster.machines().count()),
    })
}

/// Opens a journal that no server uses, and refuses one that has lost commits.
fn open_complete(directory: &Directory) -> Result<(Connection, Heading, Recovered), OpenError> {
    let recorded = reach::read(directory)?;
    let due: Vec<_> = recorded.map(|recorded| recorded.reach).into_iter().collect();
    open_and_recover(directory, (Syncs::EachCommit, Look::Thorough), &due)
}

/// How many there are in all clusters.
fn count(state: &ControlState, of: impl Fn(&Cluster) -> usize) -> usize {
    state.clusters().map(|(_, cluster)| of(cluster.rules())).sum()
}

/// Writes the state of a journal that nobody uses, for [`import`].
///
/// # Errors
/// When it is in use or not in order, or the export cannot be written.
pub fn export(directory: &Path, out: &mut impl Write) -> Result<(), OpenError> {
    let owned = Directory::with_journal(directory)?;
    let (_, _, recovered) = open_complete(&owned)?;
    write_export(recovered, out).map_err(OpenError::io("write the export of", directory))
}

/// Makes a journal in an empty directory from an export or a copy.
///
/// Event ids are made of the secret of the options from now on, and the brake is on.
///
/// # Errors
/// When the source is neither or is damaged, or there already is a journal.
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
    let state = state.map_err(|problem| OpenError::damaged(source, problem.to_string()))?;
    let heading = Heading { clock, ..Heading::new(identity, options.now) };
    let unread = state.announced();
    create(&directory, heading, state, &unread)
}

fn write_export(recovered: Recovered, out: &mut impl Write) -> io::Result<()> {
    let Recovered { state, identity, created, clock, .. } = recovered;
    let rows = state.clone().into_rows().count() as u64;
    out.write_all(FIRST_LINE)?;
    let preface = Preface { identity, created, clock, rows };
    write_frame(out, &seal::seal(Place::Head, &preface))?;
    let (mut remaining, mut written, mut number) = (state.into_rows(), 0, 0);
    while written < rows {
        let content = next_chunk(&mut remaining, &mut written);
        write_frame(out, &seal::seal_bytes(Place::Chunk { generation: 0, number }, &content))?;
        number += 1;
    }
    out.flush()
}

fn write_frame(out: &mut impl Write, sealed: &[u8]) -> io::Result<()> {
    let length = u32::try_from(sealed.len()).map_err(io::Error::other)?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(sealed)
}

fn read_export(source: &Path) -> Result<Recovered, OpenError> {
    let file = File::open(source).map_err(OpenError::io("open", source))?;
    let mut input = BufReader::new(file);
    let mut first = [0; FIRST_LINE.len()];
    if input.read_exact(&mut first).is_err() || ![FIRST_LINE, OLD_FIRST_LINE].contains(&first.as_slice()) {
        return Err(OpenError::Foreign(source.to_owned()));
    }
    let wrong = |problem: &dyn std::fmt::Display| OpenError::damaged(source, problem.to_string());
    let preface = read_frame(&mut input, source)?;
    let Preface { identity, created, clock, rows } =
        seal::open(Place::Head, &preface).map_err(|problem| wrong(&problem))?;
    let mut reader = RowReader::default();
    let mut number = 0;
    while reader.count() < rows {
        let sealed = read_frame(&mut input, source)?;
        let place = Place::Chunk { generation: 0, number };
        let content = seal::open_any(place, &sealed).map_err(|problem| wrong(&problem))?;
        reader.add(&content, wrong)?;
        number += 1;
    }
    if reader.count() != rows || input.read(&mut first).map_err(OpenError::io("read", source))? != 0 {
        return Err(wrong(&"something follows its end"));
    }
    let state = reader.finish().map_err(|problem| wrong(&problem))?;
    let (trail, unread) = (Chain::default(), Vec::new());
    Ok(Recovered { state, identity, created, clock, replayed: 0, trail, unread })
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
