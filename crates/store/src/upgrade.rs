//! Upgrading a journal of an older format when it is opened.
//!
//! The state is read in the older format, and written into a new journal in the present one. The audit log is copied
//! byte for byte, so that its entries still verify. The old journal stays beside the new one as `journal.format-N.db`.
//!
//! ```text
//!   journal.db (format 0) ──read──▶ state ──▶ journal.new (format 1)
//!        │ second name: journal.format-0.db        │ rename
//!        └──────────── replaced by ◀───────────────┘
//! ```
//!
//! A crash at any moment leaves either the old or the new journal under `journal.db`, complete. After a crash before
//! the rename the upgrade starts again.

use rusqlite::Connection;
use rusqlite::types::Value;

use crate::creation::write_unread;
use crate::database::{self, CheckDepth, FORMAT, Heading, SyncMode, write_heading};
use crate::error::OpenError;
use crate::files::{Directory, read_header};
use crate::fold::Folding;
use crate::reach::Reach;
use crate::recover::{Recovered, open_and_recover};

/// Tables of the audit log. Their content is the same in every format.
const AUDIT_TABLES: [(&str, &str); 3] = [
    ("SELECT number, at, content FROM trail", "INSERT INTO trail VALUES (?1, ?2, ?3)"),
    ("SELECT subject, number FROM subject", "INSERT INTO subject VALUES (?1, ?2)"),
    ("SELECT hour, first, last FROM hour", "INSERT INTO hour VALUES (?1, ?2, ?3)"),
];

/// Upgrades the journal of a directory if it has an older format. A journal that ends before one of the reaches is
/// refused.
pub(crate) fn upgrade_if_old(directory: &Directory, due: &[Reach]) -> Result<(), OpenError> {
    let journal = directory.journal();
    let Some(header) = read_header(&journal)?.filter(|header| header.version < FORMAT) else { return Ok(()) };
    let (old, heading, recovered) =
        open_and_recover(directory, (SyncMode::EachCommit, CheckDepth::Thorough), due)?;
    let new = directory.new_journal()?;
    let connection = database::create(&new)?;
    write(&old, &connection, heading, recovered).map_err(|source| OpenError::database(&new, source))?;
    database::complete(connection, &new)?;
    old.close().map_err(|(_, source)| OpenError::database(&journal, source))?;
    directory.keep_old(header.version)?;
    directory.publish(&new)
}

/// Writes a journal with the same content, in one transaction.
fn write(
    old: &Connection,
    new: &Connection,
    mut heading: Heading,
    recovered: Recovered,
) -> rusqlite::Result<()> {
    let Recovered { state, unread, .. } = recovered;
    let transaction = new.unchecked_transaction()?;
    AUDIT_TABLES.iter().try_for_each(|(from, to)| copy_table(old, &transaction, from, to))?;
    Folding::begin(state, heading.generation + 1, heading.last).finish(&transaction, &mut heading)?;
    write_unread(&transaction, &mut heading, &unread)?;
    write_heading(&transaction, &heading)?;
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
