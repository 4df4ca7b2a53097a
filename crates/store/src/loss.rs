//! Accepts a loss: an operator continues with a journal that ends before acknowledged commits.
//!
//! VMs may have read documents, and drivers may have performed actions, that the journal no longer knows. So the
//! journal continues as after an import: incarnations take a step, visible events get new ids, later ids and action
//! names use another seed, notice counts from the moment at which VMs can read it, and the brake is on. Unlike after an
//! import, audit logs continue, and the next entry of the shared stream records the accepted loss.

use std::path::Path;

use forewarn_control::{Chain, ControlState, INCARNATION_STEP, NewAuditEntry, Stream};
use forewarn_types::Moment;
use rusqlite::Connection;

use crate::audit_log::write_entry;
use crate::creation::write_state;
use crate::database::{CheckDepth, LogAfterCheckpoint, SyncMode, checkpoint};
use crate::error::OpenError;
use crate::files::Directory;
use crate::heading::Headings;
use crate::options::Options;
use crate::reach::{self, Reach, ReachFile};
use crate::recover::{Recovered, open_and_recover, remove_leftovers};
use crate::stream_key::StreamKey;
use crate::upgrade;

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
    let shortfall = |connection: &Connection, headings: &Headings| {
        recorded.as_ref().ok().and_then(|due| due.shortfall(connection, headings))
    };
    // An upgrade adds records.
    let before_upgrade = upgrade::upgrade_if_old(&owned, &[], shortfall)?;
    let (connection, mut headings, recovered) =
        open_and_recover(&owned, (SyncMode::EachCommit, CheckDepth::Thorough), &[])?;
    let (due, what) = match &recorded {
        Ok(due) => (Some(*due), before_upgrade.unwrap_or_else(|| shortfall(&connection, &headings))),
        Err(what) => (None, Some(format!("its reach is unknown: {what}"))),
    };
    let Some(what) = what else { return Err(OpenError::Complete(directory.to_owned())) };
    let accepted = AcceptedLoss { found: Reach::of(&headings.journal), due, what };
    let Recovered { state, .. } = recovered;
    let state = state.renewed(options.seed);
    let state = state.map_err(|error| OpenError::damaged(&journal, error.to_string()))?;
    let written = write(&connection, &mut headings, &state, audit_entry(&accepted, options));
    written.map_err(|source| OpenError::database(&journal, source))?;
    ReachFile::create(&owned, &Reach::of(&headings.journal))?;
    connection.close().map_err(|(_, source)| OpenError::database(&journal, source))?;
    Ok(accepted)
}

/// Writes the renewed state and the entry in one commit.
fn write(
    connection: &Connection,
    headings: &mut Headings,
    state: &ControlState,
    new: NewAuditEntry,
) -> rusqlite::Result<()> {
    let transaction = connection.unchecked_transaction()?;
    let shared = headings.get_mut(StreamKey::SHARED);
    let entry = shared.audit_chain.seal(new);
    let chain = shared.audit_chain;
    let position = headings.journal.audit_end.number + 1;
    headings.journal.audit_end = Chain { number: position, ..chain };
    write_entry(&transaction, (StreamKey::SHARED, position), &entry, &entry.to_line())?;
    remove_leftovers(&transaction, headings, state)?;
    write_state(&transaction, headings, state, &state.announced())?;
    transaction.commit()?;
    checkpoint(connection, LogAfterCheckpoint::Emptied)
}

fn audit_entry(accepted: &AcceptedLoss, options: &Options) -> NewAuditEntry {
    NewAuditEntry {
        at: Moment(options.now.wall),
        stream: Some(Stream::Shared),
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
