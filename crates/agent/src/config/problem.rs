//! What is wrong with the settings, and where: all of it at once, so that nobody has to try again for each.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// Problems of one file that are told: whoever has more of them has another file in mind.
const PROBLEMS_MAX: usize = 100;

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// In which file.
    pub(crate) file: PathBuf,
    /// In which line, counted from 1.
    pub(crate) line: Option<usize>,
    /// What, with a hint on a second line where there is one.
    pub(crate) what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, what } = self;
        match line {
            Some(line) => write!(out, "{}:{line}: {what}", file.display()),
            None => write!(out, "{}: {what}", file.display()),
        }
    }
}

/// A text of settings, and what is wrong with it so far.
pub(super) struct Report<'a> {
    file: &'a Path,
    text: &'a str,
    problems: Vec<Problem>,
    /// Lines of the text that are not of the right form.
    malformed: Vec<usize>,
    /// Where tables of lists begin, by line.
    entries: Vec<usize>,
}

impl<'a> Report<'a> {
    pub(super) fn new(file: &'a Path, text: &'a str) -> Self {
        let begins = |(_, line): &(usize, &str)| line.trim_start().starts_with('[');
        let entries = text.lines().enumerate().filter(begins).map(|(index, _)| index + 1).collect();
        Self { file, text, problems: Vec::new(), malformed: Vec::new(), entries }
    }

    /// Reads the text. Whatever is not of the right form is told, and read without: the rest is looked at all the same.
    pub(super) fn read<T: DeserializeOwned + Default>(&mut self) -> T {
        let (table, errors) = DeTable::parse_recoverable(self.text);
        for error in &errors {
            self.form(error);
        }
        if !errors.is_empty() {
            return T::default();
        }
        let mut table = table;
        loop {
            match T::deserialize(toml::de::Deserializer::from(table.clone())) {
                Ok(read) => return read,
                Err(error) => {
                    self.form(&error);
                    let removed = error.span().is_some_and(|span| remove(table.get_mut(), &span));
                    if !removed || self.problems.len() >= PROBLEMS_MAX {
                        return T::default();
                    }
                }
            }
        }
    }

    fn form(&mut self, error: &toml::de::Error) {
        let line = error.span().map(|span| self.line(&span));
        self.malformed.extend(line);
        self.add(line, error.message().trim_end().to_owned());
    }

    /// Something is wrong with what stands there. Of an entry whose form is wrong nothing more is said.
    pub(super) fn at(&mut self, span: &Range<usize>, what: impl Into<String>) {
        let line = self.line(span);
        let entry = |line: usize| self.entries.iter().rev().find(|begin| **begin <= line).copied();
        let here = entry(line);
        if here.is_none() || !self.malformed.iter().any(|malformed| entry(*malformed) == here) {
            self.add(Some(line), what.into());
        }
    }

    /// Something is wrong that stands nowhere.
    pub(super) fn anywhere(&mut self, what: impl Into<String>) {
        self.add(None, what.into());
    }

    /// Something is wrong with another file.
    pub(super) fn of_file(&mut self, file: &Path, what: impl Into<String>) {
        self.problems.push(Problem { file: file.to_owned(), line: None, what: what.into() });
    }

    pub(super) fn is_malformed(&self) -> bool {
        !self.malformed.is_empty()
    }

    pub(super) fn into_problems(mut self) -> Vec<Problem> {
        self.problems.sort_by(|one, other| (&one.file, one.line).cmp(&(&other.file, other.line)));
        self.problems
    }

    fn add(&mut self, line: Option<usize>, what: String) {
        let problem = Problem { file: self.file.to_owned(), line, what };
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    fn line(&self, span: &Range<usize>) -> usize {
        let before = self.text.as_bytes().get(..span.start).unwrap_or_default();
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    }
}

/// Takes the smallest thing out of a table that a problem is about.
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
