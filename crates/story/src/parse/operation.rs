//! Parsing of operations on the fleet.

use forewarn_control::{
    ApproveWord, EnrolmentWord, FailureWord, NamedCommand, SettingsChange, UnenrolledWord,
};
use forewarn_types::Span;

use super::fleet::{fleet_operation, instances, profile, size, upgrading};
use super::host_step::{host_work, step_operation};
use super::{choice, host_mode, known, name, rollout};
use crate::error::StoryError;
use crate::line_reader::{LineReader, Token};
use crate::statement::{ApprovedBy, Operation, PolicyRule, RolloutOperation};
use crate::suggest::suggesting;

/// Every word with which a statement may begin, for suggestions.
pub(super) const VERBS: &[&str] = &[
    "host",
    "vm",
    "availabilityset",
    "service",
    "scaleset",
    "machine",
    "instance",
    "remove",
    "poll",
    "run",
    "restart",
    "redeploy",
    "delete",
    "reimage",
    "evict",
    "stop",
    "start",
    "deallocate",
    "update",
    "migrate",
    "reboot",
    "rollout",
    "pause",
    "resume",
    "change",
    "maintenance",
    "degrade",
    "fail",
    "recover",
    "done",
    "retry",
    "giveup",
    "clear",
    "approve",
    "cancel",
    "force",
    "brake",
    "policy",
    "windows",
    "model",
    "profile",
    "resize",
    "capacity",
    "upgrade",
    "forget",
    "move",
    "revise",
    "upgrading",
    "set",
    "enrolment",
    "fencing",
    "jam",
    "next",
    "advance",
    "step",
    "crash",
    "expect",
    "await",
    "refused",
    "at",
    "let",
    "repeat",
    "for",
    "randomly",
    "end",
];

pub(super) fn operation(line: &mut LineReader<'_>, verb: Token<'_>) -> Result<Operation, StoryError> {
    if let Some(commands) = fleet_operation(line, verb)? {
        return Ok(Operation::Perform(commands));
    }
    if let Some(command) = machine_operation(line, verb)? {
        return Ok(Operation::Perform(vec![command]));
    }
    if let Some(command) = host_operation(line, verb)? {
        return Ok(Operation::Perform(vec![command]));
    }
    if let Some(command) = step_operation(line, verb)? {
        return Ok(Operation::Perform(vec![command]));
    }
    Ok(match verb.text {
        "instance" => {
            let (command, times) = instances(line)?;
            Operation::Repeat { command, times }
        }
        "approve" => approve(line)?,
        "cancel" => match line.take_if("rollout") {
            Some(_) => Operation::Rollout(RolloutOperation::Cancel),
            None => Operation::Cancel(name(line, "an event, such as E1, or `rollout`")?),
        },
        "rollout" => Operation::Perform(vec![rollout::start(line)?]),
        "pause" | "resume" | "change" => Operation::Rollout(rollout::operation(line, verb.text)?),
        "force" => Operation::Force(name(line, "an event, such as E1")?),
        "brake" => Operation::Perform(vec![match choice(line, &["on", "off"])? {
            "on" => NamedCommand::BrakeOn {},
            _ => NamedCommand::BrakeOff {},
        }]),
        "policy" => policy(line)?,
        "windows" => Operation::Perform(vec![windows(line)?]),
        "model" => {
            let scale_set = known(line, "a scale set")?;
            let (terminate, os_image) = profile(line)?;
            Operation::Perform(vec![NamedCommand::ChangeModel { scale_set, terminate, os_image }])
        }
        "revise" => {
            Operation::Perform(vec![NamedCommand::ReviseModel { scale_set: known(line, "a scale set")? }])
        }
        "upgrading" => {
            let scale_set = known(line, "a scale set")?;
            let upgrade = upgrading(line)?;
            Operation::Perform(vec![NamedCommand::ChangeUpgradePolicy { scale_set, upgrade }])
        }
        "set" => Operation::Perform(vec![NamedCommand::ChangeSettings(setting(line)?)]),
        "enrolment" => Operation::Perform(vec![NamedCommand::ChangeSettings(enrolment(line)?)]),
        _ => return Err(line.error_at(verb, suggesting("unknown statement", verb.text, VERBS))),
    })
}

/// Parses an operation on one machine; `None` if the verb is another.
fn machine_operation(line: &mut LineReader<'_>, verb: Token<'_>) -> Result<Option<NamedCommand>, StoryError> {
    let known = |line: &mut LineReader<'_>| known(line, "a machine");
    Ok(Some(match verb.text {
        "restart" => NamedCommand::Restart { machine: known(line)? },
        "redeploy" => NamedCommand::Redeploy { machine: known(line)? },
        "delete" => NamedCommand::Delete { machine: known(line)? },
        "reimage" => NamedCommand::Reimage { machine: known(line)? },
        "evict" => NamedCommand::Evict { machine: known(line)? },
        "stop" => NamedCommand::Stop { machine: known(line)? },
        "start" => NamedCommand::Start { machine: known(line)? },
        "deallocate" => NamedCommand::Deallocate { machine: known(line)? },
        "forget" => forget(line)?,
        "move" => move_machine(line)?,
        "resize" => {
            let (machine, (cpus, memory)) = (known(line)?, size(line)?);
            NamedCommand::Resize { machine, cpus, memory }
        }
        "upgrade" => NamedCommand::UpgradeInstance { machine: known(line)? },
        "jam" => NamedCommand::Jam { machine: known(line)? },
        "profile" => {
            let machine = known(line)?;
            let (terminate, os_image) = profile(line)?;
            NamedCommand::ChangeProfile { machine, terminate, os_image }
        }
        _ => return Ok(None),
    }))
}

/// Reads `forget web_0`, or `forget host h1`.
fn forget(line: &mut LineReader<'_>) -> Result<NamedCommand, StoryError> {
    Ok(match line.take_if("host") {
        Some(_) => NamedCommand::ForgetHost { host: known(line, "a host")? },
        None => NamedCommand::Forget { machine: known(line, "a machine or `host`")? },
    })
}

/// Reads `move web_0 to h2`, or `move web_0 to h2 force`.
fn move_machine(line: &mut LineReader<'_>) -> Result<NamedCommand, StoryError> {
    let machine = known(line, "a machine")?;
    line.need_word("to")?;
    let host = known(line, "a host")?;
    Ok(NamedCommand::Move { machine, host, force: line.take_if("force").is_some() })
}

/// Parses an operation on hosts; `None` if the verb is another.
fn host_operation(line: &mut LineReader<'_>, verb: Token<'_>) -> Result<Option<NamedCommand>, StoryError> {
    if verb.text == "update" {
        return Ok(Some(match choice(line, &["host", "network"])? {
            "host" => NamedCommand::UpdateHosts(host_work(line)?),
            _ => NamedCommand::UpdateNetwork(host_work(line)?),
        }));
    }
    if verb.text == "maintenance" {
        return host_mode::operation(line).map(Some);
    }
    if !["migrate", "reboot", "degrade", "fail", "recover"].contains(&verb.text) {
        return Ok(None);
    }
    line.need_word("host")?;
    Ok(Some(match verb.text {
        "migrate" => NamedCommand::MigrateHosts(host_work(line)?),
        "reboot" => NamedCommand::RebootHosts(host_work(line)?),
        "degrade" => degrade(line)?,
        "fail" => {
            NamedCommand::FailHost { host: known(line, "a host")?, fenced: line.take_if("fenced").is_some() }
        }
        _ => NamedCommand::RecoverHost { host: known(line, "a host")? },
    }))
}

fn degrade(line: &mut LineReader<'_>) -> Result<NamedCommand, StoryError> {
    let host = known(line, "a host")?;
    let fails_in = match line.take_if("fails") {
        Some(_) => {
            line.need_word("in")?;
            Some(Span(line.need_duration()?))
        }
        None => None,
    };
    Ok(NamedCommand::DegradeHost { host, fails_in })
}

fn approve(line: &mut LineReader<'_>) -> Result<Operation, StoryError> {
    let mut what = vec![name(line, "a tenant, or events such as E1")?];
    while line.take_if("by").is_none() {
        what.push(name(line, "`by`")?);
    }
    let by = match line.take_if("owner") {
        Some(_) => {
            line.need_word("of")?;
            ApprovedBy::OwnerOf(name(line, "a tenant")?)
        }
        None => ApprovedBy::Machine(name(line, "a machine, or `owner of` a tenant")?),
    };
    Ok(Operation::Approve { what, by })
}

/// Parses the windows of a tenant: `any`, or windows with `and` between.
fn windows(line: &mut LineReader<'_>) -> Result<NamedCommand, StoryError> {
    let tenant = known(line, "a tenant")?;
    let mut windows = Vec::new();
    if line.take_if("any").is_none() {
        windows.push(rollout::window(line)?);
        while line.take_if("and").is_some() {
            windows.push(rollout::window(line)?);
        }
    }
    Ok(NamedCommand::ChangeWindows { tenant, windows: windows.into_iter().collect() })
}

fn policy(line: &mut LineReader<'_>) -> Result<Operation, StoryError> {
    let tenant = name(line, "a tenant")?;
    let rule = match choice(line, &["restart", "redeploy", "alldown"])? {
        "restart" => PolicyRule::Restart,
        "redeploy" => PolicyRule::Redeploy,
        _ => PolicyRule::AllDown,
    };
    let approve = match choice(line, &["automatic", "asked"])? {
        "automatic" => ApproveWord::Automatic,
        _ => ApproveWord::Asked,
    };
    Ok(Operation::Policy { tenant, rule, approve })
}

fn setting(line: &mut LineReader<'_>) -> Result<SettingsChange, StoryError> {
    let mut change = SettingsChange::default();
    match choice(line, &["unenrolled", "useroperations", "failure"])? {
        "unenrolled" => {
            change.unenrolled = Some(match choice(line, &["runs", "waits"])? {
                "runs" => UnenrolledWord::Runs,
                _ => UnenrolledWord::Waits,
            });
        }
        "useroperations" => change.user_operations_max = Some(user_operations(line)?),
        _ => {
            change.failure = Some(match choice(line, &["reboot", "redeploy"])? {
                "reboot" => FailureWord::Reboot,
                _ => FailureWord::Redeploy,
            });
        }
    }
    Ok(change)
}

fn enrolment(line: &mut LineReader<'_>) -> Result<SettingsChange, StoryError> {
    let word = match choice(line, &["always", "on-first-poll"])? {
        "always" => EnrolmentWord::Always,
        _ => EnrolmentWord::OnFirstPoll,
    };
    Ok(SettingsChange { enrolment: Some(word), ..SettingsChange::default() })
}

/// Parses a limit. In a command, 0 means unlimited; a story has a word for it.
fn user_operations(line: &mut LineReader<'_>) -> Result<u16, StoryError> {
    if line.take_if("unlimited").is_some() {
        return Ok(0);
    }
    let location = line.peek();
    match (line.need_number()?, location) {
        (0, Some(word)) => Err(line.error_at(word, "expected a number from 1, or `unlimited`")),
        (number, _) => Ok(number),
    }
}
