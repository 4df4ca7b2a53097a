//! Expansion of a story: variables get their values, blocks are repeated. The result is a list of statements, each with
//! the line that it comes from.

use std::time::Duration;

use super::block::{BlockItem, blocks};
use super::statement;
use super::variables::{Variables, is_variable_name};
use crate::error::StoryError;
use crate::line_reader::{LineReader, Token};
use crate::random::SeededNumbers;
use crate::statement::{Statement, StatementKind, StatementTime, expanded};
use crate::{EXPANDED_BYTES_MAX, STATEMENTS_MAX};

/// Expands the lines of a story.
pub(super) fn expand(lines: &[&str]) -> Result<Vec<Statement>, StoryError> {
    let items = blocks(lines)?;
    let mut expander = Expander { lines, ..Expander::default() };
    expander.items(&items)?;
    Ok(expander.statements)
}

#[derive(Default)]
struct Expander<'a> {
    lines: &'a [&'a str],
    variables: Variables,
    statements: Vec<Statement>,
    /// Lines and rounds of blocks so far.
    steps: usize,
    /// Bytes of lines so far.
    bytes: usize,
}

/// The header of a block.
enum BlockHeader {
    Repeat(u32),
    For { name: String, column: usize, values: ForValues },
    Randomly { seed: u64, times: u32, between: (Duration, Duration) },
}

/// The values of the variable of a `for`.
enum ForValues {
    /// Numbers from the first to before the last.
    Range(u32, u32),
    Words(Vec<String>),
}

impl Expander<'_> {
    fn items(&mut self, items: &[BlockItem]) -> Result<(), StoryError> {
        items.iter().try_for_each(|item| match item {
            BlockItem::Line(index) => self.line(*index),
            BlockItem::Block { header, items } => self.block(*header, items),
        })
    }

    fn line(&mut self, index: usize) -> Result<(), StoryError> {
        let is_let = |line: &LineReader<'_>| line.peek().is_some_and(|word| word.text == "let");
        if is_let(&LineReader::new(index + 1, self.lines[index])) {
            return self.with_line(index, Self::define);
        }
        let statement = self.statement(index)?;
        self.statements.push(statement);
        Ok(())
    }

    /// Parses the statement on a line.
    fn statement(&mut self, index: usize) -> Result<Statement, StoryError> {
        let written = self.lines[index];
        self.with_line(index, |_, line| {
            let mut statement = statement(line)?;
            if line.text() != written {
                statement.location = statement.location.written(written);
            }
            Ok(statement)
        })
    }

    /// Reads a line with the values of its variables. An error shows them.
    fn with_line<T>(
        &mut self,
        index: usize,
        read: impl FnOnce(&mut Self, &mut LineReader<'_>) -> Result<T, StoryError>,
    ) -> Result<T, StoryError> {
        let written = self.lines[index];
        match self.variables.substitute(index + 1, written)? {
            None => {
                self.step(index, written.len())?;
                read(self, &mut LineReader::new(index + 1, written))
            }
            Some(text) => {
                self.step(index, text.len())?;
                let mut line = LineReader::new(index + 1, &text);
                let result = line.check_quotes().and_then(|()| read(self, &mut line));
                result.map_err(|error| StoryError {
                    message: expanded(&error.message, written.trim()),
                    ..error
                })
            }
        }
    }

    /// Counts a line or a round.
    fn step(&mut self, index: usize, bytes: usize) -> Result<(), StoryError> {
        self.steps += 1;
        self.bytes += bytes;
        if self.steps > STATEMENTS_MAX || self.bytes > EXPANDED_BYTES_MAX {
            let line = LineReader::new(index + 1, self.lines[index]);
            let message = format!(
                "after repetitions, a story has at most {STATEMENTS_MAX} statements and {EXPANDED_BYTES_MAX} bytes"
            );
            return Err(line.error_at_end(message));
        }
        Ok(())
    }

    /// Reads `let NAME = VALUE`.
    fn define(&mut self, line: &mut LineReader<'_>) -> Result<(), StoryError> {
        line.need_word("let")?;
        let name = variable(line)?;
        line.need_word("=")?;
        let value = rest(line, "a value")?.join(" ");
        self.variables.set(line, name, value).map(drop)
    }

    fn block(&mut self, header: usize, items: &[BlockItem]) -> Result<(), StoryError> {
        match self.with_line(header, |_, line| block_header(line))? {
            BlockHeader::Repeat(times) => {
                for _ in 0..times {
                    self.step(header, 0)?;
                    self.items(items)?;
                }
                Ok(())
            }
            BlockHeader::For { name, column, values } => {
                let values: Box<dyn Iterator<Item = String>> = match values {
                    ForValues::Range(from, to) => Box::new((from..to).map(|number| number.to_string())),
                    ForValues::Words(words) => Box::new(words.into_iter()),
                };
                self.each(header, (&name, column), values, items)
            }
            BlockHeader::Randomly { seed, times, between } => {
                self.randomly(header, items, &mut SeededNumbers::new(seed), (times, between))
            }
        }
    }

    fn each(
        &mut self,
        header: usize,
        (name, column): (&str, usize),
        values: impl Iterator<Item = String>,
        items: &[BlockItem],
    ) -> Result<(), StoryError> {
        let line = LineReader::new(header + 1, self.lines[header]);
        let token = Token { text: name, column, start: 0 };
        // Nested blocks may use the name again: the outer value returns at their end.
        let mut former = None;
        for (round, value) in values.enumerate() {
            self.step(header, value.len())?;
            let replaced = self.variables.set(&line, token, value)?;
            if round == 0 {
                former = Some(replaced);
            }
            self.items(items)?;
        }
        // Without a round, nothing was replaced.
        if let Some(former) = former {
            self.variables.restore(name, former);
        }
        Ok(())
    }

    /// Carries out a random line of the block, again and again, each after a random time.
    fn randomly(
        &mut self,
        header: usize,
        items: &[BlockItem],
        numbers: &mut SeededNumbers,
        (times, (shortest, longest)): (u32, (Duration, Duration)),
    ) -> Result<(), StoryError> {
        let line = LineReader::new(header + 1, self.lines[header]);
        let mut candidates = Vec::new();
        for item in items {
            match item {
                BlockItem::Line(index) => candidates.push(*index),
                BlockItem::Block { header, .. } => {
                    let inner = LineReader::new(header + 1, self.lines[*header]);
                    return Err(inner.error_at_end("a block cannot be a part of `randomly`"));
                }
            }
        }
        if candidates.is_empty() {
            return Err(line.error_at_end("`randomly` needs at least one line before its `end`"));
        }
        let spread = longest.saturating_sub(shortest).as_secs().saturating_add(1);
        for _ in 0..times {
            let wait = shortest.saturating_add(Duration::from_secs(numbers.below(spread)));
            let chosen = usize::try_from(numbers.below(candidates.len() as u64)).unwrap_or(0);
            let mut statement = self.statement(candidates[chosen])?;
            if statement.at.is_some() {
                return Err(statement.location.error_on_line("a line of `randomly` has no time of its own"));
            }
            statement.at = Some(StatementTime::After(wait));
            statement.kind = if let StatementKind::Perform(operation) = statement.kind {
                StatementKind::Attempt(operation)
            } else {
                statement.kind
            };
            self.statements.push(statement);
        }
        Ok(())
    }
}

fn block_header(line: &mut LineReader<'_>) -> Result<BlockHeader, StoryError> {
    let word = line.need("a block")?;
    let header = match word.text {
        "repeat" => BlockHeader::Repeat(times(line)?),
        "for" => {
            let name = variable(line)?;
            line.need_word("in")?;
            let values = for_values(line)?;
            BlockHeader::For { name: name.text.to_owned(), column: name.column, values }
        }
        _ => {
            line.need_word("seed")?;
            let seed = line.need_large_number()?;
            let times = times(line)?;
            line.need_word("between")?;
            let shortest = line.need_duration()?;
            line.need_word("and")?;
            let location = line.peek();
            let longest = line.need_duration()?;
            if let Some(word) = location.filter(|_| longest < shortest) {
                return Err(line.error_at(word, "the second time is shorter than the first"));
            }
            BlockHeader::Randomly { seed, times, between: (shortest, longest) }
        }
    };
    line.end()?;
    Ok(header)
}

/// Reads `20 times`.
fn times(line: &mut LineReader<'_>) -> Result<u32, StoryError> {
    let times = line.need_count()?;
    line.need_word("times")?;
    Ok(times)
}

/// Reads the name of a variable.
fn variable<'t>(line: &mut LineReader<'t>) -> Result<Token<'t>, StoryError> {
    let word = line.need("the name of a variable")?;
    if is_variable_name(word.text) {
        return Ok(word);
    }
    let message = "the name of a variable has letters, digits and underscores, and begins with no digit";
    Err(line.error_at(word, message))
}

/// Reads `0..4`, or words.
fn for_values(line: &mut LineReader<'_>) -> Result<ForValues, StoryError> {
    let what = "a range, such as 0..4, or words";
    match line.peek().and_then(|word| Some((word, word.text.split_once("..")?))) {
        Some((word, (from, to))) => {
            line.take();
            match (from.parse(), to.parse()) {
                (Ok(from), Ok(to)) => Ok(ForValues::Range(from, to)),
                (Ok(_) | Err(_), _) => Err(line.error_at(word, format!("expected {what}"))),
            }
        }
        None => rest(line, what).map(ForValues::Words),
    }
}

/// All remaining words, at least one.
fn rest(line: &mut LineReader<'_>, what: &str) -> Result<Vec<String>, StoryError> {
    let mut words = vec![line.need(what)?.text.to_owned()];
    while let Some(word) = line.take() {
        words.push(word.text.to_owned());
    }
    Ok(words)
}
