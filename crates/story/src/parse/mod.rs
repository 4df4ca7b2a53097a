//! From text to statements. Says where it stumbles, and what it would have understood.

mod deed;
mod expect;
mod fleet;
mod rollout;

use forewarn_lifecycle::Name;
use forewarn_types::without_mark;

use crate::error::Mistake;
use crate::stage::ClockStep;
use crate::statement::{Named, Place, Says, Story, Told};
use crate::words::Line;
use crate::{LINE_BYTES_MAX, LINES_MAX};

/// Reads a story.
///
/// # Errors
/// When a line cannot be understood; the mistake points at the word.
pub fn parse(text: &str) -> Result<Story, Mistake> {
    let mut lines = Vec::new();
    for (index, text) in without_mark(text).lines().enumerate() {
        let mut line = Line::new(index + 1, text);
        if index >= LINES_MAX {
            return Err(line.mistake_at_end(format!("a story has at most {LINES_MAX} lines")));
        }
        if text.len() > LINE_BYTES_MAX {
            let mistake = Line::new(index + 1, "").mistake_at_end("");
            return Err(Mistake { message: format!("a line has at most {LINE_BYTES_MAX} bytes"), ..mistake });
        }
        if !line.is_empty() {
            lines.push(told(&mut line)?);
        }
    }
    Ok(Story { lines })
}

fn told(line: &mut Line<'_>) -> Result<Told, Mistake> {
    let at = match line.take_if("at") {
        Some(_) => Some(line.need_duration()?),
        None => None,
    };
    let says = says(line)?;
    line.end()?;
    Ok(Told { place: Place::of(line), at, says })
}

fn says(line: &mut Line<'_>) -> Result<Says, Mistake> {
    let word = line.need("what happens")?;
    Ok(match word.text {
        "advance" => Says::Advance(line.need_duration()?),
        "step" => {
            line.need_word("clock")?;
            match choice(line, &["forward", "back"])? {
                "forward" => Says::StepClock(ClockStep::Forward(line.need_duration()?)),
                _ => Says::StepClock(ClockStep::Back(line.need_duration()?)),
            }
        }
        "crash" => Says::Crash,
        "poll" => Says::Poll(match line.take_if("all") {
            Some(_) => None,
            None => Some(name(line, "a machine, or `all`")?),
        }),
        "expect" => Says::Expect(expect::expectations(line)?),
        "refused" => {
            let word = line.need("what is refused")?;
            Says::Refused(deed::deed(line, word)?)
        }
        _ => Says::Does(deed::deed(line, word)?),
    })
}

/// A name with its place, for what has to be looked up before anything is done.
fn name(line: &mut Line<'_>, what: &str) -> Result<Named, Mistake> {
    line.need(what).map(Named::new)
}

/// The name of something that should be there.
fn known(line: &mut Line<'_>, what: &str) -> Result<String, Mistake> {
    line.need(what).map(|word| word.text.to_owned())
}

/// The name of something that is to be there.
fn new_name(line: &mut Line<'_>) -> Result<String, Mistake> {
    let word = line.need("a name")?;
    let name = Name::new(word.text).map_err(|wrong| line.mistake(word, wrong.to_string()))?;
    Ok(name.to_string())
}

/// One of a few words.
fn choice<'c>(line: &mut Line<'_>, choices: &[&'c str]) -> Result<&'c str, Mistake> {
    let wanted = choices.iter().map(|choice| format!("`{choice}`")).collect::<Vec<_>>().join(" or ");
    let word = line.need(&wanted)?;
    let found = choices.iter().find(|choice| **choice == word.text);
    found.copied().ok_or_else(|| line.mistake(word, format!("here should be {wanted}")))
}
