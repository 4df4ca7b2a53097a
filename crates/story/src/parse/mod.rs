//! Parsing of stories. An error points at the word and names what was expected.

mod block;
mod expand;
mod expect;
mod fault;
mod fleet;
mod host_mode;
mod host_step;
mod operation;
mod program;
mod rollout;
mod variables;

use forewarn_control::Fencing;
use forewarn_lifecycle::Name;
use forewarn_types::{parse_duration, without_mark};

use crate::backend::ClockStep;
use crate::error::StoryError;
use crate::line_reader::{LineReader, NOT_A_DURATION};
use crate::statement::{SourceLine, SourceName, Statement, StatementKind, StatementTime, Story};
use crate::suggest::suggesting;
use crate::{LINE_BYTES_MAX, LINES_MAX};
pub(crate) use block::{BLOCK_WORDS, END_WORD};
use expand::expand;

/// Parses a story.
///
/// # Errors
/// A line is invalid; the error points at the word.
pub fn parse(text: &str) -> Result<Story, StoryError> {
    let lines = source_lines(text)?;
    expand(&lines).map(|statements| Story { statements })
}

/// Every word with which a statement or a condition begins, for checks of the documentation.
pub fn language_words() -> impl Iterator<Item = &'static str> {
    let states = expect::STATES.iter().chain(&expect::CONDITIONS).filter(|word| !word.contains(' '));
    operation::VERBS.iter().chain(states).copied()
}

/// The lines of a story within the limits, each with its texts complete.
fn source_lines(text: &str) -> Result<Vec<&str>, StoryError> {
    let mut lines = Vec::new();
    for (index, text) in without_mark(text).lines().enumerate() {
        let line = LineReader::new(index + 1, text);
        if index >= LINES_MAX {
            return Err(line.error_at_end(format!("a story has at most {LINES_MAX} lines")));
        }
        if text.len() > LINE_BYTES_MAX {
            let message = format!("a line has at most {LINE_BYTES_MAX} bytes");
            return Err(LineReader::new(index + 1, "").error_at_end(message));
        }
        line.check_quotes()?;
        lines.push(text);
    }
    Ok(lines)
}

/// Parses a line that is no part of a block.
fn statement(line: &mut LineReader<'_>) -> Result<Statement, StoryError> {
    let at = match line.take_if("at") {
        Some(_) => Some(time(line)?),
        None => None,
    };
    let kind = kind(line)?;
    line.end()?;
    Ok(Statement { location: SourceLine::of(line), at, kind })
}

/// Parses `30s`, or `+30s`.
fn time(line: &mut LineReader<'_>) -> Result<StatementTime, StoryError> {
    match line.peek().and_then(|word| Some((word, word.text.strip_prefix('+')?))) {
        Some((word, span)) => {
            line.take();
            let span = parse_duration(span);
            span.map(StatementTime::After).ok_or_else(|| line.error_at(word, NOT_A_DURATION))
        }
        None => line.need_duration().map(StatementTime::Since),
    }
}

fn kind(line: &mut LineReader<'_>) -> Result<StatementKind, StoryError> {
    let word = line.need("a statement")?;
    Ok(match word.text {
        "advance" => StatementKind::Advance(line.need_duration()?),
        "step" => {
            line.need_word("clock")?;
            match choice(line, &["forward", "back"])? {
                "forward" => StatementKind::StepClock(ClockStep::Forward(line.need_duration()?)),
                _ => StatementKind::StepClock(ClockStep::Back(line.need_duration()?)),
            }
        }
        "crash" => StatementKind::Crash,
        "fencing" => StatementKind::Fencing(match choice(line, &["required", "off"])? {
            "required" => Fencing::Required,
            _ => Fencing::Off,
        }),
        "poll" => StatementKind::Poll(match line.take_if("all") {
            Some(_) => None,
            None => Some(name(line, "a machine, or `all`")?),
        }),
        "run" => program::run(line)?,
        "await" => expect::awaited(line)?,
        "next" => StatementKind::Inject(fault::fault(line)?),
        "expect" => StatementKind::Expect(expect::expectations(line)?),
        "refused" => {
            let word = line.need("a statement")?;
            StatementKind::Refused(operation::operation(line, word)?)
        }
        _ => StatementKind::Perform(operation::operation(line, word)?),
    })
}

/// A name with its column, for an object that is looked up when the story runs.
fn name(line: &mut LineReader<'_>, what: &str) -> Result<SourceName, StoryError> {
    line.need(what).map(SourceName::new)
}

/// The name of an existing object.
fn known(line: &mut LineReader<'_>, what: &str) -> Result<String, StoryError> {
    line.need(what).map(|word| word.text.to_owned())
}

/// The name of a new object.
fn new_name(line: &mut LineReader<'_>) -> Result<String, StoryError> {
    let word = line.need("a name")?;
    let name = Name::new(word.text).map_err(|wrong| line.error_at(word, wrong.to_string()))?;
    Ok(name.to_string())
}

/// One of a few words.
fn choice<'c>(line: &mut LineReader<'_>, choices: &[&'c str]) -> Result<&'c str, StoryError> {
    let wanted = choices.iter().map(|choice| format!("`{choice}`")).collect::<Vec<_>>().join(" or ");
    let word = line.need(&wanted)?;
    let found = choices.iter().find(|choice| **choice == word.text);
    let wrong = || suggesting(&format!("expected {wanted}"), word.text, choices);
    found.copied().ok_or_else(|| line.error_at(word, wrong()))
}
