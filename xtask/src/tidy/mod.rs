//! `cargo xtask tidy`: what files and documents promise each other.
//!
//! Every check takes text and gives problems, so that it can be tried on a few lines; only this file reads from disk.

mod documents;
mod log_lines;
mod promises;
mod reference;
mod sources;

use std::collections::BTreeMap;
use std::fmt;

use anyhow::Result;

use crate::steps::Outcome;
use crate::tree::Tree;

/// Something that is not as it should be.
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

pub(crate) fn command() -> Result<Outcome> {
    let tree = Tree::load()?;
    let mut texts = Texts::new();
    for path in tree.paths() {
        if let Some(text) = tree.text(path)? {
            texts.insert(path.to_owned(), text);
        }
    }
    let problems = check(&tree, &texts);
    problems.iter().for_each(|problem| println!("{problem}"));
    if problems.is_empty() {
        eprintln!("{} files are tidy", texts.len());
        return Ok(Outcome::Passed);
    }
    Ok(Outcome::Failed(format!("{} problems", problems.len())))
}

fn check(tree: &Tree, texts: &Texts) -> Vec<Problem> {
    let mut problems = Vec::new();
    let paths = documents::machine_paths(tree.root());
    for (path, text) in texts {
        problems.extend(documents::check_machine_paths(path, text, &paths));
        if path.ends_with(".rs") {
            problems.extend(sources::check_source(path, text));
        }
        if path.ends_with(".md") {
            let on_disk = |target: &str| tree.root().join(target).exists();
            problems.extend(documents::check_links(path, text, |target| tree.has(target), on_disk));
        }
    }
    problems.extend(sources::check_clippy(texts));
    problems.extend(documents::check_architecture(texts));
    problems.extend(promises::check_specification(texts));
    problems.extend(reference::check(texts));
    problems
}
