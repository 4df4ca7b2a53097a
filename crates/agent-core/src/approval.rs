//! Approval of events by this machine.

use std::time::Duration;

use forewarn_types::{EventId, Steady};

use crate::effect::{ApprovalResult, Effect, EventLogEntry, EventLogKind};
use crate::event_case::{Consent, EventCase, LiveState};
use crate::observation::Status;
use crate::obstacle::ApprovalObstacle;
use crate::peers::{Verdict, is_given};
use crate::settings::Approval;
use crate::stage::Stage;
use crate::watcher::Watcher;

/// The first and the longest pause before an approval is retried.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);

impl LiveState {
    /// Schedules the next attempt, with an exponentially growing pause.
    fn pause(&mut self, now: Steady) {
        let pause = PAUSE.saturating_mul(1 << self.refusals.min(5)).min(PAUSE_MAX);
        self.refusals += 1;
        self.approve_at = Some(now.plus(pause));
    }
}

impl Watcher {
    /// Approves an event for which this machine is ready, if the policy allows it.
    pub(crate) fn approve_if_ready(&mut self, now: Steady, index: usize, effects: &mut Vec<Effect>) {
        let case = &self.memory.cases[index];
        if is_given(case.consent) || case.live.approving || case.live.approve_at.is_some_and(|at| now < at) {
            return;
        }
        let without = match self.verdict(now, case) {
            Verdict::Wait(obstacle) => return self.log_obstacle(index, obstacle, effects),
            Verdict::Go { without } => without,
        };
        let case = &mut self.memory.cases[index];
        // A retry logs nothing new.
        if case.live.refusals == 0 && !case.live.in_doubt {
            effects.push(Effect::Log(EventLogEntry {
                observed: case.observed.clone(),
                kind: EventLogKind::Approving { without },
            }));
        }
        case.consent = Consent::Tried;
        case.live.approving = true;
        effects.push(Effect::Approve(case.observed.id));
    }

    /// Logs an obstacle to an approval, unless it is the same as before.
    fn log_obstacle(&mut self, index: usize, obstacle: ApprovalObstacle, effects: &mut Vec<Effect>) {
        let case = &mut self.memory.cases[index];
        let logged = Some(obstacle.without_progress());
        if case.live.logged_obstacle != logged {
            case.live.logged_obstacle = logged;
            let kind = EventLogKind::NotApproving { obstacle };
            effects.push(Effect::Log(EventLogEntry { observed: case.observed.clone(), kind }));
        }
    }

    /// Decides about the approval of an event for which this machine is ready.
    pub(crate) fn verdict(&self, now: Steady, case: &EventCase) -> Verdict {
        if case.live.is_malformed {
            return Verdict::Wait(ApprovalObstacle::Malformed);
        }
        if !case.observed.has_known_type() {
            return Verdict::Wait(ApprovalObstacle::UnknownType);
        }
        let go_alone = Verdict::Go { without: Vec::new() };
        match case.approval {
            Approval::Never => Verdict::Wait(ApprovalObstacle::NeverApproves),
            Approval::Alone if case.observed.resources == [self.settings.me.as_str()] => go_alone,
            Approval::Alone => Verdict::Wait(ApprovalObstacle::OtherMachines),
            Approval::WhenDone => go_alone,
            Approval::Leader => self.views.verdict(now, case, &self.settings.me, &self.settings.peers),
        }
    }

    /// The reason why this machine has prepared for an event and does not approve it.
    #[must_use]
    pub fn obstacle(&self, now: Steady, case: &EventCase) -> Option<ApprovalObstacle> {
        let is_open = case.outcome.is_none() && case.observed.status == Status::Scheduled;
        let is_mine = case.observed.names(&self.settings.me);
        if !(is_open && is_mine && case.live.confirmed && case.consent == Consent::None) {
            return None;
        }
        match self.stage(case) {
            Stage::Failed => Some(ApprovalObstacle::HooksFailed),
            Stage::Ready => match self.verdict(now, case) {
                Verdict::Wait(obstacle) => Some(obstacle),
                Verdict::Go { .. } => None,
            },
            Stage::Waiting | Stage::Preparing | Stage::Idle => None,
        }
    }

    /// Records the result of an approval.
    pub(crate) fn record_approval(
        &mut self,
        now: Steady,
        event: EventId,
        result: ApprovalResult,
        effects: &mut Vec<Effect>,
    ) {
        let Some(case) = self.memory.cases.iter_mut().find(|case| case.observed.id == event) else { return };
        case.live.approving = false;
        let kind = match result {
            ApprovalResult::Accepted => {
                case.consent = Consent::Given;
                EventLogKind::Approved
            }
            ApprovalResult::Rejected(reason) => {
                if !case.live.in_doubt {
                    case.consent = Consent::None;
                }
                case.live.pause(now);
                EventLogKind::Unapproved { reason }
            }
            ApprovalResult::Unknown(reason) => {
                case.live.in_doubt = true;
                case.live.pause(now);
                EventLogKind::Unapproved { reason }
            }
        };
        effects.push(Effect::Log(EventLogEntry { observed: case.observed.clone(), kind }));
    }
}
