//! The audit log is verified while the journal is in use: a slice about once a second, a pass about once an hour.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::audit_log::{AuditVerifier, PassProgress, VerifiedSlice, shown_to};
use crate::heading::Headings;
use crate::lock::lock;
use crate::stream_key::StreamKey;

/// Pause between two slices: a million entries take about two hours.
const SLICE_INTERVAL: Duration = Duration::from_secs(1);

/// Pause between two passes.
const PASS_INTERVAL: Duration = Duration::from_hours(1);

/// Results of the verification of the audit log since the journal was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditCheck {
    /// Number of entries that were verified; each pass counts them again.
    pub entries: u64,
    /// Number of complete passes.
    pub passes: u64,
    /// Number of damages that the current pass has found, or the last one before it finds more.
    pub damages: u64,
    /// The damage that was found last.
    pub last_damage: Option<String>,
}

/// The pace of the verification.
#[derive(Debug)]
pub(crate) struct BackgroundCheck {
    verifier: AuditVerifier,
    due: Instant,
    /// Damages of the pass that is under way.
    damages: u64,
}

impl BackgroundCheck {
    pub(crate) fn new() -> Self {
        Self { verifier: AuditVerifier::default(), due: Instant::now() + SLICE_INTERVAL, damages: 0 }
    }

    /// Verifies the next entries when it is time. `hidden` has the last number that readers see, by stream.
    pub(crate) fn go_on_if_due(
        &mut self,
        connection: &Connection,
        (headings, hidden): (&Headings, &BTreeMap<StreamKey, u64>),
        found: &Mutex<AuditCheck>,
    ) {
        if Instant::now() < self.due {
            return;
        }
        let slice = match shown_to(connection, hidden) {
            Ok(shown_to) => self.verifier.go_on(connection, headings, shown_to),
            Err(error) => VerifiedSlice { damage: vec![error.to_string()], ..VerifiedSlice::default() },
        };
        let pause = match slice.progress {
            PassProgress::Goes => SLICE_INTERVAL,
            PassProgress::Done => PASS_INTERVAL,
        };
        self.due = Instant::now() + pause;
        self.record(slice, &mut lock(found));
    }

    fn record(&mut self, slice: VerifiedSlice, found: &mut AuditCheck) {
        self.damages += slice.damage.len() as u64;
        found.entries += slice.entries;
        found.damages = found.damages.max(self.damages);
        found.last_damage = slice.damage.into_iter().next_back().or(found.last_damage.take());
        match slice.progress {
            PassProgress::Goes => {}
            PassProgress::Done => {
                found.passes += 1;
                found.damages = std::mem::take(&mut self.damages);
                found.last_damage = found.last_damage.take().filter(|_| found.damages > 0);
            }
        }
    }
}
