//! Parsing of expectations.

use super::{choice, name};
use crate::error::StoryError;
use crate::line_reader::LineReader;
use crate::statement::{ApprovalSource, EventPhase, Expectation, Expected, StatementKind};
use crate::suggest::suggesting;

/// States of the last rollout.
pub(super) const STATES: [&str; 11] = [
    "going",
    "rests",
    "paused",
    "paused-by-failures",
    "finished",
    "cancelled",
    "waits-for-room",
    "waits-for-window",
    "waits-for-health",
    "waits-for-brake",
    "waits-for-confirmation",
];

/// Conditions of tenants, machines and hosts, for suggestions.
pub(super) const CONDITIONS: [&str; 20] = [
    "Scheduled",
    "Started",
    "nothing",
    "enrolled",
    "unenrolled",
    "incarnation",
    "on",
    "boots",
    "disk",
    "model",
    "running",
    "stopped",
    "deallocated",
    "gone",
    "entering",
    "entered",
    "incomplete",
    "open",
    "approved",
    "no start before approval",
];

/// Parses the expectations of `expect`.
pub(super) fn expectations(line: &mut LineReader<'_>) -> Result<Vec<Expectation>, StoryError> {
    let mut all = Vec::new();
    while !line.is_over() || all.is_empty() {
        all.push(expectation(line)?);
    }
    Ok(all)
}

/// Parses `web Started within 20m`.
pub(super) fn awaited(line: &mut LineReader<'_>) -> Result<StatementKind, StoryError> {
    let mut all = vec![expectation(line)?];
    while line.take_if("within").is_none() {
        if line.is_over() {
            return Err(line.error_at_end("expected `within` and a duration"));
        }
        all.push(expectation(line)?);
    }
    Ok(StatementKind::Await { all, within: line.need_duration()? })
}

fn expectation(line: &mut LineReader<'_>) -> Result<Expectation, StoryError> {
    let from = line.position();
    let subject = name(line, "a tenant, a machine or `rollout`")?;
    let is = match subject.as_str() {
        "rollout" => Expected::Rollout(choice(line, &STATES)?.to_owned()),
        "no" if line.take_if("start").is_some() => {
            line.need_word("before")?;
            line.need_word("approval")?;
            Expected::NoUnapprovedStart
        }
        _ => expected(line)?,
    };
    Ok(Expectation { subject, is, text: line.plain_from(from, line.position()) })
}

fn expected(line: &mut LineReader<'_>) -> Result<Expected, StoryError> {
    let word = line.need("a condition, such as Scheduled, nothing or gone")?;
    Ok(match word.text {
        "Scheduled" => events(line, EventPhase::Scheduled),
        "Started" => events(line, EventPhase::Started),
        "nothing" => Expected::Events(Vec::new()),
        "enrolled" => Expected::Enrolled,
        "unenrolled" => Expected::NotEnrolled,
        "incarnation" => Expected::Incarnation(line.need_number()?.into()),
        "on" => Expected::On(name(line, "a host")?),
        "boots" => Expected::Boots(line.need_number()?.into()),
        "disk" => Expected::Disk(line.need_number()?.into()),
        "model" => Expected::Model(line.need_number()?.into()),
        "running" => Expected::Power("running"),
        "stopped" => Expected::Power("stopped"),
        "deallocated" => Expected::Power("deallocated"),
        "gone" => Expected::Gone,
        "entering" => Expected::Mode("entering"),
        "entered" => Expected::Mode("entered"),
        "incomplete" => Expected::Mode("incomplete"),
        "open" => Expected::Mode("open"),
        "approved" => Expected::Approved(match line.take_if("by") {
            Some(_) => {
                line.need_word("itself")?;
                ApprovalSource::Itself
            }
            None => ApprovalSource::Anyone,
        }),
        _ => return Err(line.error_at(word, suggesting("unknown expectation", word.text, &CONDITIONS))),
    })
}

fn events(line: &mut LineReader<'_>, first: EventPhase) -> Expected {
    let mut all = vec![first];
    loop {
        if line.take_if("Scheduled").is_some() {
            all.push(EventPhase::Scheduled);
        } else if line.take_if("Started").is_some() {
            all.push(EventPhase::Started);
        } else {
            return Expected::Events(all);
        }
    }
}
