//! When this machine approves.

use std::time::Duration;

use forewarn_types::{EventId, Steady};

use crate::case::{Case, Consent, Live};
use crate::deed::{Answer, Deed, Note, What};
use crate::peers::{Verdict, is_given};
use crate::settings::Approval;
use crate::watcher::Watcher;

/// How long to wait before an approval that was not taken is tried again, and the longest of it.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);

impl Live {
    /// The next try is a while from now, and a longer one each time.
    fn pause(&mut self, now: Steady) {
        let pause = PAUSE.saturating_mul(1 << self.refusals.min(5)).min(PAUSE_MAX);
        self.refusals += 1;
        self.approve_at = Some(now.plus(pause));
    }
}

impl Watcher {
    /// Approves an event for which this machine is ready, if that is its business.
    pub(crate) fn consider(&mut self, now: Steady, index: usize, deeds: &mut Vec<Deed>) {
        let case = &self.memory.cases[index];
        if case.live.is_malformed || !case.seen.has_known_type() {
            return;
        }
        if is_given(case.consent) || case.live.approving || case.live.approve_at.is_some_and(|at| now < at) {
            return;
        }
        let without = match self.verdict(now, case) {
            Verdict::Wait => return,
            Verdict::Go { without } => without,
        };
        let case = &mut self.memory.cases[index];
        // A second try says nothing new.
        if case.live.refusals == 0 && !case.live.in_doubt {
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
                if !case.live.in_doubt {
                    case.consent = Consent::None;
                }
                case.live.pause(now);
                What::Unapproved { why }
            }
            Answer::Unknown(why) => {
                case.live.in_doubt = true;
                case.live.pause(now);
                What::Unapproved { why }
            }
        };
        deeds.push(Deed::Note(Note { seen: case.seen.clone(), what }));
    }
}
