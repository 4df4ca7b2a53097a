//! Parsing of work on hosts, and of operations on a step on a host that is in progress, or has failed.

use forewarn_control::{HostWorkEntry, NamedCommand};

use super::known;
use crate::error::StoryError;
use crate::line_reader::{LineReader, Token};

/// Parses `h1 h2 [work WHAT]`: hosts, at least one, and what is to be done there.
pub(super) fn host_work(line: &mut LineReader<'_>) -> Result<HostWorkEntry, StoryError> {
    let mut hosts = vec![known(line, "a host")?];
    let work = loop {
        if line.take_if("work").is_some() {
            break Some(rest(line, "a text about the work")?);
        }
        match line.take() {
            Some(word) => hosts.push(word.text.to_owned()),
            None => break None,
        }
    };
    Ok(HostWorkEntry { work, ..HostWorkEntry::on(hosts) })
}

/// Parses `done host h1 [failed WHY]`, `retry host h1`, `giveup host h1`, `clear host h1`; `None` if the verb is another.
pub(super) fn step_operation(
    line: &mut LineReader<'_>,
    verb: Token<'_>,
) -> Result<Option<NamedCommand>, StoryError> {
    if !["done", "retry", "giveup", "clear"].contains(&verb.text) {
        return Ok(None);
    }
    line.need_word("host")?;
    let host = known(line, "a host")?;
    Ok(Some(match verb.text {
        "done" => {
            let has_failed = line.take_if("failed").is_some();
            let failed = has_failed.then(|| rest(line, "a reason")).transpose()?;
            NamedCommand::CompleteHost { host, failed }
        }
        "retry" => NamedCommand::RetryHost { host },
        "giveup" => NamedCommand::GiveUpHost { host },
        _ => NamedCommand::ClearHost { host },
    }))
}

/// All remaining words, at least one.
fn rest(line: &mut LineReader<'_>, what: &str) -> Result<String, StoryError> {
    let mut rest = known(line, what)?;
    while let Some(word) = line.take() {
        rest.push(' ');
        rest.push_str(word.text);
    }
    Ok(rest)
}
