//! The state of a server in memory, in the format of an export. Unlike an import, it continues unchanged: ids of events
//! and incarnations stay, because its machines have seen nothing later.

use std::collections::BTreeMap;
use std::path::Path;

use forewarn_control::ControlState;
use forewarn_lifecycle::{Now, Seed};

use crate::error::OpenError;
use crate::recover::Recovered;
use crate::transfer::{read_export_from, write_export};

/// Beginning of the first line of an export of any format.
const FIRST_WORDS: &[u8] = b"forewarn export ";

/// Reason why bytes are not a state that this program can read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SavedStateError {
    #[error("it is not an export of forewarn")]
    Foreign,
    #[error("it has a later format than this program knows")]
    Newer,
    #[error("it is damaged: {0}")]
    Damaged(String),
}

/// The state of all streams and the clock, as an export.
#[must_use]
pub fn export_state(state: ControlState, identity: Seed, clock: Now) -> Vec<u8> {
    let recovered = Recovered {
        state,
        identity,
        created: clock.wall,
        clock,
        replayed: 0,
        audit_ends: BTreeMap::new(),
        record_ends: BTreeMap::new(),
        audit_head: 0,
        unread: Vec::new(),
    };
    let mut bytes = Vec::new();
    // A write to memory does not fail, and a chunk of rows is far below four gigabytes.
    drop(write_export(recovered, &mut bytes));
    bytes
}

/// Reads an export. Its state continues as it was.
///
/// # Errors
/// Fails if the bytes are not an export, are damaged, or have a later format.
pub fn read_state(bytes: &[u8]) -> Result<(ControlState, Seed, Now), SavedStateError> {
    let read = read_export_from(bytes, Path::new("export"));
    let Recovered { state, identity, clock, .. } = read.map_err(|error| match error {
        OpenError::Foreign(_) if bytes.starts_with(FIRST_WORDS) => SavedStateError::Newer,
        OpenError::Foreign(_) => SavedStateError::Foreign,
        OpenError::Damaged { what, .. } => SavedStateError::Damaged(what),
        OpenError::InUse(_)
        | OpenError::Missing(_)
        | OpenError::Gone(_)
        | OpenError::Short { .. }
        | OpenError::AuditLost { .. }
        | OpenError::AuditDamaged { .. }
        | OpenError::ReachUnknown { .. }
        | OpenError::Complete(_)
        | OpenError::Newer { .. }
        | OpenError::Exists(_)
        | OpenError::OfRealm(_)
        | OpenError::Full(_)
        | OpenError::Io { .. }
        | OpenError::Moving(_)
        | OpenError::LossOfCopy(_)
        | OpenError::Database { .. } => SavedStateError::Damaged(error.to_string()),
    })?;
    Ok((state, identity, clock))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_as_it_was_and_anything_else_is_refused() {
        let seed = Seed([4; 16]);
        let (state, now) = (ControlState::new(seed), Now::at_millis(1_767_225_600_000));
        let bytes = export_state(state.clone(), seed, now);
        let (read, identity, clock) = read_state(&bytes).unwrap();
        assert!(read == state && identity == seed && clock == now);
        for length in 0..bytes.len() {
            assert!(read_state(&bytes[..length]).is_err(), "{length}");
        }
        for place in 0..bytes.len() {
            let mut other = bytes.clone();
            other[place] ^= 1;
            assert!(read_state(&other).is_err(), "{place}");
        }
        assert_eq!(read_state(b"something else entirely").err(), Some(SavedStateError::Foreign));
        let later = [b"forewarn export 9\n", &bytes[18..]].concat();
        assert_eq!(read_state(&later).err(), Some(SavedStateError::Newer));
    }
}
