//! Rollouts on terms: `rollout update h1 h2 with at-once 2 window 22:00-06:00`.

use forewarn_control::{
    AllWord, AnyWord, ConfirmWord, HealthWord, HostSelection, NamedCommand, RolloutEntry, TermsEntry,
    WindowEntry, WindowSelection, WorkWord, ZoneSelection,
};
use forewarn_types::Span;

use super::{choice, known};
use crate::error::StoryError;
use crate::line_reader::LineReader;
use crate::statement::RolloutOperation;

/// Keywords of the terms of a rollout.
const TERMS: [&str; 8] =
    ["at-once", "share", "one-fault-domain", "window", "pause", "confirm", "stop-after", "health"];

/// Parses the start of a rollout.
pub(super) fn start(line: &mut LineReader<'_>) -> Result<NamedCommand, StoryError> {
    let kind = match choice(line, &["update", "network", "migrate", "reboot"])? {
        "update" => WorkWord::Update,
        "network" => WorkWord::Network,
        "migrate" => WorkWord::Migrate,
        _ => WorkWord::Reboot,
    };
    let hosts = if line.take_if("all").is_some() {
        HostSelection::Every(AllWord::All)
    } else if line.take_if("zone").is_some() {
        HostSelection::Zone(ZoneSelection { zone: line.need_number()? })
    } else {
        HostSelection::Names(names(line)?)
    };
    let terms = if line.take_if("with").is_some() { terms(line)? } else { TermsEntry::default() };
    let (work, no_work, duration) = (None, false, None);
    Ok(NamedCommand::StartRollout(RolloutEntry {
        kind,
        hosts,
        except: Vec::new(),
        terms,
        work,
        no_work,
        duration,
    }))
}

/// Parses an operation on the oldest rollout.
pub(super) fn operation(line: &mut LineReader<'_>, verb: &str) -> Result<RolloutOperation, StoryError> {
    line.need_word("rollout")?;
    Ok(match verb {
        "pause" => RolloutOperation::Pause { take_back: line.take_if("taking-back").is_some() },
        "resume" => RolloutOperation::Resume,
        _ => change(line)?,
    })
}

fn change(line: &mut LineReader<'_>) -> Result<RolloutOperation, StoryError> {
    let (mut add, mut remove, mut new) = (Vec::new(), Vec::new(), TermsEntry::default());
    loop {
        match choice(line, &["add", "remove", "with"])? {
            "add" => add.extend(names(line)?),
            "remove" => remove.extend(names(line)?),
            _ => new = terms(line)?,
        }
        if line.is_over() {
            return Ok(RolloutOperation::Change { terms: new, add, remove });
        }
    }
}

/// Names of hosts, up to the next keyword.
fn names(line: &mut LineReader<'_>) -> Result<Vec<String>, StoryError> {
    let mut all = vec![known(line, "a host")?];
    while line.peek().is_some_and(|word| !["with", "add", "remove"].contains(&word.text)) {
        all.push(known(line, "a host")?);
    }
    Ok(all)
}

fn terms(line: &mut LineReader<'_>) -> Result<TermsEntry, StoryError> {
    let mut terms = TermsEntry::default();
    while !line.is_over() {
        match choice(line, &TERMS)? {
            "at-once" => terms.at_once = Some(line.need_number()?),
            "share" => terms.tenant_share = Some(percent(line)?),
            "one-fault-domain" => terms.one_fault_domain = Some(true),
            "window" if line.take_if("any").is_some() => {
                terms.windows = Some(WindowSelection::Any(AnyWord::Any));
            }
            "window" => {
                let before = terms.windows.iter().flat_map(WindowSelection::entries).cloned();
                terms.windows = Some(before.chain([window(line)?]).collect());
            }
            "pause" => terms.pause_between = Some(Span(line.need_duration()?)),
            "confirm" => {
                terms.confirm = Some(match choice(line, &["never", "first", "each"])? {
                    "never" => ConfirmWord::Never,
                    "first" => ConfirmWord::First,
                    _ => ConfirmWord::Each,
                });
            }
            "stop-after" if line.take_if("never").is_some() => terms.stop_after = Some(0),
            "stop-after" => terms.stop_after = Some(line.need_number()?),
            _ => {
                terms.health = Some(match choice(line, &["awaited", "machines", "ignored"])? {
                    "awaited" => HealthWord::Awaited,
                    "machines" => HealthWord::Machines,
                    _ => HealthWord::Ignored,
                });
            }
        }
    }
    Ok(terms)
}

pub(super) fn percent(line: &mut LineReader<'_>) -> Result<u8, StoryError> {
    let word = line.need("a percentage, such as 25%")?;
    let number = word.text.strip_suffix('%').and_then(|number| number.parse().ok());
    let number = number.filter(|number| (1..=100).contains(number));
    number.ok_or_else(|| line.error_at(word, "not a percentage; write 1% to 100%"))
}

/// Parses a window. Days may be several words, since commas separate; then the hours, and the offset from UTC or the
/// name of a time zone.
pub(super) fn window(line: &mut LineReader<'_>) -> Result<WindowEntry, StoryError> {
    let first = line.need("a window, such as mon-fri 22:00-06:00 +01:00")?;
    let mut days = Vec::new();
    let mut hours = first;
    while !hours.text.contains(':') {
        days.push(hours.text);
        hours = line.need("the hours of a window, such as 22:00-06:00")?;
    }
    let mut text = format!("{} {}", days.join(","), hours.text);
    let is_offset = |text: &str| text.contains(':') && text.starts_with(['+', '-']);
    let is_clock = |text: &str| is_offset(text) || text.contains('/');
    if let Some(clock) = line.peek().filter(|word| is_clock(word.text)).and_then(|_| line.take()) {
        text = format!("{text} {}", clock.text);
    }
    let wrong = || line.error_at(first, "not a window; write 22:00-06:00 or mon-fri 22:00-06:00 +01:00");
    text.trim().parse().map_err(|_| wrong())
}
