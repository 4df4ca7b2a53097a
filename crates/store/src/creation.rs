//! Creates a journal that holds a state.

use forewarn_control::{ClusterId, ControlState, Record};
use forewarn_lifecycle::MaintenanceId;
use rusqlite::Transaction;

use crate::codec::to_bytes;
use crate::database::{self, Heading, write_heading, write_record};
use crate::error::OpenError;
use crate::files::Directory;
use crate::fold::Folding;

/// Writes records that name announcements that no VM has read.
pub(crate) fn write_unread(
    transaction: &Transaction<'_>,
    heading: &mut Heading,
    unread: &[(ClusterId, MaintenanceId)],
) -> rusqlite::Result<()> {
    for record in Record::unread(heading.clock, unread) {
        heading.last += 1;
        write_record(transaction, heading.last, &to_bytes(&record))?;
    }
    Ok(())
}

/// Creates a journal that holds a state, and announcements that no VM has read. It appears whole or not at all.
pub(crate) fn create(
    directory: &Directory,
    mut heading: Heading,
    state: ControlState,
    unread: &[(ClusterId, MaintenanceId)],
) -> Result<(), OpenError> {
    let new = directory.new_journal()?;
    let connection = database::create(&new)?;
    let write = |heading: &mut Heading| {
        let transaction = connection.unchecked_transaction()?;
        Folding::begin(state, heading.generation + 1, heading.last).finish(&transaction, heading)?;
        write_unread(&transaction, heading, unread)?;
        write_heading(&transaction, heading)?;
        transaction.commit()
    };
    write(&mut heading).map_err(|source| OpenError::database(&new, source))?;
    database::complete(connection, &new)?;
    directory.publish(&new)
}
