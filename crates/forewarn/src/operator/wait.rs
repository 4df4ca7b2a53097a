//! Waiting until work is over.
//!
//! The server holds each question until nothing is left, or for a moment. In between, how it stands is said on standard
//! error.

use std::collections::BTreeMap;
use std::fmt;
use std::mem::{Discriminant, discriminant};
use std::time::Duration;

use anyhow::Result;
use forewarn_control::{ClockView, EndedView, EventView, Outcome, RolloutView, Unfinished};
use forewarn_types::{Moment, show_duration};

use super::progress::{Progress, summary};
use super::session::Session;
use super::visible::visible;
use super::{rollout_progress, say};

/// How long the server holds a question: as often is progress looked at.
const HOLD: &str = "2s";

/// How long it holds the first one: what happens at once is over by then, and needs no advice.
const FIRST_HOLD: &str = "0s";

/// Adds what a command has begun.
pub(super) fn add(unfinished: &mut Unfinished, outcome: &Outcome) {
    unfinished.work.extend(&outcome.work);
    unfinished.rollouts.extend(&outcome.rollouts);
}

fn is_over(unfinished: &Unfinished) -> bool {
    unfinished.work.is_empty() && unfinished.rollouts.is_empty()
}

fn question(unfinished: &Unfinished, hold: &str) -> String {
    let listed = |numbers: &[u64]| numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
    let (work, rollouts) = (listed(&unfinished.work), listed(&unfinished.rollouts));
    format!("/v1/unfinished?work={work}&rollouts={rollouts}&wait={hold}")
}

/// Returns when all of it is over, and says how each piece of work ended, as far as the server knows.
pub(super) fn until_over(session: &Session, mut unfinished: Unfinished) -> Result<BTreeMap<u64, EndedView>> {
    let all = unfinished.work.len() + unfinished.rollouts.len();
    let progress = Progress::new();
    let mut teller = Teller { session, progress, all, said: BTreeMap::new(), advised: Vec::new() };
    let mut endings = BTreeMap::new();
    let mut hold = FIRST_HOLD;
    while !is_over(&unfinished) {
        unfinished = session.get(&question(&unfinished, hold))?;
        endings.extend(unfinished.ended.iter().map(|one| (one.work, one.clone())));
        if !is_over(&unfinished) {
            teller.tell(&unfinished)?;
        }
        hold = HOLD;
    }
    teller.progress.end();
    Ok(endings)
}

/// Says how it stands.
struct Teller<'a> {
    session: &'a Session,
    progress: Progress<std::io::Stderr>,
    /// Pieces of work and rollouts that are waited for.
    all: usize,
    /// The last word about each event.
    said: BTreeMap<String, String>,
    /// The kinds of advice that have been given.
    advised: Vec<Discriminant<Advice>>,
}

/// What gets work going while the clock stands still.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Advice {
    /// Its notice has to run out, in that time, or somebody approves.
    AdvanceOrApprove(Duration),
    /// It has started and takes time.
    Next,
}

impl fmt::Display for Advice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AdvanceOrApprove(span) => {
                write!(
                    out,
                    "the clock is frozen: `forewarn clock advance {}`, or approve",
                    show_duration(*span)
                )
            }
            Self::Next => write!(out, "the clock is frozen: `forewarn clock next`, until it is over"),
        }
    }
}

impl Teller<'_> {
    fn tell(&mut self, unfinished: &Unfinished) -> Result<()> {
        let clock: ClockView = self.session.get("/v1/clock")?;
        let events = self.events(unfinished)?;
        let (mut standing, mut changes) = (Vec::new(), Vec::new());
        for event in &events {
            let (text, progress) = (visible(&say::standing(event, clock.now)), event.progress.clone());
            if self.said.insert(event.id.clone(), progress.clone()) != Some(progress) {
                changes.push(text.clone());
            }
            standing.push(text);
        }
        let left = unfinished.work.len() + unfinished.rollouts.len();
        self.progress.stand(&changes, &summary(self.all.saturating_sub(left), self.all, &standing));
        if let Some(advice) = advice(&clock, &events)
            && !self.advised.contains(&discriminant(&advice))
        {
            self.progress.say(&advice.to_string());
            self.advised.push(discriminant(&advice));
        }
        Ok(())
    }

    /// Says how far a rollout is, whenever it stands otherwise than before.
    fn tell_rollout(&mut self, rollout: &RolloutView) {
        let standing = format!("{} {}", rollout.state, rollout.groups);
        if self.said.insert(format!("rollout {}", rollout.id), standing.clone()) != Some(standing) {
            self.progress.say(&visible(&rollout_progress::standing(rollout)));
        }
    }

    /// The events of the work that is not over.
    fn events(&mut self, unfinished: &Unfinished) -> Result<Vec<EventView>> {
        let mut work = unfinished.work.clone();
        if !unfinished.rollouts.is_empty() {
            let rollouts: Vec<RolloutView> = self.session.all("/v1/rollouts")?;
            let ours = rollouts.iter().filter(|rollout| unfinished.rollouts.contains(&rollout.id));
            for rollout in ours {
                self.tell_rollout(rollout);
                work.extend(rollout.current);
            }
        }
        let events: Vec<EventView> = self.session.all("/v1/events")?;
        Ok(events.into_iter().filter(|event| work.contains(&event.work)).collect())
    }
}

/// What to do about a clock that stands still; nothing, if it does not.
fn advice(clock: &ClockView, events: &[EventView]) -> Option<Advice> {
    if clock.speed > 0 {
        return None;
    }
    let open = events.iter().filter(|event| !event.approved);
    let last: Option<Moment> = open.filter_map(|event| event.not_before).max();
    Some(last.map_or(Advice::Next, |moment| {
        // Whole seconds, and enough of them.
        Advice::AdvanceOrApprove(moment.0.since(clock.now.0) + Duration::from_millis(999))
    }))
}

#[cfg(test)]
mod tests {
    use super::super::say::tests::event;
    use super::*;

    fn clock(speed: u32) -> ClockView {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        ClockView { now, kind: "virtual".to_owned(), speed, next_in: None }
    }

    #[test]
    fn a_clock_that_stands_still_is_worth_a_word() {
        assert_eq!(advice(&clock(1), &[event("Scheduled")]), None);
        assert_eq!(
            advice(&clock(0), &[event("Scheduled")]).unwrap().to_string(),
            "the clock is frozen: `forewarn clock advance 15m`, or approve"
        );
        assert_eq!(
            advice(&clock(0), &[event("Started")]).unwrap().to_string(),
            "the clock is frozen: `forewarn clock next`, until it is over"
        );
    }

    #[test]
    fn the_server_is_asked_for_what_is_left() {
        let left = Unfinished { work: vec![1, 2], ..Unfinished::default() };
        assert_eq!(question(&left, HOLD), "/v1/unfinished?work=1,2&rollouts=&wait=2s");
    }
}
