//! Waits until no work is in progress or announced.

use std::time::{Duration, Instant};

use anyhow::Result;
use forewarn_control::{ClockView, EventView, Unfinished};

use super::super::sentences;
use super::super::session::Session;
use super::super::visible::visible;
use super::super::wait::clock_hint;
use super::met::Met;

/// Maximum time for which the server holds a request.
const HOLD_MAX: Duration = Duration::from_secs(60);

/// Events that a message names.
const NAMED_MAX: usize = 3;

/// Waits until nothing is left, or until the deadline. None if something is left then.
pub(super) fn wait(session: &Session, deadline: Option<Instant>) -> Result<Option<Met>> {
    let mut left = unfinished(session, Duration::ZERO)?;
    if !is_over(&left) {
        hint(session)?;
    }
    while !is_over(&left) {
        let rest = deadline.map_or(HOLD_MAX, |deadline| deadline.saturating_duration_since(Instant::now()));
        if rest.is_zero() {
            return Ok(None);
        }
        left = unfinished(session, rest.min(HOLD_MAX))?;
    }
    Ok(Some(Met::plain("idle", "no work is in progress or announced".to_owned())))
}

fn is_over(left: &Unfinished) -> bool {
    left.work.is_empty() && left.rollouts.is_empty()
}

fn unfinished(session: &Session, hold: Duration) -> Result<Unfinished> {
    // Rounded up: the last request is not held for less than the rest of the time.
    session.get(&format!("/v1/unfinished?all=true&wait={}s", hold.as_millis().div_ceil(1_000)))
}

/// Prints the command that lets the work continue while the clock is frozen.
fn hint(session: &Session) -> Result<()> {
    let (clock, events): (ClockView, Vec<EventView>) =
        (session.get("/v1/clock")?, session.all("/v1/events")?);
    if let Some(hint) = clock_hint(&clock, &events) {
        eprintln!("{hint}");
    }
    Ok(())
}

/// The work that is left, in words.
pub(super) fn observed(session: &Session) -> Result<String> {
    let (clock, events): (ClockView, Vec<EventView>) =
        (session.get("/v1/clock")?, session.all("/v1/events")?);
    let states = events.iter().take(NAMED_MAX).map(|event| visible(&sentences::state(event, clock.now)));
    let states: Vec<_> = states.collect();
    if !states.is_empty() {
        return Ok(format!("work is left: {}", states.join("; ")));
    }
    let Unfinished { work, rollouts, .. } = unfinished(session, Duration::ZERO)?;
    let count = |number: usize, one: &str, several: &str| match number {
        1 => format!("1 {one}"),
        number => format!("{number} {several}"),
    };
    let (work, rollouts) =
        (count(work.len(), "operation", "operations"), count(rollouts.len(), "rollout", "rollouts"));
    Ok(format!("work is left, without an event: {work}, {rollouts}"))
}
