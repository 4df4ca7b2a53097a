//! `event explain`, `vm explain` and `scaleset explain`: prints the explanations of the server.

use anyhow::Result;
use forewarn_explain::{
    EventExplanation, HistoryEntry, MachineExplanation, PollView, RefusedView, RequestView,
    ScaleSetExplanation, UpcomingView,
};
use forewarn_types::Moment;
use serde_json::Value;

use super::Name;
use super::event_id::EventIdPrefix;
use super::sentences;
use super::session::{Session, escaped};
use super::table::Table;
use super::watch::caller;

/// Entries of a history in one response: the maximum of the server.
const HISTORY_ITEMS: u16 = 200;

/// Explains an event or, if there is none with this id, the machine or scale set of this name.
pub(super) fn find(session: &Session, target: &Name) -> Result<()> {
    let Name(name) = target;
    let prefix = name.parse::<EventIdPrefix>().ok();
    let id = prefix.as_ref().map(|prefix| prefix.look_for_any(session)).transpose()?.flatten();
    if let Some(id) = id {
        return session.show(&format!("/v1/events/{id}/explanation"), |event| Ok(of_event(&event)));
    }
    if let Some(set) = session.find(&scale_set_path(name))? {
        return session.present(set, |set| Ok(of_scale_set(&set)));
    }
    match (session.find(&machine_path(name))?, prefix) {
        (Some(machine), _) => session.present(machine, |machine| Ok(of_machine(&machine))),
        // A possible id, but no event has it: report the unknown event.
        (None, Some(prefix)) => prefix.resolve_any(session).map(drop),
        (None, None) => machine(session, target, HistoryExtent::Newest),
    }
}

pub(super) fn scale_set(session: &Session, Name(name): &Name) -> Result<()> {
    session.show(&scale_set_path(name), |set| Ok(of_scale_set(&set)))
}

fn scale_set_path(name: &str) -> String {
    format!("/v1/scalesets/{}/explanation", escaped(name))
}

fn machine_path(name: &str) -> String {
    format!("/v1/machines/{}/explanation", escaped(name))
}

/// The part of a history to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HistoryExtent {
    Newest,
    Whole,
}

pub(super) fn machine(session: &Session, Name(name): &Name, extent: HistoryExtent) -> Result<()> {
    let path = machine_path(name);
    if extent == HistoryExtent::Newest {
        return session.show(&path, |explanation| Ok(of_machine(&explanation)));
    }
    let mut whole: Value = session.get(&format!("{path}?limit={HISTORY_ITEMS}"))?;
    while let Some(before) = whole["next"].as_str().map(escaped) {
        let mut more: Value = session.get(&format!("{path}?limit={HISTORY_ITEMS}&before={before}"))?;
        if let (Some(history), Value::Array(older)) =
            (whole["history"].as_array_mut(), more["history"].take())
        {
            history.extend(older);
        }
        whole["next"] = more["next"].take();
    }
    if let Some(members) = whole.as_object_mut() {
        members.remove("next");
    }
    session.present(whole, |explanation| Ok(of_machine(&explanation)))
}

fn of_event(event: &EventExplanation) -> String {
    let when =
        |moment: Option<Moment>| moment.map(|moment| sentences::when(moment, event.now)).unwrap_or_default();
    let asked = event
        .request
        .as_ref()
        .map_or_else(|| "unknown: no request, or no longer in the audit log".to_owned(), asked);
    let facts = Table::facts([
        ("event", event.id.clone()),
        ("tenant", event.tenant.clone()),
        ("status", event.status.clone()),
        ("why", event.why.clone()),
        ("requested by", asked),
        ("announced", when(event.announced)),
        ("not before", when(event.not_before)),
    ]);
    let mut text = format!("{}.\n\n{facts}", event.summary);
    section(
        &mut text,
        "Approved",
        event.approvals.iter().map(|approval| {
            format!("{} for {}, {}", approval.by, approval.tenant, sentences::date(approval.at))
        }),
    );
    section(&mut text, "Blockers", event.blockers.iter().map(|blocker| sentences::capital(blocker)));
    section(
        &mut text,
        "Failed",
        event.failures.iter().map(|failure| format!("{}: {}", failure.machine, failure.reason)),
    );
    section(&mut text, "Next", event.next.iter().map(|next| sentences::capital(next)));
    section(
        &mut text,
        "Operations",
        event.machines.iter().map(|fate| format!("{} {}", fate.machine, fate.text)),
    );
    section(&mut text, "Polls", event.polls.iter().map(|poll| poll_line(poll, event.now)));
    notes(&mut text, &event.refused, &event.hints);
    section(&mut text, "History", event.history.iter().map(step));
    text
}

fn of_machine(machine: &MachineExplanation) -> String {
    let last = match &machine.last_poll {
        Some(poll) => last_poll(poll, machine.now),
        None => "never since the server started".to_owned(),
    };
    let enrolled = enrolled(machine.enrolled, machine.enrolled_by_setting);
    let facts = Table::facts([
        ("machine", machine.name.clone()),
        ("last poll", last),
        ("enrolled", enrolled.to_owned()),
    ]);
    let mut text = format!("{}.\n\n{facts}", machine.summary);
    section(&mut text, "Coming", machine.coming.iter().map(coming));
    notes(&mut text, &machine.refused, &machine.hints);
    section(&mut text, "History, newest first", machine.history.iter().map(step));
    if machine.next.is_some() {
        text.push_str("  … and older: --all\n");
    }
    text
}

fn of_scale_set(set: &ScaleSetExplanation) -> String {
    let enrolled = enrolled(set.enrolled, set.enrolled_by_setting);
    let facts = Table::facts([("scale set", set.name.clone()), ("enrolled", enrolled.to_owned())]);
    let mut text = format!("{}.\n\n{facts}", set.summary);
    section(&mut text, "Coming", set.coming.iter().map(coming));
    notes(&mut text, &set.refused, &set.hints);
    text
}

/// The enrolment, in words.
pub(super) fn enrolled(is_enrolled: bool, by_setting: bool) -> &'static str {
    match (is_enrolled, by_setting) {
        (true, true) => "yes, by setting",
        (true, false) => "yes",
        (false, _) => "no",
    }
}

fn coming(coming: &UpcomingView) -> String {
    let id = coming.event.as_ref().map(|id| format!(" [{id}]"));
    format!("{}{}", sentences::capital(&coming.text), id.unwrap_or_default())
}

/// The rejected requests of Azure clients, and the notes.
fn notes(text: &mut String, refused: &[RefusedView], hints: &[String]) {
    section(text, "Rejected requests", refused.iter().map(refusal));
    section(text, "Notes", hints.iter().map(|hint| sentences::capital(hint)));
}

fn refusal(refused: &RefusedView) -> String {
    let RefusedView { at, by, method, resource, api_version, code, message, .. } = refused;
    let version = api_version.as_ref().map(|version| format!(" with api-version {version}"));
    let (at, version) = (sentences::date(*at), version.unwrap_or_default());
    format!("{at}  {method}{version}, by {by}: {code}, {message}\n    {resource}")
}

/// A heading with lines. Nothing without lines.
fn section(text: &mut String, heading: &str, lines: impl Iterator<Item = String>) {
    let mut lines = lines.peekable();
    if lines.peek().is_none() {
        return;
    }
    text.push_str(&format!("\n{heading}\n"));
    for line in lines {
        text.push_str(&format!("  {line}\n"));
    }
}

fn step(step: &HistoryEntry) -> String {
    let mut line =
        format!("{}  {:<9}  {}{}", sentences::date(step.at), step.kind, step.text, caller(Some(&step.by)));
    // The request for this step is more specific than the request for the whole work.
    let request = match (&step.request, &step.origin) {
        (Some(command), _) => Some(("caused by", command)),
        (None, Some(command)) => Some(("originally from", command)),
        (None, None) => None,
    };
    if let Some((how, command)) = request {
        line.push_str(&format!("\n    {how} entry {}, by {}", command.number, asked(command)));
    }
    line
}

fn asked(asked: &RequestView) -> String {
    format!("{}: {}", asked.by, asked.text)
}

fn last_poll(poll: &PollView, now: Moment) -> String {
    let last = poll.last.map(|last| sentences::when(last, now)).unwrap_or_default();
    format!("{last}, with api-version {}", poll.edition.as_deref().unwrap_or("-"))
}

fn poll_line(poll: &PollView, now: Moment) -> String {
    match (poll.last, poll.shown) {
        (None, _) => format!("{}: has not polled since the server started", poll.machine),
        (Some(_), true) => {
            format!("{}: has received the event; last poll {}", poll.machine, last_poll(poll, now))
        }
        (Some(_), false) => {
            format!("{}: has not received the event; last poll {}", poll.machine, last_poll(poll, now))
        }
    }
}
