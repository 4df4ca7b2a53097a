//! Verification of the audit log beside commits: all of it, again and again, a few entries at a time.
//!
//! ```text
//!   swept │ 1 … 400 verified │ 401 … 528 the next slice │ … │ entries that are not filed: not yet
//! ```

use std::collections::BTreeMap;

use forewarn_control::Chain;
use rusqlite::Connection;

use super::check::{check_chains, check_row};
use super::table::read_row;
use crate::heading::Headings;
use crate::stream_key::StreamKey;

/// Entries, and bytes, that one slice verifies: a commit waits for no more.
pub(crate) const ENTRIES_PER_SLICE: u64 = 128;
const BYTES_PER_SLICE: usize = 256 << 10;

/// A pass over the audit log, which goes on where the last slice has ended.
#[derive(Debug, Default)]
pub(crate) struct AuditVerifier {
    /// The pass that is under way.
    pass: Option<Pass>,
}

#[derive(Debug)]
struct Pass {
    /// Position of the last entry that was looked at.
    at: u64,
    /// The chain of each stream up to there. `None` after damage: the next entry of the stream is not compared with it.
    chains: BTreeMap<StreamKey, Option<Chain>>,
}

/// Outcome of a slice.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct VerifiedSlice {
    /// Number of sound entries.
    pub(crate) entries: u64,
    /// Description of each damage.
    pub(crate) damage: Vec<String>,
    pub(crate) progress: PassProgress,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PassProgress {
    #[default]
    Goes,
    /// Every entry that is filed was looked at.
    Done,
}

impl Pass {
    fn begin(headings: &Headings) -> Self {
        let chains = headings.streams().map(|(key, heading)| (key, Some(heading.swept))).collect();
        Self { at: headings.journal.audit_swept.number, chains }
    }
}

impl AuditVerifier {
    /// Verifies the next entries, up to the last one that is filed.
    pub(crate) fn go_on(
        &mut self,
        connection: &Connection,
        headings: &Headings,
        filed_to: u64,
    ) -> VerifiedSlice {
        let journal = &headings.journal;
        // Sweeping may have overtaken the pass.
        let pass = self.pass.take().filter(|pass| journal.audit_swept.number <= pass.at);
        let mut pass = pass.unwrap_or_else(|| Pass::begin(headings));
        let (mut slice, mut bytes) = (VerifiedSlice::default(), 0);
        let last = journal.audit_end.number.min(filed_to);
        let to = last.min(pass.at + ENTRIES_PER_SLICE);
        while pass.at < to && bytes < BYTES_PER_SLICE {
            pass.at += 1;
            if let Some(missing) = headings.gap_at(pass.at) {
                pass.chains.insert(missing.stream, Some(missing.gap.end));
                pass.at = missing.last.min(last);
                continue;
            }
            match check_next(connection, headings, &mut pass) {
                Ok(size) => (slice.entries, bytes) = (slice.entries + 1, bytes + size),
                Err(what) => slice.damage.push(what),
            }
        }
        if pass.at < last {
            self.pass = Some(pass);
            return slice;
        }
        slice.progress = PassProgress::Done;
        let is_sound = pass.chains.values().all(Option::is_some);
        if is_sound && last == journal.audit_end.number {
            let chains = pass.chains.into_iter().filter_map(|(key, chain)| Some((key, chain?))).collect();
            slice.damage.extend(check_chains(headings, &chains).err());
        }
        slice
    }
}

/// Verifies the entry at the position of a pass. Returns its size.
fn check_next(connection: &Connection, headings: &Headings, pass: &mut Pass) -> Result<usize, String> {
    let position = pass.at;
    let failed = |error: rusqlite::Error| format!("audit entry {position}: {error}");
    let row = read_row(connection, position).map_err(failed)?;
    let row = row.ok_or_else(|| format!("audit entry {position} is missing"))?;
    let Some(heading) = headings.get(row.stream) else {
        return Err(format!("audit entry {position} is of an unknown stream"));
    };
    // A stream that is younger than the pass has its whole log.
    let known = pass.chains.entry(row.stream).or_insert(Some(heading.begin));
    // After damage, the next sound entry of the stream begins anew.
    let chain = known.take().map(|chain| heading.chain_before(row.number, chain));
    let (after, _) = check_row(connection, &row, chain).map_err(failed)??;
    *known = Some(after);
    Ok(row.content_bytes())
}
