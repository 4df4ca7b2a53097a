//! Sentences about work without an event: it has started, or waits, or is held, as the server decided.

use forewarn_control::{Outcome, StartState, StartView, WorkNotice};
use forewarn_types::Moment;

/// A point in time, in words.
type TimeWords<'a> = &'a dyn Fn(Moment) -> String;

/// The start of work whose tenants are not enrolled: one sentence for each time. `subject` is the work of the request.
pub(super) fn sentences(outcome: &Outcome, subject: &str, time: TimeWords<'_>) -> Vec<String> {
    // With events of other tenants, the subject would include their work.
    let subject = if outcome.events.is_empty() { subject } else { "The work without an event" };
    let starts = planned(outcome).filter(|start| start.notice == WorkNotice::Unenrolled);
    let mut all = Vec::new();
    for sentence in starts.filter_map(|start| unenrolled(subject, start, time)) {
        if !all.contains(&sentence) {
            all.push(sentence);
        }
    }
    all
}

/// The start of work that makes no events: the first that has not started, or of all. None if there is none.
pub(super) fn work(outcome: &Outcome, subject: &str, time: TimeWords<'_>) -> Option<String> {
    if outcome.work.is_empty() {
        return None;
    }
    let late = planned(outcome).find(|start| start.state != StartState::Started);
    let Some(start) = late.or_else(|| planned(outcome).next()) else {
        return Some(format!("{subject} is accepted, without an event."));
    };
    Some(match (start.state, start.not_before) {
        (StartState::Started, _) => format!("{subject} is in progress, without an event."),
        (StartState::Due, _) => format!("{subject} is about to start, without an event."),
        (StartState::Waiting, Some(moment)) => {
            format!("{subject} starts at {}, without an event.", time(moment))
        }
        (StartState::Waiting, None) | (StartState::Held, _) => {
            format!("{subject} has not started, and has no event: {}.", start.progress)
        }
        (StartState::Withdrawn, _) => format!("{subject} was withdrawn."),
    })
}

/// The work that the request has planned.
fn planned(outcome: &Outcome) -> impl Iterator<Item = &StartView> {
    outcome.starts.iter().filter(|start| outcome.work.contains(&start.work))
}

fn unenrolled(subject: &str, start: &StartView, time: TimeWords<'_>) -> Option<String> {
    Some(match (start.state, start.not_before) {
        (StartState::Started, _) => format!("{subject} starts now."),
        (StartState::Due, _) => format!("{subject} is about to start."),
        (StartState::Waiting, Some(moment)) => {
            format!("{subject} starts at {}: it waits as long as a notice.", time(moment))
        }
        (StartState::Waiting, None) | (StartState::Held, _) => {
            format!("{subject} has not started: {}.", start.progress)
        }
        (StartState::Withdrawn, _) => return None,
    })
}
