//! When this machine approves.

use std::time::Duration;

use forewarn_lifecycle::{EventId, Steady};

use crate::case::{Case, Consent};
use crate::deed::{Answer, Deed, Note, What};
use crate::peers::{Verdict, is_given};
use crate::settings::Approval;
use crate::watcher::Watcher;

/// How long to wait before an approval that was not taken is tried again, and the longest of it.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);

impl Watcher {
    /// Approves an event for which this machine is ready, if that is its business.
    pub(crate) fn consider(&mut self, now: Steady, index: usize, deeds: &mut Vec<Deed>) {
        let case = &self.memory.cases[index];
        if is_given(case.consent) || case.live.approving || case.live.approve_at.is_some_and(|at| now < at) {
            return;
        }
        let without = match self.verdict(now, case) {
            Verdict::Wait => return,
            Verdict::Go { without } => without,
        };
        let case = &mut self.memory.cases[index];
        // A second try says nothing new.
        if case.consent == Consent::None {
            deeds.push(Deed::Note(Note { seen: case.seen.clone(), what: What::Approving { without } }));
        }
        case.consent = Consent::Tried;
        case.live.approving = true;
        deeds.push(Deed::Approve(case.seen.id));
    }

    fn verdict(&self, now: Steady, case: &Case) -> Verdict {
        let nobody = Verdict::Go { without: Vec::new() };
        match case.approval {
            Approval::Never => Verdict::Wait,
            Approval::Alone if case.seen.resources == [self.settings.me.as_str()] => nobody,
            Approval::Alone => Verdict::Wait,
            Approval::WhenDone => nobody,
            Approval::Leader => self.views.verdict(now, case, &self.settings.me, &self.settings.peers),
        }
    }

    /// What became of an approval.
    pub(crate) fn take_answer(&mut self, now: Steady, event: EventId, answer: Answer, deeds: &mut Vec<Deed>) {
        let Some(case) = self.memory.cases.iter_mut().find(|case| case.seen.id == event) else { return };
        case.live.approving = false;
        let what = match answer {
            Answer::Taken => {
                case.consent = Consent::Given;
                What::Approved
            }
            Answer::Refused(why) => {
                let pause = PAUSE.saturating_mul(1 << case.live.refusals.min(5)).min(PAUSE_MAX);
                case.live.refusals += 1;
                case.live.approve_at = Some(now.plus(pause));
                What::Unapproved { why }
            }
        };
        deeds.push(Deed::Note(Note { seen: case.seen.clone(), what }));
    }
}
