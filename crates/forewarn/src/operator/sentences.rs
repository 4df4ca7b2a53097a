//! Sentences of the output: the outcome of a command, the state of an event, points in time.

use std::time::Duration;

use forewarn_control::{EventView, Outcome, StartState};
use forewarn_types::{Moment, show_duration};

use super::event_id::short;
use super::table::some;
use super::unannounced;

/// The words for one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wording {
    /// A noun phrase: `restart of web_0`.
    pub(super) noun: String,
    /// The sentence for a change without events: `Settings changed.`
    pub(super) done: String,
    /// The sentence for no change: `web_0 is already running.`
    pub(super) unchanged: String,
}

impl Wording {
    /// The words for a new resource: `Scale set web created.`
    pub(super) fn creation(kind: &str, name: &str) -> Self {
        Self {
            noun: format!("creation of {kind} {name}"),
            done: format!("{} {name} created.", capital(kind)),
            unchanged: format!("{} {name} already exists.", capital(kind)),
        }
    }

    /// The words for a deleted resource: `Scale set web deleted.`
    pub(super) fn deletion(kind: &str, name: &str) -> Self {
        Self {
            noun: format!("deletion of {kind} {name}"),
            done: format!("{} {name} deleted.", capital(kind)),
            unchanged: format!("{} {name} does not exist.", capital(kind)),
        }
    }

    /// The words for a changed resource: `web updated.`
    pub(super) fn update(name: &str) -> Self {
        Self {
            noun: format!("update of {name}"),
            done: format!("{name} updated."),
            unchanged: format!("{name} already has these settings."),
        }
    }
}

/// The outcome of a command, one sentence per line.
pub(super) fn outcome(outcome: &Outcome, wording: &Wording) -> String {
    if outcome.changes == 0 {
        return format!("{}\n", wording.unchanged);
    }
    let mut lines = Vec::new();
    for rollout in &outcome.rollouts {
        lines.push(format!("Rollout {rollout} planned: {}.", wording.noun));
    }
    lines.extend(outcome.events.iter().map(|event| announced(event, outcome)));
    let open: Vec<_> = outcome.events.iter().filter(|event| is_open(event)).collect();
    if !open.is_empty() {
        let ids: Vec<_> = open.iter().map(|event| short(&event.id)).collect();
        let target = match open.as_slice() {
            [event] if event.resources.len() == 1 => "it from the machine",
            [_] => "it from one of the machines",
            _ => "each from one of its machines",
        };
        let hint = format!(" Approve {target}, or: forewarn event approve {}", ids.join(" "));
        match lines.as_mut_slice() {
            [only] => only.push_str(&hint),
            _ => lines.push(hint.trim_start().to_owned()),
        }
    }
    let (subject, time) = (capital(&wording.noun), |moment| when(moment, outcome.now));
    let unannounced = unannounced::sentences(outcome, &subject, &time);
    let without_notice = without_notice(&outcome.unnotified);
    lines.extend(Some(unannounced.into_iter().chain(without_notice).collect::<Vec<_>>().join(" ")));
    lines.retain(|line| !line.is_empty());
    if lines.is_empty() {
        lines.push(unannounced::work(outcome, &subject, &time).unwrap_or_else(|| wording.done.clone()));
    }
    if outcome.starts.iter().any(|start| start.brake) {
        lines.push("The brake is on: nothing starts until `forewarn brake off`.".to_owned());
    }
    match outcome.staying.as_slice() {
        [] => {}
        [one] => lines.push(format!("{one} left because of the maintenance mode, and stays as it is.")),
        several => {
            let names = some(several);
            lines.push(format!("{names} left because of the maintenance mode, and stay as they are."));
        }
    }
    lines.join("\n") + "\n"
}

/// The state of a new event.
fn announced(event: &EventView, outcome: &Outcome) -> String {
    let (what, id) = (what(event), &event.id);
    let held = outcome.start_of(event.work).filter(|start| start.state == StartState::Held);
    let held = held.map(|start| format!("; {}", start.progress)).unwrap_or_default();
    match (event.not_before, &event.by) {
        (Some(moment), _) => {
            let approved = if event.approved { " and approved" } else { "" };
            let when = when(moment, outcome.now);
            format!("{what} is announced{approved}: event {id}, not before {when}{held}.")
        }
        (None, Some(by)) => format!("{what} has started: event {id}, by {by}."),
        (None, None) => format!("{what} has started: event {id}."),
    }
}

/// True if the event waits for approval.
fn is_open(event: &EventView) -> bool {
    event.not_before.is_some() && !event.approved
}

/// The sentence about tenants that are not enrolled.
fn without_notice(tenants: &[String]) -> Option<String> {
    let (subject, machines) = match tenants {
        [] => return None,
        [tenant] => (format!("Tenant {tenant} gets"), "its machines"),
        several => (format!("Tenants {} get", some(several)), "their machines"),
    };
    Some(format!("{subject} no notice: none of {machines} has polled for events in the last 24 hours."))
}

/// The kind and the machines of an event: `Reboot of web_0`.
pub(super) fn what(event: &EventView) -> String {
    format!("{} of {}", event.kind, some(&event.resources))
}

/// The state of an event: `Reboot of web_0: waits for approval …`.
pub(super) fn state(event: &EventView, now: Moment) -> String {
    let until = event.not_before.map(|moment| format!(", not before {}", when(moment, now)));
    format!("{}: {}{}", what(event), event.progress, until.unwrap_or_default())
}

/// A point in time, absolute and relative: `2026-01-01 00:15:00Z (in 15m)`.
pub(super) fn when(moment: Moment, now: Moment) -> String {
    format!("{} ({})", date(moment), relative(moment, now))
}

/// The same for a narrow table: of a time today, the day is left out: `00:15:00Z (in 15m)`.
pub(super) fn short_when(moment: Moment, now: Moment) -> String {
    let (whole, today) = (when(moment, now), date(now));
    match (whole.split_once(' '), today.split_once(' ')) {
        (Some((day, time)), Some((same, _))) if day == same => time.to_owned(),
        (Some(_) | None, _) => whole,
    }
}

/// A point in time, to the second: `2026-01-01 00:15:00Z`.
pub(super) fn date(moment: Moment) -> String {
    let text = moment.to_string().replacen('T', " ", 1);
    match text.split_once('.') {
        Some((whole, _fraction)) => format!("{whole}Z"),
        None => text,
    }
}

/// The distance to a point in time: `in 15m`, `now`, `5s ago`.
fn relative(moment: Moment, now: Moment) -> String {
    // Rounded to a second: documents have whole seconds, the clock has fractions.
    let half = Duration::from_millis(500);
    let (left, behind) = (moment.0.since(now.0), now.0.since(moment.0) + half);
    match ((left + half).as_secs(), behind.as_secs()) {
        (0, 0) if left.is_zero() => "now".to_owned(),
        (0, 0) => "in 1s".to_owned(),
        (0, _) => format!("{} ago", show_duration(behind)),
        (seconds, _) => format!("in {}", show_duration(Duration::from_secs(whole_minutes(left, seconds)))),
    }
}

/// Rounds to a minute if only a second is missing or too many: notices last minutes, and a running clock moves on
/// before the text is read. The result is never too short to advance the clock by: it may be one second longer, and
/// drops only fractions.
fn whole_minutes(left: Duration, seconds: u64) -> u64 {
    match seconds % 60 {
        1 if seconds > 60 && left < Duration::from_secs(seconds) => seconds - 1,
        59 if seconds > 60 => seconds + 1,
        _ => seconds,
    }
}

/// The phrase with a capital first letter.
pub(super) fn capital(phrase: &str) -> String {
    let mut chars = phrase.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
pub(super) mod tests {
    use forewarn_control::{StartView, WorkNotice};

    use super::*;

    /// An event with this status.
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

    fn wording() -> Wording {
        let [noun, done, unchanged] = ["stop of web_0", "web_0 stopped.", "web_0 is already stopped."];
        Wording { noun: noun.to_owned(), done: done.to_owned(), unchanged: unchanged.to_owned() }
    }

    fn named(noun: &str) -> Wording {
        Wording { noun: noun.to_owned(), ..wording() }
    }

    fn nothing() -> Outcome {
        let now = "2026-01-01T00:00:00.25Z".parse().unwrap();
        let work = Vec::new();
        Outcome {
            now,
            changes: 1,
            events: Vec::new(),
            unnotified: Vec::new(),
            work,
            starts: Vec::new(),
            rollouts: Vec::new(),
            staying: Vec::new(),
            entry: None,
        }
    }

    #[test]
    fn an_announcement_says_until_when_and_how_to_approve() {
        let text = outcome(&Outcome { events: vec![event("Scheduled")], ..nothing() }, &wording());
        assert_eq!(
            text,
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
        let unnotified = vec!["solo".to_owned(), "shop".to_owned()];
        let text = outcome(
            &Outcome { events, unnotified, rollouts: vec![3], ..nothing() },
            &named("update of h1, h2"),
        );
        assert_eq!(
            text,
            "Rollout 3 planned: update of h1, h2.\n\
             Reboot of web_0 is announced: event 28512AF7-C957-4500-9BC4-842D6FB531E4, \
             not before 2026-01-01 00:15:00Z (in 15m).\n\
             Freeze of db-0, db-1 is announced: event 9F00AA11-0000-4000-8000-000000000000, \
             not before 2026-01-01 00:15:00Z (in 15m).\n\
             Approve each from one of its machines, or: forewarn event approve 28512AF7 9F00AA11\n\
             Tenants solo, shop get no notice: none of their machines has polled for events in the last 24 hours.\n"
        );
    }

    #[test]
    fn a_started_event_needs_no_approval() {
        let text = outcome(&Outcome { events: vec![event("Started")], ..nothing() }, &wording());
        assert_eq!(
            text,
            "Reboot of web_0 has started: event 28512AF7-C957-4500-9BC4-842D6FB531E4, \
             by the failure of its host.\n"
        );
        let approved = EventView { approved: true, ..event("Scheduled") };
        let text = outcome(&Outcome { events: vec![approved], ..nothing() }, &wording());
        assert!(text.starts_with("Reboot of web_0 is announced and approved: "), "{text}");
        assert!(!text.contains("Approve"), "{text}");
    }

    #[test]
    fn an_outcome_without_events_has_its_own_sentence() {
        assert_eq!(outcome(&Outcome { changes: 0, ..nothing() }, &wording()), "web_0 is already stopped.\n");
        assert_eq!(outcome(&nothing(), &wording()), "web_0 stopped.\n");
    }

    fn start(notice: WorkNotice, state: StartState) -> StartView {
        let not_before = (state == StartState::Waiting).then(|| "2026-01-01T00:15:00Z".parse().unwrap());
        StartView {
            work: 7,
            state,
            progress: "held by the brake".to_owned(),
            notice,
            not_before,
            unapproved: Vec::new(),
            unapproved_others: 0,
            brake: false,
            remedy: None,
        }
    }

    fn unannounced_text(notice: WorkNotice, state: StartState) -> String {
        let unnotified = match notice {
            WorkNotice::Unenrolled => vec!["solo".to_owned()],
            WorkNotice::Event | WorkNotice::None => Vec::new(),
        };
        outcome(
            &Outcome { work: vec![7], starts: vec![start(notice, state)], unnotified, ..nothing() },
            &wording(),
        )
    }

    #[test]
    fn the_start_of_work_on_unenrolled_tenants_is_as_decided() {
        let because =
            " Tenant solo gets no notice: none of its machines has polled for events in the last 24 hours.\n";
        for (state, words) in [
            (StartState::Started, "Stop of web_0 starts now."),
            (StartState::Due, "Stop of web_0 is about to start."),
            (StartState::Held, "Stop of web_0 has not started: held by the brake."),
            (
                StartState::Waiting,
                "Stop of web_0 starts at 2026-01-01 00:15:00Z (in 15m): it waits as long as a notice.",
            ),
        ] {
            assert_eq!(unannounced_text(WorkNotice::Unenrolled, state), format!("{words}{because}"));
        }
    }

    #[test]
    fn the_start_of_work_that_makes_no_events_is_as_decided() {
        for (state, words) in [
            (StartState::Started, "Stop of web_0 is in progress, without an event.\n"),
            (StartState::Due, "Stop of web_0 is about to start, without an event.\n"),
            (StartState::Held, "Stop of web_0 has not started, and has no event: held by the brake.\n"),
            (StartState::Withdrawn, "Stop of web_0 was withdrawn.\n"),
        ] {
            assert_eq!(unannounced_text(WorkNotice::None, state), words);
        }
        let unknown = outcome(&Outcome { work: vec![7], ..nothing() }, &wording());
        assert_eq!(unknown, "Stop of web_0 is accepted, without an event.\n");
    }

    #[test]
    fn work_beside_events_has_its_own_sentence() {
        let starts = vec![start(WorkNotice::Unenrolled, StartState::Started)];
        let (events, unnotified) = (vec![event("Scheduled")], vec!["solo".to_owned()]);
        let text = outcome(&Outcome { work: vec![7], starts, events, unnotified, ..nothing() }, &wording());
        assert!(
            text.contains("\nThe work without an event starts now. Tenant solo gets no notice"),
            "{text}"
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
        /// A clock that is advanced stops on a whole second.
        /// promise: N4
        #[test]
        fn a_clock_that_is_set_forward_by_what_is_said_gets_there(now in 0..10_000_000_i64, left in 0..2_000_i64) {
            let now = forewarn_lifecycle::Timestamp::from_millis(now);
            let moment = now.plus(Duration::from_secs(left.unsigned_abs())).rounded_up();
            let text = relative(Moment(moment), Moment(now));
            let span = text.strip_prefix("in ").map_or(Some(Duration::ZERO), forewarn_types::parse_duration);
            let stops = now.plus(span.unwrap()).rounded_up();
            proptest::prop_assert!(stops >= moment, "{text}: {stops:?} is before {moment:?}");
        }
    }
}
