//! Accepts a loss: an operator continues with a journal that ends before acknowledged commits.
//!
//! VMs may have read documents, and drivers may have performed actions, that the journal no longer knows. So the
//! journal continues as after an import: incarnations take a step, visible events get new ids, later ids and action
//! names use another seed, notice counts from the moment at which VMs can read it, and the brake is on. Unlike after an
//! import, the audit log continues, and its next entry records the accepted loss.

use std::path::Path;

use forewarn_control::{AuditEntry, Chain, ControlState, INCARNATION_STEP, NewAuditEntry};
use forewarn_types::Moment;
use rusqlite::Connection;

use crate::audit_log::write_entry;
use crate::creation::write_unread;
use crate::database::{CheckDepth, Heading, LogAfterCheckpoint, SyncMode, checkpoint, write_heading};
use crate::error::OpenError;
use crate::files::Directory;
use crate::fold::Folding;
use crate::options::Options;
use crate::reach::{self, Reach, ReachFile};
use crate::recover::{Recovered, open_and_recover};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedLoss {
    /// The end of the journal as it was found.
    pub found: Reach,
    /// The end that it should have had; `None` if that is unknown.
    pub due: Option<Reach>,
    /// Description of the difference.
    pub what: String,
}

/// Lets a journal that has lost commits be opened again. The seed of the options becomes its new seed.
///
/// # Errors
/// Fails if the journal is complete, in use, missing or damaged, or cannot be written.
pub fn accept_loss(directory: &Path, options: &Options) -> Result<AcceptedLoss, OpenError> {
    let owned = Directory::with_journal(directory)?;
    let journal = owned.journal();
    let recorded = match reach::read(&owned) {
        Ok(Some(recorded)) => Ok(recorded.reach),
        Ok(None) => return Err(OpenError::Complete(directory.to_owned())),
        Err(OpenError::ReachUnknown { what, .. }) => Err(what),
        Err(error) => return Err(error),
    };
    let (connection, mut heading, recovered) =
        open_and_recover(&owned, (SyncMode::EachCommit, CheckDepth::Quick), &[])?;
    let (due, what) = match recorded {
        Ok(due) => (Some(due), due.shortfall(&connection, &heading)),
        Err(what) => (None, Some(format!("its reach is unknown: {what}"))),
    };
    let Some(what) = what else { return Err(OpenError::Complete(directory.to_owned())) };
    let accepted = AcceptedLoss { found: Reach::of(&heading), due, what };
    let Recovered { state, .. } = recovered;
    let state = state.renewed(options.seed);
    let state = state.map_err(|error| OpenError::damaged(&journal, error.to_string()))?;
    let mut chain = heading.audit_chain;
    let entry = chain.seal(audit_entry(&accepted, options));
    let written = write(&connection, &mut heading, state, (chain, &entry));
    written.map_err(|source| OpenError::database(&journal, source))?;
    ReachFile::create(&owned, &Reach::of(&heading))?;
    connection.close().map_err(|(_, source)| OpenError::database(&journal, source))?;
    Ok(accepted)
}

/// Writes the renewed state and the entry in one commit.
fn write(
    connection: &Connection,
    heading: &mut Heading,
    state: ControlState,
    (chain, entry): (Chain, &AuditEntry),
) -> rusqlite::Result<()> {
    let transaction = connection.unchecked_transaction()?;
    let unread = state.announced();
    Folding::begin(state, heading.generation + 1, heading.last).finish(&transaction, heading)?;
    write_unread(&transaction, heading, &unread)?;
    write_entry(&transaction, entry, &entry.to_line())?;
    heading.audit_chain = chain;
    write_heading(&transaction, heading)?;
    transaction.commit()?;
    checkpoint(connection, LogAfterCheckpoint::Emptied)
}

fn audit_entry(accepted: &AcceptedLoss, options: &Options) -> NewAuditEntry {
    NewAuditEntry {
        at: Moment(options.now.wall),
        by: "shell".to_owned(),
        kind: "loss_accepted".to_owned(),
        text: format!(
            "the journal continues although commits are missing: {}; incarnations grew by {INCARNATION_STEP}, events have new \
             ids, and the brake is on",
            accepted.what
        ),
        ..NewAuditEntry::default()
    }
}
