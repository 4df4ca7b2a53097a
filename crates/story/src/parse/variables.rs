//! Variables of a story: `$name` stands for the text that `let` or `for` has given it.

use std::collections::BTreeMap;

use crate::error::StoryError;
use crate::line_reader::{LineReader, Token};
use crate::{EXPANDED_LINE_BYTES_MAX, VARIABLES_MAX};

/// The variables, and the values that they have now.
#[derive(Default)]
pub(super) struct Variables {
    values: BTreeMap<String, String>,
}

impl Variables {
    /// Sets a variable. Returns its former value.
    pub(super) fn set(
        &mut self,
        line: &LineReader<'_>,
        name: Token<'_>,
        value: String,
    ) -> Result<Option<String>, StoryError> {
        if self.values.len() >= VARIABLES_MAX && !self.values.contains_key(name.text) {
            return Err(line.error_at(name, format!("a story has at most {VARIABLES_MAX} variables")));
        }
        Ok(self.values.insert(name.text.to_owned(), value))
    }

    /// Gives a variable its former value again.
    pub(super) fn restore(&mut self, name: &str, former: Option<String>) {
        match former {
            Some(value) => drop(self.values.insert(name.to_owned(), value)),
            None => drop(self.values.remove(name)),
        }
    }

    /// The line with the values of its variables; `None` if it has no variable.
    pub(super) fn substitute(&self, number: usize, text: &str) -> Result<Option<String>, StoryError> {
        if !text.contains('$') {
            return Ok(None);
        }
        let line = LineReader::new(number, text);
        let (mut expanded, mut copied, mut changed) = (String::new(), 0, false);
        for word in line.words() {
            expanded.push_str(&text[copied..word.start]);
            copied = word.start + word.text.len();
            changed |= self.substitute_word(&line, word, &mut expanded)?;
            if expanded.len() > EXPANDED_LINE_BYTES_MAX {
                let message =
                    format!("with its variables, a line has at most {EXPANDED_LINE_BYTES_MAX} bytes");
                return Err(line.error_at(word, message));
            }
        }
        Ok(changed.then_some(expanded))
    }

    /// Appends a word with the values of its variables. Returns true if it has one. In a text, `$` before anything but a
    /// variable of the story is left alone: the text may be a command for a shell.
    fn substitute_word(
        &self,
        line: &LineReader<'_>,
        word: Token<'_>,
        expanded: &mut String,
    ) -> Result<bool, StoryError> {
        let is_text = word.text.starts_with('"');
        let (mut rest, mut changed) = (word.text, false);
        while let Some(place) = rest.find('$') {
            let (before, after) = rest.split_at(place);
            expanded.push_str(before);
            let (length, name) = reference(after);
            match name.and_then(|name| self.values.get(name)) {
                Some(value) if is_text => expanded.push_str(&inside_text(value)),
                Some(value) => expanded.push_str(value),
                None if is_text => expanded.push_str(&after[..length]),
                None => return Err(line.error_at(word, self.unknown(name))),
            }
            changed |= name.is_some_and(|name| self.values.contains_key(name));
            rest = &after[length..];
            if expanded.len() > EXPANDED_LINE_BYTES_MAX {
                break;
            }
        }
        expanded.push_str(rest);
        Ok(changed)
    }

    fn unknown(&self, name: Option<&str>) -> String {
        let Some(name) = name else { return "expected the name of a variable after `$`".to_owned() };
        let prefix = self
            .values
            .keys()
            .filter(|known| name.starts_with(known.as_str()))
            .max_by_key(|known| known.len());
        match prefix {
            Some(known) => {
                let rest = &name[known.len()..];
                format!("no such variable: {name}\nhint: write ${{{known}}}{rest}")
            }
            None => format!("no such variable: {name}\nhint: `let {name} = VALUE` before this line"),
        }
    }
}

/// The length of a reference at the beginning of a text, `$name` or `${name}`, and its name. Without a name, the length
/// is that of `$`.
fn reference(text: &str) -> (usize, Option<&str>) {
    let after = &text[1..];
    if let Some(braced) = after.strip_prefix('{') {
        let name = braced.split_once('}').map(|(name, _)| name).filter(|name| is_variable_name(name));
        return name.map_or((1, None), |name| (name.len() + 3, Some(name)));
    }
    let is_part = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let length = after.find(|character| !is_part(character)).unwrap_or(after.len());
    let name = Some(&after[..length]).filter(|name| is_variable_name(name));
    name.map_or((1, None), |name| (name.len() + 1, Some(name)))
}

/// Returns true if a word can be the name of a variable: letters, digits and underscores, without a digit at first.
pub(super) fn is_variable_name(word: &str) -> bool {
    let is_part = |character: char| character.is_ascii_alphanumeric() || character == '_';
    word.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') && word.chars().all(is_part)
}

/// A value as a part of a text: its own quotation marks are left out or escaped.
fn inside_text(value: &str) -> String {
    let whole = LineReader::new(1, value);
    let mut words = whole.words();
    match (words.next(), words.next()) {
        (Some(only), None) if only.text.starts_with('"') && only.unquoted().is_some() => {
            only.text[1..only.text.len() - 1].to_owned()
        }
        _ => value.replace('\\', "\\\\").replace('"', "\\\""),
    }
}
