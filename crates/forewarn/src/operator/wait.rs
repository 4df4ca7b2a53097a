//! Waits until work has ended.
//!
//! The server holds each request until all work has ended, or for [`HOLD`]. In between, the progress is printed to
//! standard error.

use std::collections::BTreeMap;
use std::fmt;
use std::mem::{Discriminant, discriminant};
use std::time::Duration;

use anyhow::Result;
use forewarn_control::{ClockView, EndedView, EventView, Outcome, RolloutView, Unfinished};
use forewarn_types::{Moment, show_duration};

use super::event_id::short;
use super::interruption::Interruption;
use super::progress::{Progress, summary};
use super::session::Session;
use super::visible::visible;
use super::{rollout_progress, sentences};

/// The time for which the server holds a request: the interval of the progress output.
const HOLD: &str = "2s";

/// The same for the first request: work that ends at once needs no progress output and no hint.
const FIRST_HOLD: &str = "0s";

/// Events and rollouts that the message of an interruption names.
const HINTS_MAX: usize = 3;

/// Work to wait for.
#[derive(Debug, Default)]
pub(super) struct Awaited {
    unfinished: Unfinished,
    /// Ids of its events.
    events: Vec<String>,
}

impl Awaited {
    /// Adds the work of an outcome.
    pub(super) fn add(&mut self, outcome: &Outcome) {
        self.unfinished.work.extend(&outcome.work);
        self.unfinished.rollouts.extend(&outcome.rollouts);
        self.events.extend(outcome.events.iter().map(|event| event.id.clone()));
    }

    /// The message to a user that no longer waits: the work continues.
    fn interruption(&self) -> String {
        let rollouts = self
            .unfinished
            .rollouts
            .iter()
            .map(|id| (format!("rollout show {id}"), format!("rollout cancel {id}")));
        let events = self
            .events
            .iter()
            .map(|id| (format!("event show {}", short(id)), format!("event cancel {}", short(id))));
        // The events of a rollout are cancelled with it.
        let commands: Vec<_> =
            if self.unfinished.rollouts.is_empty() { events.collect() } else { rollouts.collect() };
        let hints = commands.iter().take(HINTS_MAX).map(|(follow, cancel)| {
            format!("\n  hint: `forewarn {follow}` shows it, `forewarn {cancel}` cancels it")
        });
        let hints: String = match commands.len() {
            0 => "\n  hint: `forewarn watch` shows its end; it has no event, and cannot be cancelled"
                .to_owned(),
            _ => hints.collect(),
        };
        let left = commands.len().saturating_sub(HINTS_MAX);
        let more =
            if left > 0 { format!("\n  hint: `forewarn event ls` lists {left} more") } else { String::new() };
        format!("interrupted: the operation continues on the server{hints}{more}")
    }
}

fn is_over(unfinished: &Unfinished) -> bool {
    unfinished.work.is_empty() && unfinished.rollouts.is_empty()
}

fn query(unfinished: &Unfinished, hold: &str) -> String {
    let listed = |numbers: &[u64]| numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
    let (work, rollouts) = (listed(&unfinished.work), listed(&unfinished.rollouts));
    format!("/v1/unfinished?work={work}&rollouts={rollouts}&wait={hold}")
}

/// Waits for all work. Returns the result of each piece, as far as the server knows it.
pub(super) fn until_over(session: &Session, awaited: Awaited) -> Result<BTreeMap<u64, EndedView>> {
    let _explained = Interruption::explain(awaited.interruption())?;
    let mut unfinished = awaited.unfinished;
    let all = unfinished.work.len() + unfinished.rollouts.len();
    let progress = Progress::new();
    let mut reporter =
        ProgressReporter { session, progress, all, reported: BTreeMap::new(), hints: Vec::new() };
    let mut endings = BTreeMap::new();
    let mut hold = FIRST_HOLD;
    while !is_over(&unfinished) {
        unfinished = session.get(&query(&unfinished, hold))?;
        endings.extend(unfinished.ended.iter().map(|one| (one.work, one.clone())));
        if !is_over(&unfinished) {
            reporter.report(&unfinished)?;
        }
        hold = HOLD;
    }
    reporter.progress.end();
    Ok(endings)
}

struct ProgressReporter<'a> {
    session: &'a Session,
    progress: Progress<std::io::Stderr>,
    /// Number of pieces of work and rollouts.
    all: usize,
    /// The last printed state of each event and rollout.
    reported: BTreeMap<String, String>,
    /// The kinds of hints that are already printed.
    hints: Vec<Discriminant<ClockHint>>,
}

/// The command that lets work continue while the clock is frozen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ClockHint {
    /// Events wait for approval, or for the end of their notice in this time.
    AdvanceOrApprove(Duration),
    /// The work has started.
    Next,
}

impl fmt::Display for ClockHint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AdvanceOrApprove(span) => {
                write!(
                    out,
                    "the clock is frozen: run `forewarn clock advance {}`, or approve the event",
                    show_duration(*span)
                )
            }
            Self::Next => {
                write!(out, "the clock is frozen: run `forewarn clock next` until the work is completed")
            }
        }
    }
}

impl ProgressReporter<'_> {
    fn report(&mut self, unfinished: &Unfinished) -> Result<()> {
        let clock: ClockView = self.session.get("/v1/clock")?;
        let events = self.events(unfinished)?;
        let (mut states, mut changes) = (Vec::new(), Vec::new());
        for event in &events {
            let (text, progress) = (visible(&sentences::state(event, clock.now)), event.progress.clone());
            if self.reported.insert(event.id.clone(), progress.clone()) != Some(progress) {
                changes.push(text.clone());
            }
            states.push(text);
        }
        let left = unfinished.work.len() + unfinished.rollouts.len();
        self.progress.update(&changes, &summary(self.all.saturating_sub(left), self.all, &states));
        if let Some(hint) = clock_hint(&clock, &events)
            && !self.hints.contains(&discriminant(&hint))
        {
            self.progress.print(&hint.to_string());
            self.hints.push(discriminant(&hint));
        }
        Ok(())
    }

    /// Prints the state of a rollout if it has changed.
    fn report_rollout(&mut self, rollout: &RolloutView) {
        let state = format!("{} {}", rollout.state, rollout.groups);
        if self.reported.insert(format!("rollout {}", rollout.id), state.clone()) != Some(state) {
            self.progress.print(&visible(&rollout_progress::sentence(rollout)));
        }
    }

    /// The events of unfinished work.
    fn events(&mut self, unfinished: &Unfinished) -> Result<Vec<EventView>> {
        let mut work = unfinished.work.clone();
        if !unfinished.rollouts.is_empty() {
            let rollouts: Vec<RolloutView> = self.session.all("/v1/rollouts")?;
            let ours = rollouts.iter().filter(|rollout| unfinished.rollouts.contains(&rollout.id));
            for rollout in ours {
                self.report_rollout(rollout);
                work.extend(rollout.current);
            }
        }
        let events: Vec<EventView> = self.session.all("/v1/events")?;
        Ok(events.into_iter().filter(|event| work.contains(&event.work)).collect())
    }
}

/// The hint for a frozen clock. None if the clock runs.
pub(super) fn clock_hint(clock: &ClockView, events: &[EventView]) -> Option<ClockHint> {
    if clock.speed > 0 {
        return None;
    }
    let open = events.iter().filter(|event| !event.approved);
    let last: Option<Moment> = open.filter_map(|event| event.not_before).max();
    Some(last.map_or(ClockHint::Next, |moment| {
        // Rounded up to whole seconds.
        ClockHint::AdvanceOrApprove(moment.0.since(clock.now.0) + Duration::from_millis(999))
    }))
}

#[cfg(test)]
mod tests {
    use super::super::sentences::tests::event;
    use super::*;

    fn clock(speed: u32) -> ClockView {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        ClockView { now, kind: "virtual".to_owned(), speed, next_in: None }
    }

    #[test]
    fn a_frozen_clock_gives_a_hint() {
        assert_eq!(clock_hint(&clock(1), &[event("Scheduled")]), None);
        assert_eq!(
            clock_hint(&clock(0), &[event("Scheduled")]).unwrap().to_string(),
            "the clock is frozen: run `forewarn clock advance 15m`, or approve the event"
        );
        assert_eq!(
            clock_hint(&clock(0), &[event("Started")]).unwrap().to_string(),
            "the clock is frozen: run `forewarn clock next` until the work is completed"
        );
    }

    #[test]
    fn an_interruption_says_how_to_follow_and_to_cancel() {
        let of = |events: &[&str], rollouts: &[u64]| {
            let unfinished = Unfinished { work: vec![1], rollouts: rollouts.to_vec(), ended: Vec::new() };
            let events = events.iter().map(|id| (*id).to_owned()).collect();
            Awaited { unfinished, events }.interruption()
        };
        let id = "28512AF7-C957-4500-9BC4-842D6FB531E4";
        assert_eq!(
            of(&[id], &[]),
            "interrupted: the operation continues on the server\n  \
             hint: `forewarn event show 28512AF7` shows it, `forewarn event cancel 28512AF7` cancels it"
        );
        assert!(of(&[id], &[3]).ends_with("`forewarn rollout cancel 3` cancels it"));
        assert!(of(&[], &[]).ends_with("it has no event, and cannot be cancelled"));
        assert!(of(&[id; 5], &[]).ends_with("`forewarn event ls` lists 2 more"));
    }

    #[test]
    fn the_query_names_the_unfinished_work() {
        let left = Unfinished { work: vec![1, 2], ..Unfinished::default() };
        assert_eq!(query(&left, HOLD), "/v1/unfinished?work=1,2&rollouts=&wait=2s");
    }
}
