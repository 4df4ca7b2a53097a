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
    /// Lines with errors of the schema.
    malformed: Vec<usize>,
    /// Lines at which entries of arrays of tables begin.
    entries: Vec<usize>,
}

impl<'a> ConfigReport<'a> {
    pub(super) fn new(file: &'a Path, text: &'a str) -> Self {
        let begins = |(_, line): &(usize, &str)| line.trim_start().starts_with('[');
        let entries = text.lines().enumerate().filter(begins).map(|(index, _)| index + 1).collect();
        Self { file, text, errors: Vec::new(), malformed: Vec::new(), entries }
    }

    /// Parses the text. Parts with schema errors are reported and removed, so that the rest is still validated.
    pub(super) fn read<T: DeserializeOwned + Default>(&mut self) -> T {
        let (table, errors) = DeTable::parse_recoverable(self.text);
        for error in &errors {
            self.add_schema_error(error);
        }
        if !errors.is_empty() {
            return T::default();
        }
        let mut table = table;
        loop {
            match T::deserialize(toml::de::Deserializer::from(table.clone())) {
                Ok(read) => return read,
                Err(error) => {
                    self.add_schema_error(&error);
                    let removed = error.span().is_some_and(|span| remove(table.get_mut(), &span));
                    if !removed || self.errors.len() >= PROBLEMS_MAX {
                        return T::default();
                    }
                }
            }
        }
    }

    fn add_schema_error(&mut self, error: &toml::de::Error) {
        let line = error.span().map(|span| self.line(&span));
        self.malformed.extend(line);
        self.add(line, plain_file_error(error.message()));
    }

    /// Adds an error at a position. Entries with schema errors get no further ones.
    pub(super) fn at(&mut self, span: &Range<usize>, message: impl Into<String>) {
        let line = self.line(span);
        let entry = |line: usize| self.entries.iter().rev().find(|begin| **begin <= line).copied();
        let here = entry(line);
        if here.is_none() || !self.malformed.iter().any(|malformed| entry(*malformed) == here) {
            self.add(Some(line), message.into());
        }
    }

    /// Adds an error without a position.
    pub(super) fn anywhere(&mut self, message: impl Into<String>) {
        self.add(None, message.into());
    }

    /// Adds an error about another file.
    pub(super) fn in_file(&mut self, file: &Path, message: impl Into<String>) {
        self.errors.push(ConfigError { file: file.to_owned(), line: None, message: message.into() });
    }

    pub(super) fn is_malformed(&self) -> bool {
        !self.malformed.is_empty()
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

/// Removes the smallest part of a table that contains an error.
fn remove(table: &mut DeTable<'_>, span: &Range<usize>) -> bool {
    if table.iter_mut().any(|(_, value)| remove_below(value.get_mut(), span)) {
        return true;
    }
    let is_meant = |key: &Range<usize>, value: &Range<usize>| contains(key, span) || contains(value, span);
    let found = table.iter().find(|(key, value)| is_meant(&key.span(), &value.span()));
    let Some(key) = found.map(|(key, _)| key.clone()) else { return false };
    table.remove(&key).is_some()
}

fn remove_below(value: &mut DeValue<'_>, span: &Range<usize>) -> bool {
    match value {
        DeValue::Table(table) => remove(table, span),
        DeValue::Array(array) => remove_from_list(array, span),
        DeValue::String(_)
        | DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_) => false,
    }
}

fn remove_from_list(array: &mut DeArray<'_>, span: &Range<usize>) -> bool {
    if array.iter_mut().any(|value| remove_below(value.get_mut(), span)) {
        return true;
    }
    let is_meant = |value: &Spanned<DeValue<'_>>| contains(&value.span(), span);
    let Some(index) = array.iter().position(is_meant) else { return false };
    let rest = array.iter().enumerate().filter(|(other, _)| *other != index);
    *array = rest.map(|(_, value)| value.clone()).collect();
    true
}

fn contains(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end && outer.start < outer.end
}
