//! Sentences: what came of a command, how an event stands, when something is.

use std::time::Duration;

use forewarn_control::{EventView, Outcome};
use forewarn_types::{Moment, show_duration};

use super::identifier::short;
use super::table::some;

/// What came of a command, which `phrase` names: `restart of web_0`. One sentence a line.
pub(super) fn outcome(outcome: &Outcome, phrase: &str) -> String {
    if outcome.changes == 0 {
        return format!("Already so: {phrase}.\n");
    }
    let mut lines = Vec::new();
    for rollout in &outcome.rollouts {
        lines.push(format!("Rollout {rollout} is planned: {phrase}."));
    }
    lines.extend(outcome.events.iter().map(|event| announced(event, outcome.now)));
    let open: Vec<_> = outcome.events.iter().filter(|event| is_open(event)).collect();
    if !open.is_empty() {
        let ids: Vec<_> = open.iter().map(|event| short(&event.id)).collect();
        let whose = match open.as_slice() {
            [event] if event.resources.len() == 1 => "it from the machine",
            [_] => "it from one of the machines",
            _ => "each from one of its machines",
        };
        let hint = format!(" Approve {whose}, or: forewarn event approve {}", ids.join(" "));
        match lines.as_mut_slice() {
            [only] => only.push_str(&hint),
            _ => lines.push(hint.trim_start().to_owned()),
        }
    }
    if let Some((tenants, are)) = untold(&outcome.untold) {
        // Where others are told, the work waits for them, and those who are not told wait along.
        lines.push(if outcome.events.is_empty() {
            format!("{} happens at once: {tenants} {are} not enrolled, so nobody is told.", capital(phrase))
        } else {
            format!("{} {are} not told, for want of enrolment.", capital(&tenants))
        });
    }
    if lines.is_empty() {
        lines.push(if outcome.work.is_empty() {
            format!("Done: {phrase}.")
        } else {
            format!("{} is under way: no event goes with it.", capital(phrase))
        });
    }
    lines.join("\n") + "\n"
}

/// How an event stands that has just been made.
fn announced(event: &EventView, now: Moment) -> String {
    let (what, id) = (what(event), &event.id);
    match (event.not_before, &event.by) {
        (Some(moment), _) => {
            let approved = if event.approved { " and approved" } else { "" };
            format!("{what} is announced{approved}: event {id}, not before {}.", when(moment, now))
        }
        (None, Some(by)) => format!("{what} has started: event {id}, by {by}."),
        (None, None) => format!("{what} has started: event {id}."),
    }
}

/// Whether an approval would make a difference.
fn is_open(event: &EventView) -> bool {
    event.not_before.is_some() && !event.approved
}

/// The tenants who are not told, and the verb that goes with them.
fn untold(tenants: &[String]) -> Option<(String, &'static str)> {
    match tenants {
        [] => None,
        [tenant] => Some((format!("tenant {tenant}"), "is")),
        several => Some((format!("tenants {}", some(several)), "are")),
    }
}

/// What an event does to whom: `Reboot of web_0`.
pub(super) fn what(event: &EventView) -> String {
    format!("{} of {}", event.kind, some(&event.resources))
}

/// How an event stands: `Reboot of web_0: waits for approval …`.
pub(super) fn standing(event: &EventView, now: Moment) -> String {
    let until = event.not_before.map(|moment| format!(", not before {}", when(moment, now)));
    format!("{}: {}{}", what(event), event.progress, until.unwrap_or_default())
}

/// A moment, and how far it is: `2026-01-01 00:15:00Z (in 15m)`.
pub(super) fn when(moment: Moment, now: Moment) -> String {
    format!("{} ({})", date(moment), relative(moment, now))
}

/// A moment, to the second: `2026-01-01 00:15:00Z`.
pub(super) fn date(moment: Moment) -> String {
    let text = moment.to_string().replacen('T', " ", 1);
    match text.split_once('.') {
        Some((whole, _fraction)) => format!("{whole}Z"),
        None => text,
    }
}

/// How far a moment is: `in 15m`, `now`, `5s ago`.
fn relative(moment: Moment, now: Moment) -> String {
    // To the nearest second: documents know whole seconds only, the clock knows more.
    let half = Duration::from_millis(500);
    let (left, behind) = (moment.0.since(now.0), now.0.since(moment.0) + half);
    match ((left + half).as_secs(), behind.as_secs()) {
        (0, 0) if left.is_zero() => "now".to_owned(),
        (0, 0) => "in 1s".to_owned(),
        (0, _) => format!("{} ago", show_duration(behind)),
        (seconds, _) => format!("in {}", show_duration(Duration::from_secs(whole_minutes(left, seconds)))),
    }
}

/// Notices are of minutes, while a clock that runs is a second on or off by the time that somebody reads it. Never less than a
/// clock must be set forward by, to a whole second: a whole second too many is shown, and only a part of one is left out.
fn whole_minutes(left: Duration, seconds: u64) -> u64 {
    match seconds % 60 {
        1 if seconds > 60 && left < Duration::from_secs(seconds) => seconds - 1,
        59 if seconds > 60 => seconds + 1,
        _ => seconds,
    }
}

/// A phrase at the beginning of a sentence.
pub(super) fn capital(phrase: &str) -> String {
    let mut chars = phrase.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An event of that status, as a server shows it.
    pub(in super::super) fn event(status: &str) -> EventView {
        let not_before = (status == "Scheduled").then_some("2026-01-01T00:15:00Z");
        let by = (status == "Started").then_some("the failure of its host");
        serde_json::from_value(serde_json::json!({
            "id": "28512AF7-C957-4500-9BC4-842D6FB531E4", "tenant": "web", "kind": "Reboot", "status": status,
            "resources": ["web_0"], "source": "User", "description": "", "duration_seconds": -1,
            "not_before": not_before, "approved": false, "by": by, "cause": "restart by the owner",
            "progress": "waits for approval or for the end of the notice", "work": 1
        }))
        .unwrap()
    }

    fn nothing() -> Outcome {
        let now = "2026-01-01T00:00:00.25Z".parse().unwrap();
        let work = Vec::new();
        Outcome {
            now,
            changes: 1,
            events: Vec::new(),
            untold: Vec::new(),
            work,
            rollouts: Vec::new(),
            entry: None,
        }
    }

    #[test]
    fn an_announcement_says_until_when_and_how_to_approve() {
        let said = outcome(&Outcome { events: vec![event("Scheduled")], ..nothing() }, "restart of web_0");
        assert_eq!(
            said,
            "Reboot of web_0 is announced: event 28512AF7-C957-4500-9BC4-842D6FB531E4, \
             not before 2026-01-01 00:15:00Z (in 15m). \
             Approve it from the machine, or: forewarn event approve 28512AF7\n"
        );
    }

    #[test]
    fn a_rollout_says_its_number_and_each_event() {
        let other = EventView {
            id: "9F00AA11-0000-4000-8000-000000000000".to_owned(),
            kind: "Freeze".to_owned(),
            resources: vec!["db-0".to_owned(), "db-1".to_owned()],
            ..event("Scheduled")
        };
        let events = vec![event("Scheduled"), other];
        let untold = vec!["solo".to_owned(), "shop".to_owned()];
        let said = outcome(&Outcome { events, untold, rollouts: vec![3], ..nothing() }, "update of h1, h2");
        assert_eq!(
            said,
            "Rollout 3 is planned: update of h1, h2.\n\
             Reboot of web_0 is announced: event 28512AF7-C957-4500-9BC4-842D6FB531E4, \
             not before 2026-01-01 00:15:00Z (in 15m).\n\
             Freeze of db-0, db-1 is announced: event 9F00AA11-0000-4000-8000-000000000000, \
             not before 2026-01-01 00:15:00Z (in 15m).\n\
             Approve each from one of its machines, or: forewarn event approve 28512AF7 9F00AA11\n\
             Tenants solo, shop are not told, for want of enrolment.\n"
        );
    }

    #[test]
    fn what_started_at_once_is_not_to_be_approved() {
        let said = outcome(&Outcome { events: vec![event("Started")], ..nothing() }, "failure of h1");
        assert_eq!(
            said,
            "Reboot of web_0 has started: event 28512AF7-C957-4500-9BC4-842D6FB531E4, \
             by the failure of its host.\n"
        );
        let approved = EventView { approved: true, ..event("Scheduled") };
        let said = outcome(&Outcome { events: vec![approved], ..nothing() }, "restart of web_0");
        assert!(said.starts_with("Reboot of web_0 is announced and approved: "), "{said}");
        assert!(!said.contains("Approve"), "{said}");
    }

    #[test]
    fn what_makes_no_event_is_said_all_the_same() {
        assert_eq!(
            outcome(&Outcome { changes: 0, ..nothing() }, "stop of web_0"),
            "Already so: stop of web_0.\n"
        );
        assert_eq!(outcome(&nothing(), "brake off"), "Done: brake off.\n");
        assert_eq!(
            outcome(&Outcome { work: vec![7], ..nothing() }, "stop of web_0"),
            "Stop of web_0 is under way: no event goes with it.\n"
        );
        assert_eq!(
            outcome(&Outcome { untold: vec!["solo".to_owned()], ..nothing() }, "restart of solo"),
            "Restart of solo happens at once: tenant solo is not enrolled, so nobody is told.\n"
        );
    }

    #[test]
    fn moments_are_said_by_the_second_and_from_now() {
        let moment = |text: &str| text.parse::<Moment>().unwrap();
        let now = moment("2026-01-01T00:00:00.5Z");
        assert_eq!(when(moment("2026-01-01T00:09:50Z"), now), "2026-01-01 00:09:50Z (in 9m50s)");
        assert_eq!(when(moment("2026-01-01T00:15:01Z"), now), "2026-01-01 00:15:01Z (in 15m)");
        assert_eq!(when(moment("2026-01-01T00:15:02Z"), now), "2026-01-01 00:15:02Z (in 15m2s)");
        assert_eq!(when(moment("2026-01-01T00:14:59Z"), now), "2026-01-01 00:14:59Z (in 15m)");
        assert_eq!(when(moment("2026-01-01T00:00:59Z"), now), "2026-01-01 00:00:59Z (in 59s)");
        assert_eq!(when(moment("2026-01-01T00:15:00.9Z"), now), "2026-01-01 00:15:00Z (in 15m)");
        assert_eq!(when(now, now), "2026-01-01 00:00:00Z (now)");
        assert_eq!(when(moment("2026-01-01T00:00:00.7Z"), now), "2026-01-01 00:00:00Z (in 1s)");
        let whole = moment("2026-01-01T00:00:00Z");
        assert_eq!(when(moment("2026-01-01T00:15:01Z"), whole), "2026-01-01 00:15:01Z (in 15m1s)");
        assert_eq!(when(moment("2025-12-31T23:00:00Z"), now), "2025-12-31 23:00:00Z (1h1s ago)");
    }

    proptest::proptest! {
        /// A clock that is set forward stops on a whole second.
        #[test]
        fn a_clock_that_is_set_forward_by_what_is_said_gets_there(now in 0..10_000_000_i64, left in 0..2_000_i64) {
            let now = forewarn_lifecycle::Timestamp::from_millis(now);
            let moment = now.plus(Duration::from_secs(left.unsigned_abs())).rounded_up();
            let said = relative(Moment(moment), Moment(now));
            let span = said.strip_prefix("in ").map_or(Some(Duration::ZERO), forewarn_types::parse_duration);
            let stops = now.plus(span.unwrap()).rounded_up();
            proptest::prop_assert!(stops >= moment, "{said}: {stops:?} is before {moment:?}");
        }
    }
}
