//! A later state of a stream that another journal has, and the audit entries before it, which come afterwards.

use forewarn_control::Chain;
use rusqlite::Transaction;

use super::{CommitContent, CommitState, Written};
use crate::audit_gap::AuditGap;
use crate::committer_request::{Appended, Filling, Install, InstalledState};
use crate::entry_run::Run;
use crate::error::AppendError;
use crate::fold::Folding;
use crate::lock::lock;
use crate::pending::write_run_entry;
use crate::stream_key::StreamKey;

impl CommitState {
    /// Replaces everything of a stream by a later state, in one transaction. The audit entries in between are missing
    /// from then on, at positions that are theirs.
    pub(super) fn install(
        &mut self,
        transaction: &Transaction<'_>,
        install: &mut Install,
        content: &mut CommitContent,
    ) -> Result<Appended, AppendError> {
        let failed = |error: rusqlite::Error| AppendError::from(&error);
        let Install { stream, state: InstalledState { state, records, chain, clock }, .. } = install;
        let (stream, records, chain) = (*stream, *records, *chain);
        let heading = self.headings.get_mut(stream);
        let (last, end) = (heading.last, heading.audit_chain);
        let is_later = chain.number > end.number || chain == end;
        if records < last || !is_later || self.forgotten.contains(&stream) {
            return Err(AppendError::Earlier);
        }
        let first_position = self.add_missing(transaction, stream, chain)?;
        content.written = Written::Something;
        self.folds.cancel(stream);
        self.headings.record_time(stream, *clock);
        self.headings.add_records(stream, usize::try_from(records - last).unwrap_or(usize::MAX));
        let folding = Folding::begin(stream, self.headings.get_mut(stream), state.clone());
        folding.finish(transaction, &mut self.headings).map_err(failed)?;
        self.folds.sweep_later(stream);
        lock(&self.status.hidden).remove(&stream);
        self.publish_gaps();
        Ok(Appended { first_position })
    }

    /// Reserves positions for the entries up to the end of an audit log. Returns the position after them.
    fn add_missing(
        &mut self,
        transaction: &Transaction<'_>,
        stream: StreamKey,
        end: Chain,
    ) -> Result<u64, AppendError> {
        let failed = |error: rusqlite::Error| AppendError::from(&error);
        let (before, mut spans) = self.give_up_hidden(transaction, stream, end)?;
        let log_end = self.headings.journal.audit_end.number;
        let known = before.number + spans.iter().map(|(_, count)| count).sum::<u64>();
        let reserved = end.number.saturating_sub(known);
        if reserved > 0 {
            spans.push((log_end + 1, reserved));
            self.headings.journal.audit_end = Chain { number: log_end + reserved, ..end };
        }
        if !spans.is_empty() {
            let first = before.number + 1;
            self.audit.pending_mut().cut(transaction, stream, first).map_err(failed)?;
            let run = Run::at_spans(stream, first, spans);
            self.headings.add_gap(stream, AuditGap::new(run, before, end));
        }
        self.headings.get_mut(stream).audit_chain = end;
        Ok(log_end + reserved + 1)
    }

    /// Hidden entries may have been replaced since: they count as missing. Returns the entry before them, and their
    /// positions.
    fn give_up_hidden(
        &mut self,
        transaction: &Transaction<'_>,
        stream: StreamKey,
        end: Chain,
    ) -> Result<(Chain, Vec<(u64, u64)>), AppendError> {
        let failed = |error: rusqlite::Error| AppendError::from(&error);
        let heading = self.headings.get_mut(stream).clone();
        let known = heading.audit_chain;
        let shown_to = lock(&self.status.hidden).get(&stream).copied();
        let Some(shown_to) = shown_to.filter(|shown_to| *shown_to < known.number && known != end) else {
            return Ok((known, Vec::new()));
        };
        self.wait_for_audit_file();
        let view = self.audit.view(transaction);
        let before = view.chain_at((stream, &heading), shown_to).map_err(failed)?;
        let pending = self.audit.pending();
        let positions = (shown_to + 1..=known.number).map(|number| pending.position_of(stream, number));
        let (Some(before), Some(positions)) = (before, positions.collect::<Option<Vec<_>>>()) else {
            // They are filed: readers have seen them.
            return Ok((known, Vec::new()));
        };
        Ok((before, Run::new(stream, shown_to + 1, &positions).spans().to_vec()))
    }

    /// Writes the last entries of a gap.
    pub(super) fn fill(
        &mut self,
        transaction: &Transaction<'_>,
        filling: &mut Filling,
        content: &mut CommitContent,
    ) -> Result<Appended, AppendError> {
        let failed = |error: rusqlite::Error| AppendError::from(&error);
        let Filling { stream, before, end, entries, .. } = filling;
        let heading = self.headings.get_mut(*stream);
        let index = heading.gaps.iter().position(|gap| gap.ends_with(*before, *end));
        let Some(index) = index.filter(|_| !entries.is_empty()) else { return Err(AppendError::OtherEntry) };
        let gap = &heading.gaps[index];
        let first = before.number + 1;
        let positions: Option<Vec<_>> = (first..=end.number).map(|number| gap.run.position(number)).collect();
        let Some(positions) = positions.filter(|positions| positions.len() == entries.len()) else {
            return Err(AppendError::OtherEntry);
        };
        content.written = Written::Something;
        content.entries += entries.len();
        let pending = self.audit.pending_mut();
        let run = pending.new_id();
        for (entry, line) in &*entries {
            write_run_entry(transaction, (run, entry.number), line).map_err(failed)?;
            self.log_bytes += line.len() as u64;
        }
        let of_run = Run::new(*stream, first, &positions);
        pending.add(transaction, (run, of_run), std::mem::take(entries)).map_err(failed)?;
        let heading = self.headings.get_mut(*stream);
        if heading.gaps[index].fill(*before) {
            heading.gaps.remove(index);
        }
        self.publish_gaps();
        Ok(Appended { first_position: positions.first().copied().unwrap_or_default() })
    }

    /// Publishes the entries that are missing.
    pub(super) fn publish_gaps(&self) {
        let gaps =
            self.headings.gaps().filter_map(|(key, gap)| Some((key.stream()?, (gap.first(), gap.last()))));
        *lock(&self.status.missing) = gaps.collect();
    }
}
