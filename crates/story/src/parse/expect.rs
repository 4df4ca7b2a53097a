//! What a story expects.

use super::{choice, name};
use crate::error::Mistake;
use crate::statement::{Expectation, Expected, Seen};
use crate::words::Line;

/// How the last rollout may stand.
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

pub(super) fn expectations(line: &mut Line<'_>) -> Result<Vec<Expectation>, Mistake> {
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

fn expected(line: &mut Line<'_>) -> Result<Expected, Mistake> {
    let word = line.need("what is expected, such as Scheduled, nothing or gone")?;
    Ok(match word.text {
        "Scheduled" => events(line, Seen::Scheduled),
        "Started" => events(line, Seen::Started),
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
        _ => return Err(line.mistake(word, "not something that can be expected")),
    })
}

fn events(line: &mut Line<'_>, first: Seen) -> Expected {
    let mut all = vec![first];
    loop {
        if line.take_if("Scheduled").is_some() {
            all.push(Seen::Scheduled);
        } else if line.take_if("Started").is_some() {
            all.push(Seen::Started);
        } else {
            return Expected::Events(all);
        }
    }
}
