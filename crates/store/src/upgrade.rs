//! Upgrading a journal of an older format when it is opened.
//!
//! The state is read in the older format, and written into a new journal in the present one. The audit log is copied
//! byte for byte into an audit file, so that its entries still verify; the log of each stream continues it. The old
//! journal stays beside the new one as `journal.format-N.db`.
//!
//! ```text
//!   journal.db (format 1) ──read──▶ audit log ──▶ audit.db
//!        │                 ──read──▶ state ──▶ journal.new (format 2)
//!        │ second name: journal.format-1.db        │ rename
//!        └──────────── replaced by ◀───────────────┘
//! ```
//!
//! A crash at any moment leaves either the old or the new journal under `journal.db`, complete. After a crash before
//! the rename the upgrade starts again, and replaces the audit file.

use rusqlite::Connection;
use rusqlite::types::Value;

use crate::audit_file::create_audit;
use crate::audit_log::AuditView;
use crate::creation::{add_streams, write_state};
use crate::database::{self, CheckDepth, FORMAT, FileKind, SyncMode};
use crate::error::OpenError;
use crate::files::{Directory, read_header, remove_if_there};
use crate::heading::{Headings, StreamHeading};
use crate::reach::Reach;
use crate::recover::{OpenedJournal, Recovered, open_and_recover};
use crate::stream_key::StreamKey;

/// Tables of the audit log, as the views of [`crate::old_journal`] show them.
const AUDIT_TABLES: [(&str, &str); 3] = [
    (
        "SELECT position, stream, number, at, content FROM trail",
        "INSERT INTO trail (position, stream, number, at, content) VALUES (?1, ?2, ?3, ?4, ?5)",
    ),
    ("SELECT subject, position FROM subject", "INSERT INTO subject (subject, position) VALUES (?1, ?2)"),
    ("SELECT hour, first, last FROM hour", "INSERT INTO hour (hour, first, last) VALUES (?1, ?2, ?3)"),
];

/// Upgrades the journal of a directory if it has an older format. A journal that ends before one of the reaches is
/// refused. Returns the result of `inspect` about the old journal.
pub(crate) fn upgrade_if_old<T>(
    directory: &Directory,
    due: &[Reach],
    inspect: impl FnOnce(&AuditView<'_>, &Headings) -> T,
) -> Result<Option<T>, OpenError> {
    let journal = directory.journal();
    let header = read_header(&journal)?.filter(|header| header.version < FORMAT);
    let Some(header) = header else { return Ok(None) };
    let opened = open_and_recover(directory, (SyncMode::EachCommit, CheckDepth::Thorough), due)?;
    let OpenedJournal { connection: old, headings, recovered, pending, .. } = opened;
    let inspected = inspect(&AuditView::new(&old, Some(&old), &pending), &headings);
    let new = directory.new_journal()?;
    let filed = create_audit(directory, headings.journal.created, |audit| {
        AUDIT_TABLES.iter().try_for_each(|(from, to)| copy_table(&old, audit, from, to))
    });
    let created = filed.and_then(|()| {
        let connection = database::create(&new, FileKind::Journal)?;
        let written = write(&connection, &headings, &recovered);
        written.map_err(|source| OpenError::database(&new, source))?;
        database::complete(connection, &new)
    });
    if let Err(error) = created {
        // It may have filled the disk. The old journal is unchanged.
        drop(remove_if_there(&new));
        drop(directory.new_audit());
        return Err(error);
    }
    old.close().map_err(|(_, source)| OpenError::database(&journal, source))?;
    directory.keep_old(header.version)?;
    directory.publish(&new)?;
    Ok(Some(inspected))
}

/// Writes a journal with the same state, in one transaction.
fn write(new: &Connection, former: &Headings, recovered: &Recovered) -> rusqlite::Result<()> {
    let Recovered { state, unread, .. } = recovered;
    let transaction = new.unchecked_transaction()?;
    let mut headings = Headings::new(former.journal.clone());
    if let Some(common) = former.get(StreamKey::COMMON).filter(|common| common.audit_chain.number > 0) {
        let (audit_chain, swept) = (common.audit_chain, common.swept);
        let empty = StreamHeading::new(common.clock, common.begin);
        headings.insert(StreamKey::COMMON, StreamHeading { audit_chain, swept, ..empty });
    }
    add_streams(&mut headings, state, former.journal.audit_end);
    write_state(&transaction, &mut headings, state, unread)?;
    transaction.commit()
}

fn copy_table(old: &Connection, new: &Connection, from: &str, to: &str) -> rusqlite::Result<()> {
    let (mut select, mut insert) = (old.prepare(from)?, new.prepare(to)?);
    let columns = insert.parameter_count();
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        for column in 0..columns {
            insert.raw_bind_parameter(column + 1, row.get::<_, Value>(column)?)?;
        }
        insert.raw_execute()?;
    }
    Ok(())
}
