//! `event explain`, `vm explain` and `scaleset explain`: what the server explains, laid out to be read.

use anyhow::Result;
use forewarn_explain::{
    AskedView, ComingView, EventExplanation, MachineExplanation, PollView, RefusedView, ScaleSetExplanation,
    Step,
};
use forewarn_types::Moment;
use serde_json::Value;

use super::Named;
use super::identifier::Beginning;
use super::say;
use super::session::{Session, escaped};
use super::table::Table;
use super::watch::who;

/// Entries of a history that are asked for at once: as many as a server gives.
const HISTORY_ITEMS: u16 = 200;

/// An event; or, where there is none, the machine or the scale set of which somebody misses one.
pub(super) fn whatever(session: &Session, what: &Named) -> Result<()> {
    let Named(name) = what;
    let beginning = name.parse::<Beginning>().ok();
    let id = beginning.as_ref().map(|beginning| beginning.look_for_any(session)).transpose()?.flatten();
    if let Some(id) = id {
        return session.show(&format!("/v1/events/{id}/explanation"), |event| Ok(of_event(&event)));
    }
    if let Some(set) = session.look(&place_of_scale_set(name))? {
        return session.present(set, |set| Ok(of_scale_set(&set)));
    }
    match (session.look(&place_of_machine(name))?, beginning) {
        (Some(machine), _) => session.present(machine, |machine| Ok(of_machine(&machine))),
        // It looks like an id, and is none: that is what is said of it.
        (None, Some(beginning)) => beginning.resolve_any(session).map(drop),
        (None, None) => machine(session, what, Extent::Newest),
    }
}

pub(super) fn scale_set(session: &Session, Named(name): &Named) -> Result<()> {
    session.show(&place_of_scale_set(name), |set| Ok(of_scale_set(&set)))
}

fn place_of_scale_set(name: &str) -> String {
    format!("/v1/scalesets/{}/explanation", escaped(name))
}

fn place_of_machine(name: &str) -> String {
    format!("/v1/machines/{}/explanation", escaped(name))
}

/// How much of a history is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// The newest of it.
    Newest,
    /// All that is kept.
    Whole,
}

pub(super) fn machine(session: &Session, Named(name): &Named, extent: Extent) -> Result<()> {
    let path = place_of_machine(name);
    if extent == Extent::Newest {
        return session.show(&path, |explanation| Ok(of_machine(&explanation)));
    }
    let mut whole: Value = session.get(&format!("{path}?limit={HISTORY_ITEMS}"))?;
    while let Some(before) = whole["next"].as_u64() {
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
    let when = |moment: Option<Moment>| moment.map(|moment| say::when(moment, event.now)).unwrap_or_default();
    let asked = event.asked.as_ref().map_or_else(|| "nobody, or that is not kept any more".to_owned(), asked);
    let facts = Table::facts([
        ("event", event.id.clone()),
        ("tenant", event.tenant.clone()),
        ("status", event.status.clone()),
        ("why", event.why.clone()),
        ("asked for by", asked),
        ("announced", when(event.announced)),
        ("not before", when(event.not_before)),
    ]);
    let mut text = format!("{}.\n\n{facts}", event.summary);
    section(
        &mut text,
        "Approved",
        event
            .approvals
            .iter()
            .map(|approval| format!("{} for {}, {}", approval.by, approval.tenant, say::date(approval.at))),
    );
    section(&mut text, "In the way", event.blockers.iter().map(|blocker| say::capital(blocker)));
    section(
        &mut text,
        "Failed",
        event.failures.iter().map(|failure| format!("{}: {}", failure.machine, failure.reason)),
    );
    section(&mut text, "Next", event.next.iter().map(|next| say::capital(next)));
    section(
        &mut text,
        "What is done",
        event.machines.iter().map(|fate| format!("{} {}", fate.machine, fate.text)),
    );
    section(&mut text, "Who has seen it", event.polls.iter().map(|poll| seen(poll, event.now)));
    notes(&mut text, &event.refused, &event.hints);
    section(&mut text, "So far", event.history.iter().map(step));
    text
}

fn of_machine(machine: &MachineExplanation) -> String {
    let last = match &machine.asked_last {
        Some(poll) => asked_last(poll, machine.now),
        None => "not since the server started".to_owned(),
    };
    let enrolled = if machine.enrolled { "yes" } else { "no" };
    let facts = Table::facts([
        ("machine", machine.name.clone()),
        ("asked for events", last),
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
    let enrolled = if set.enrolled { "yes" } else { "no" };
    let facts = Table::facts([("scale set", set.name.clone()), ("enrolled", enrolled.to_owned())]);
    let mut text = format!("{}.\n\n{facts}", set.summary);
    section(&mut text, "Coming", set.coming.iter().map(coming));
    notes(&mut text, &set.refused, &set.hints);
    text
}

fn coming(coming: &ComingView) -> String {
    let id = coming.event.as_ref().map(|id| format!(" [{id}]"));
    format!("{}{}", say::capital(&coming.text), id.unwrap_or_default())
}

/// What clients of Azure were refused, and what is unusual.
fn notes(text: &mut String, refused: &[RefusedView], hints: &[String]) {
    section(text, "Refused", refused.iter().map(refusal));
    section(text, "Notes", hints.iter().map(|hint| say::capital(hint)));
}

fn refusal(refused: &RefusedView) -> String {
    let RefusedView { at, by, method, resource, api_version, code, message, .. } = refused;
    let version = api_version.as_ref().map(|version| format!(" with api-version {version}"));
    let (at, version) = (say::date(*at), version.unwrap_or_default());
    format!("{at}  {method}{version}, by {by}: {code}, {message}\n    {resource}")
}

/// A heading, and a line for each thing; nothing, if there is none.
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

fn step(step: &Step) -> String {
    let mut line = format!("{}  {:<9}  {}{}", say::date(step.at), step.kind, step.text, who(Some(&step.by)));
    // What made this very step happen says more than what the whole work came of.
    let told = match (&step.asked, &step.origin) {
        (Some(command), _) => Some(("because of", command)),
        (None, Some(command)) => Some(("goes back to", command)),
        (None, None) => None,
    };
    if let Some((how, command)) = told {
        line.push_str(&format!("\n    {how} entry {}, by {}", command.number, asked(command)));
    }
    line
}

fn asked(asked: &AskedView) -> String {
    format!("{}: {}", asked.by, asked.text)
}

fn asked_last(poll: &PollView, now: Moment) -> String {
    let last = poll.last.map(|last| say::when(last, now)).unwrap_or_default();
    format!("{last}, with api-version {}", poll.edition.as_deref().unwrap_or("-"))
}

fn seen(poll: &PollView, now: Moment) -> String {
    match (poll.last, poll.shown) {
        (None, _) => format!("{}: has not asked since the server started", poll.machine),
        (Some(_), true) => format!("{}: has seen it; asked {}", poll.machine, asked_last(poll, now)),
        (Some(_), false) => format!("{}: has not asked since; asked {}", poll.machine, asked_last(poll, now)),
    }
}
