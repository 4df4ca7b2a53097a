//! Parsing of expectations.

use super::{choice, name};
use crate::error::StoryError;
use crate::line_reader::LineReader;
use crate::statement::{EventPhase, Expectation, Expected};

/// States of the last rollout.
const STATES: [&str; 11] = [
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

pub(super) fn expectations(line: &mut LineReader<'_>) -> Result<Vec<Expectation>, StoryError> {
    let mut all = Vec::new();
    while !line.is_over() || all.is_empty() {
        let subject = name(line, "a tenant, a machine or `rollout`")?;
        let is = match subject.as_str() {
            "rollout" => Expected::Rollout(choice(line, &STATES)?.to_owned()),
            _ => expected(line)?,
        };
        all.push(Expectation { subject, is });
    }
    Ok(all)
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
        _ => return Err(line.error_at(word, "unknown expectation")),
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
