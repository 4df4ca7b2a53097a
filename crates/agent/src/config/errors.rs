//! Errors in the settings, with their positions. All of them are collected before they are reported.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use forewarn_types::plain_file_error;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// Limit of reported errors. A file with more is probably not a settings file.
const PROBLEMS_MAX: usize = 100;

/// An error in the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigError {
    /// The file.
    pub(crate) file: PathBuf,
    /// The line, from 1; `None` if the error has no position.
    pub(crate) line: Option<usize>,
    /// The message, with an optional hint on a second line.
    pub(crate) message: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, message } = self;
        match line {
            Some(line) => write!(out, "{}:{line}: {message}", file.display()),
            None => write!(out, "{}: {message}", file.display()),
        }
    }
}

/// The text of a settings file, and the errors in it so far.
pub(super) struct ConfigReport<'a> {
    file: &'a Path,
    text: &'a str,
    errors: Vec<ConfigError>,
    /// True if the text is not TOML.
    is_unparsed: bool,
    removed: Vec<RemovedPart>,
}

/// A part of the file that was removed because of a schema error. A check must not report it as missing.
#[derive(Debug, Default)]
struct RemovedPart {
    /// The keys of the tables around it, from the outside, then its own key.
    keys: Vec<String>,
    /// The positions of the tables around it, from the outside.
    tables: Vec<Range<usize>>,
    /// True if its key is unknown: it may be a misspelling of any key of its table.
    is_unknown: bool,
}

impl<'a> ConfigReport<'a> {
    pub(super) fn new(file: &'a Path, text: &'a str) -> Self {
        Self { file, text, errors: Vec::new(), is_unparsed: false, removed: Vec::new() }
    }

    /// Parses the text. Parts with schema errors are reported and removed, so that the rest is still validated.
    pub(super) fn read<T: DeserializeOwned + Default>(&mut self) -> T {
        let (table, errors) = DeTable::parse_recoverable(self.text);
        for error in &errors {
            self.add_schema_error(error);
        }
        self.is_unparsed = !errors.is_empty();
        if self.is_unparsed {
            return T::default();
        }
        let mut table = table;
        loop {
            match T::deserialize(toml::de::Deserializer::from(table.clone())) {
                Ok(read) => return read,
                Err(error) => {
                    self.add_schema_error(&error);
                    let removed = error.span().and_then(|span| remove(table.get_mut(), &span));
                    let (Some(mut part), true) = (removed, self.errors.len() < PROBLEMS_MAX) else {
                        self.is_unparsed = true;
                        return T::default();
                    };
                    part.is_unknown = error.message().starts_with("unknown field");
                    self.removed.push(part);
                }
            }
        }
    }

    fn add_schema_error(&mut self, error: &toml::de::Error) {
        let line = error.span().map(|span| self.line(&span));
        self.add(line, plain_file_error(error.message()));
    }

    /// Adds an error at a position.
    pub(super) fn at(&mut self, span: &Range<usize>, message: impl Into<String>) {
        let line = self.line(span);
        self.add(Some(line), message.into());
    }

    /// True if the value of a key, or a part of it, was removed because of an error that is already reported: its
    /// absence is no further error. `table` is the position of the table; `None` for the file.
    pub(super) fn may_have_lost(&self, table: Option<&Range<usize>>, key: &str) -> bool {
        let is_lost = |part: &RemovedPart| {
            let depth = match table {
                Some(table) => part.tables.iter().position(|around| around == table).map(|index| index + 1),
                None => Some(0),
            };
            depth.is_some_and(|depth| {
                let is_direct = part.keys.len() == depth + 1;
                (part.is_unknown && is_direct) || part.keys.get(depth).is_some_and(|lost| lost == key)
            })
        };
        self.is_unparsed || self.removed.iter().any(is_lost)
    }

    /// Adds an error without a position.
    pub(super) fn anywhere(&mut self, message: impl Into<String>) {
        self.add(None, message.into());
    }

    /// Adds an error about another file.
    pub(super) fn in_file(&mut self, file: &Path, message: impl Into<String>) {
        self.errors.push(ConfigError { file: file.to_owned(), line: None, message: message.into() });
    }

    pub(super) fn into_errors(mut self) -> Vec<ConfigError> {
        self.errors.sort_by(|one, other| (&one.file, one.line).cmp(&(&other.file, other.line)));
        self.errors
    }

    fn add(&mut self, line: Option<usize>, message: String) {
        let problem = ConfigError { file: self.file.to_owned(), line, message };
        if !self.errors.contains(&problem) {
            self.errors.push(problem);
        }
    }

    fn line(&self, span: &Range<usize>) -> usize {
        let before = self.text.as_bytes().get(..span.start).unwrap_or_default();
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    }
}

/// Removes the smallest part of a table that contains an error. A list without elements goes with its last one.
fn remove(table: &mut DeTable<'_>, span: &Range<usize>) -> Option<RemovedPart> {
    let below = table.iter_mut().find_map(|(key, value)| {
        let mut part = remove_below(value, span)?;
        part.keys.insert(0, key.get_ref().to_string());
        let is_empty = value.get_ref().as_array().is_some_and(|array| array.is_empty());
        Some((part, is_empty.then(|| key.clone())))
    });
    if let Some((part, emptied)) = below {
        emptied.map(|key| table.remove(&key));
        return Some(part);
    }
    let is_meant = |key: &Range<usize>, value: &Range<usize>| contains(key, span) || contains(value, span);
    let found = table.iter().find(|(key, value)| is_meant(&key.span(), &value.span()));
    let key = found.map(|(key, _)| key.clone())?;
    table.remove(&key);
    Some(RemovedPart { keys: vec![key.get_ref().to_string()], ..RemovedPart::default() })
}

fn remove_below(value: &mut Spanned<DeValue<'_>>, span: &Range<usize>) -> Option<RemovedPart> {
    let own = value.span();
    match value.get_mut() {
        DeValue::Table(table) => {
            let mut part = remove(table, span)?;
            part.tables.insert(0, own);
            Some(part)
        }
        DeValue::Array(array) => remove_from_list(array, span),
        DeValue::String(_)
        | DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_) => None,
    }
}

fn remove_from_list(array: &mut DeArray<'_>, span: &Range<usize>) -> Option<RemovedPart> {
    if let Some(part) = array.iter_mut().find_map(|value| remove_below(value, span)) {
        return Some(part);
    }
    let is_meant = |value: &Spanned<DeValue<'_>>| contains(&value.span(), span);
    let index = array.iter().position(is_meant)?;
    let rest = array.iter().enumerate().filter(|(other, _)| *other != index);
    *array = rest.map(|(_, value)| value.clone()).collect();
    Some(RemovedPart::default())
}

fn contains(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end && outer.start < outer.end
}
