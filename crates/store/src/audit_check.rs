//! The audit log is verified while the journal is in use: a slice about once a second, a pass about once an hour.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::audit_log::{AuditVerifier, PassProgress, VerifiedSlice};
use crate::audit_store::AuditStore;
use crate::heading::Headings;
use crate::lock::lock;

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

    /// Verifies the next entries when it is time.
    pub(crate) fn go_on_if_due(
        &mut self,
        (audit, headings): (&AuditStore, &Headings),
        found: &Mutex<AuditCheck>,
    ) {
        if Instant::now() < self.due {
            return;
        }
        let mut slice = match audit.file() {
            Ok(file) => self.verifier.go_on(file, headings, audit.pending().filed_to()),
            Err(_) => VerifiedSlice { progress: PassProgress::Done, ..VerifiedSlice::default() },
        };
        match slice.progress {
            PassProgress::Goes => {}
            PassProgress::Done => slice.damage.extend(audit.damage().map(str::to_owned)),
        }
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
