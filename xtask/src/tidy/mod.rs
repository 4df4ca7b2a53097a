//! `cargo xtask tidy`: checks of sources, manifests and documents against each other.
//!
//! A check takes texts and returns problems, so that it can be tested with a few lines; only this file reads and writes
//! files.

mod breakages;
mod commands;
mod crate_map;
mod cycles;
mod documents;
mod exceptions;
mod layers;
pub(crate) mod log_lines;
mod manifests;
mod promises;
mod prose;
mod reference;
mod report;
mod runbooks;
pub(crate) mod rust;
mod sources;
mod test_functions;

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, Result};

use crate::steps::Outcome;
use crate::tree::Tree;
use crate::words::{Usage, Words};

use exceptions::Exceptions;
use manifests::Package;

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Problem {
    path: String,
    line: usize,
    message: String,
}

impl Problem {
    /// `place` counts lines from 0, as iterators do.
    fn new(path: &str, place: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: place + 1, message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// Every text of the repository, by path.
type Texts = BTreeMap<String, String>;

/// The mode of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Check,
    /// Writes the generated parts of documents, then checks.
    Write,
    /// Prints measures of the code without a check.
    Report(Format),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Text,
    Json,
}

pub(crate) fn command(words: Words) -> Result<Outcome> {
    let mut mode = Mode::Check;
    for word in words {
        match word.as_str() {
            "--write" if mode == Mode::Check => mode = Mode::Write,
            "--report" if mode == Mode::Check => mode = Mode::Report(Format::Text),
            "--json" if mode == Mode::Report(Format::Text) => mode = Mode::Report(Format::Json),
            _ => return Err(Usage::unknown(&word).into()),
        }
    }
    run(mode)
}

/// Runs all checks.
pub(crate) fn check_all() -> Result<Outcome> {
    run(Mode::Check)
}

fn run(mode: Mode) -> Result<Outcome> {
    let tree = Tree::load()?;
    let mut texts = Texts::new();
    for path in tree.paths() {
        if let Some(text) = tree.text(path)? {
            texts.insert(path.to_owned(), text);
        }
    }
    let packages = manifests::packages(&texts)?;
    match mode {
        Mode::Check => {}
        Mode::Write => write_generated(&tree, &mut texts, &packages)?,
        Mode::Report(format) => {
            let report = match format {
                Format::Text => report::text(&texts, &packages),
                Format::Json => report::json(&texts, &packages),
            };
            println!("{report}");
            return Ok(Outcome::Passed);
        }
    }
    let problems = check(&tree, &texts, &packages);
    problems.iter().for_each(|problem| println!("{problem}"));
    if problems.is_empty() {
        eprintln!("{} files are tidy", texts.len());
        return Ok(Outcome::Passed);
    }
    Ok(Outcome::Failed(format!("{} problems", problems.len())))
}

/// Writes the table of packages and the index of tests.
fn write_generated(tree: &Tree, texts: &mut Texts, packages: &[Package]) -> Result<()> {
    let map = texts.get(crate_map::DOCUMENT).and_then(|document| crate_map::rewritten(document, packages));
    for (path, wanted) in [(crate_map::DOCUMENT, map), (promises::INDEX, promises::index(texts))] {
        if let Some(wanted) = wanted {
            std::fs::write(tree.root().join(path), &wanted)
                .with_context(|| format!("cannot write: {path}"))?;
            texts.insert(path.to_owned(), wanted);
        }
    }
    Ok(())
}

fn check(tree: &Tree, texts: &Texts, packages: &[Package]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let paths = documents::machine_paths(tree.root());
    for (path, text) in texts {
        problems.extend(documents::check_machine_paths(path, text, &paths));
        if path.ends_with(".rs") || path.ends_with(".md") {
            problems.extend(commands::check(path, text));
        }
        if path.ends_with(".rs") {
            problems.extend(sources::check_source(path, text));
        }
        if path.ends_with(".md") {
            let on_disk = |target: &str| tree.root().join(target).exists();
            problems.extend(documents::check_links(path, texts, |target| tree.has(target), on_disk));
        }
    }
    if let Some(text) = texts.get(crate_map::DOCUMENT) {
        let files: Vec<_> = texts.keys().map(String::as_str).collect();
        problems.extend(documents::check_source_names(crate_map::DOCUMENT, text, &files));
    }
    problems.extend(sources::check_clippy(texts));
    problems.extend(crate_map::check(texts, packages));
    problems.extend(promises::check_specification(texts));
    problems.extend(prose::check(texts));
    problems.extend(report::types::check(texts, packages));
    problems.extend(reference::check(texts));
    problems.extend(breakages::check(texts));
    problems.extend(runbooks::check(texts));
    let mut exceptions = Exceptions::parse(texts.get(exceptions::LIST).map_or("", String::as_str));
    problems.extend(layers::check(packages, &mut exceptions));
    problems.extend(cycles::check(texts, packages, &mut exceptions));
    problems.extend(exceptions.unused());
    problems
}
